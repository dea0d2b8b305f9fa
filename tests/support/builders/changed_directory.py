"""Changes to an archive directory, as an archive's clients or a purge make them."""

from __future__ import annotations

from pathlib import Path

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from support.builders.segment_builder import SegmentBuilder


def truncate(archive_dir: Path, builder: SegmentBuilder, count: int) -> None:
    """Truncate to so many messages, as `aerotape truncate` does."""
    builder.messages[count:] = []
    builder.position = builder.messages[-1].end_position
    for position in [position for position in builder.frames if position >= builder.position]:
        del builder.frames[position]
    with Catalog.open(archive_dir) as catalog:
        catalog.set_stop_position(builder.recording_id, builder.position)
    for path in archive_dir.glob(f"{builder.recording_id}-*.rec"):
        path.unlink()
    builder.write(archive_dir)


def extend(archive_dir: Path, builder: SegmentBuilder) -> None:
    """Make the recording active again."""
    with Catalog.open(archive_dir) as catalog:
        catalog.extend_recording(
            builder.recording_id, control_session_id=1, correlation_id=2, session_id=99
        )


def stop(archive_dir: Path, builder: SegmentBuilder) -> None:
    with Catalog.open(archive_dir) as catalog:
        catalog.recording_stopped(builder.recording_id, builder.position, 1_700_000_002_000)


def purge_segments(archive_dir: Path, builder: SegmentBuilder, position: int) -> None:
    with Catalog.open(archive_dir) as catalog:
        catalog.set_start_position(builder.recording_id, position)
    for path in archive_dir.glob(f"{builder.recording_id}-*.rec"):
        if int(path.stem.partition("-")[2]) < position:
            path.unlink()


def purge(archive_dir: Path, recording_id: int, *, compact: bool = False) -> None:
    with Catalog.open(archive_dir) as catalog:
        catalog.change_state(recording_id, RecordingState.INVALID)
        if compact:
            catalog.compact()
    for path in archive_dir.glob(f"{recording_id}-*.rec"):
        path.unlink()
