"""An archive directory with recordings of all states, for tests of `aerotape tool`."""

from __future__ import annotations

from pathlib import Path

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from support.builders.built_archive import add_entry
from support.builders.mark_files import leave
from support.builders.segment_builder import SegmentBuilder

SEGMENT_LENGTH = 131_072


def build(directory: Path) -> Path:
    """Write the directory of a stopped archive; return its path.

    Recordings of three segment files each, the last one in part: 0 is valid, 1 deleted, 2 invalid
    and starts within its first term, 3 valid without a stop position, 4 valid without files.
    """
    directory.mkdir()
    with Catalog.open(directory, create=True) as catalog:
        for recording_id, start in enumerate((0, 0, 65_536 + 96, 0, 0)):
            stream = SegmentBuilder(recording_id=recording_id, start_position=start)
            base = start & -stream.term_length
            while stream.position < base + 2 * stream.segment_length + 5000:
                stream.message(bytes([recording_id + 1]) * 3000)
            if recording_id != 4:
                stream.write(directory)
            add_entry(
                catalog,
                stream,
                start_timestamp_ms=1_700_000_000_123,
                original_channel=f"aeron:ipc?alias={'long-' * recording_id}",
                stop_position=-1 if recording_id == 3 else stream.position,
                stop_timestamp_ms=-1 if recording_id == 3 else 1_700_000_000_999,
            )
        catalog.change_state(1, RecordingState.DELETED)
        catalog.change_state(2, RecordingState.INVALID)
    leave(directory)
    return directory


def content(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
