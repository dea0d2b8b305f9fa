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


def next_segment_path(folder: Path, descriptor: RecordingDescriptor) -> Path | None:
    """Return the file in which a stopped recording continues that ends with a full segment.

    None for a recording that ends within a segment, is empty, or can have no further segment.
    """
    stop = descriptor.stop_position
    # Most recordings end within a term, which is the fastest check.
    if stop <= descriptor.start_position or stop & (descriptor.term_buffer_length - 1):
        return None
    if describe_problem(descriptor) or not segment_base(descriptor, stop) == stop < max_position(
        descriptor
    ):
        return None
    return folder / segment_file_name(descriptor.recording_id, stop)


def make_next_segment(folder: Path, descriptor: RecordingDescriptor) -> Path | None:
    """Create the file of `next_segment_path` if it is missing; return its path.

    None is created where the preceding segment is missing, as it would hide that.

    Raises:
        OSError: there is no space, or no permission.
    """
    path, length = next_segment_path(folder, descriptor), descriptor.segment_file_length
    if path is None:
        return None
    preceding = segment_file_name(descriptor.recording_id, descriptor.stop_position - length)
    if not (folder / preceding).exists():
        return None
    make_if_lacking(path, length)
    return path


def make_if_lacking(path: Path, length: int) -> None:
    """Create a segment file without frames where there is none, or an empty one (OSError)."""
    if lacks_blank_segment(path):
        make_blank_segment(path, length)
        sync_directory(path.parent)


def make_next_segments(catalog: Catalog, directory: Path) -> None:
    """Create the next segment file of every valid recording that ends with a full segment.

    Without space for it the recordings are served all the same.
    """
    irregular, _ = catalog.irregular_recordings(directory)
    for descriptor in catalog.readable_descriptors(irregular)[0].values():
        with contextlib.suppress(OSError):
            make_next_segment(directory, descriptor)
