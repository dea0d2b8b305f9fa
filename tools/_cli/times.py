"""Wall-clock times: what they select, and timestamps to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.times import TimeRange, datetime_of_ms
from aerotape.tools._cli.output import note

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording


def time_text(timestamp_ms: int) -> str:
    """Return milliseconds since 1970 as a time in whole seconds; the number if it is not a time."""
    time = datetime_of_ms(timestamp_ms)
    return f"{timestamp_ms} ms" if time is None else f"{time:%Y-%m-%d %H:%M:%SZ}"


def positions(recording: Recording, times: TimeRange) -> tuple[int, int]:
    """Return the first and last position that may have been recorded in a range of times.

    Notes on standard error where the time index makes that imprecise.
    """
    note_time_index(recording, times)
    return recording.time_index.positions(times)


def note_time_index(recording: Recording, times: TimeRange) -> None:
    """Note on standard error where the time index makes a selection by time imprecise."""
    index = recording.time_index
    if times and index.problem:
        note(f"warning: {index.problem}")
    if times and index.source != "recorded":
        what = "no time index" if index.source == "none" else "an estimated time index"
        note(
            f"recording {recording.recording_id} has {what}: the selection may include more "
            "than was recorded in that time"
        )
