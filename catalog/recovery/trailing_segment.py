"""The empty segment file after a recording that ends with a full segment.

A recorder creates it as soon as the previous one is full. It is missing after a truncation to
there, as in the Java archive, perhaps after a power cut, and after a migration. Then `verify`,
ArchiveTool's too, finds that the recording exceeds its files, and hides it. So an archive creates
it when it starts and when it stops.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from aerotape.catalog.descriptor import (
    RecordingDescriptor,
    describe_problem,
    max_position,
    segment_base,
)
from aerotape.catalog.durability import sync_directory
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.segment_files import (
    lacks_blank_segment,
    make_blank_segment,
    segment_file_name,
)


def make_next_segment(directory: Path, descriptor: RecordingDescriptor) -> None:
    """Create the file that a stopped recording would continue in, if it ends with a segment.

    None is created where the preceding segment is missing, as it would hide that, nor where there
    is no space: the recording is served all the same.
    """
    recording_id = descriptor.recording_id
    stop, length = descriptor.stop_position, descriptor.segment_file_length
    # Most recordings end within a term, which is the fastest check.
    if stop <= descriptor.start_position or stop & (descriptor.term_buffer_length - 1):
        return
    if describe_problem(descriptor) or not segment_base(descriptor, stop) == stop < max_position(
        descriptor
    ):
        return
    with contextlib.suppress(OSError):
        if (directory / segment_file_name(recording_id, stop - length)).exists():
            make_if_lacking(directory / segment_file_name(recording_id, stop), length)


def make_if_lacking(path: Path, length: int) -> None:
    """Create a segment file without frames where there is none, or an empty one (OSError)."""
    if lacks_blank_segment(path):
        make_blank_segment(path, length)
        sync_directory(path.parent)


def make_next_segments(catalog: Catalog, directory: Path) -> None:
    """Create the next segment file of every valid recording that ends with a segment."""
    for descriptor in catalog.readable_descriptors()[0].values():
        make_next_segment(directory, descriptor)
