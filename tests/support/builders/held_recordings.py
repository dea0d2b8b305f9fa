"""Archive directories with recordings whose segments have ages, for tests of retention."""

from __future__ import annotations

import os
from pathlib import Path

from aerotape.archive.retention.plan import RetentionPlan
from aerotape.catalog.file.catalog import Catalog
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder

SEGMENT_LENGTH = 131_072
DAY_NS = 86_400 * 10**9
DAY_MS = 86_400 * 1_000


def add_recording(
    directory: Path,
    ages_days: list[float],
    *,
    now_ns: int,
    stopped: bool = True,
    stream_id: int = 1001,
    channel: str = "aeron:ipc",
) -> int:
    """Record a segment for each age, the last one in part; return the recording id."""
    directory.mkdir(exist_ok=True)
    with Catalog.open(directory, create=True) as catalog:
        recording_id = catalog.next_recording_id
        stream = SegmentBuilder(recording_id=recording_id, stream_id=stream_id)
        end = max(len(ages_days) * SEGMENT_LENGTH - 50_000, 0)
        while stream.position < end:
            stream.message(recording_id.to_bytes(4, "little") * 250)
        if ages_days:
            stream.write(directory)
        now_ms = now_ns // 1_000_000
        add_entry(
            catalog,
            stream,
            start_timestamp_ms=now_ms - int(max(ages_days, default=100) * DAY_MS),
            segment_file_length=SEGMENT_LENGTH,
            stream_id=stream_id,
            stripped_channel=channel,
            original_channel=channel,
            stop_position=stream.position if stopped else -1,
            stop_timestamp_ms=now_ms - int((ages_days or [100])[-1] * DAY_MS) if stopped else -1,
        )
    for index, age in enumerate(ages_days):
        set_age(directory, recording_id, index, age, now_ns=now_ns)
    return recording_id


def set_age(directory: Path, recording_id: int, index: int, days: float, *, now_ns: int) -> None:
    """Set the modification time of a segment's file."""
    written_ns = now_ns - int(days * DAY_NS)
    os.utime(segment(directory, recording_id, index), ns=(written_ns, written_ns))


def segment(directory: Path, recording_id: int, index: int) -> Path:
    """The file of a segment."""
    return directory / f"{recording_id}-{index * SEGMENT_LENGTH}.rec"


def segments(directory: Path, recording_id: int) -> list[int]:
    """Return the indexes of a recording's segment files."""
    return sorted(
        int(path.stem.partition("-")[2]) // SEGMENT_LENGTH
        for path in directory.glob(f"{recording_id}-*.rec")
    )


def new_starts(plan: RetentionPlan) -> dict[int, int | None]:
    """Return the planned new start of each recording, in segments; None: deleted."""
    return {
        each.recording_id: None
        if each.new_start_position is None
        else each.new_start_position // SEGMENT_LENGTH
        for each in plan.removals
    }
