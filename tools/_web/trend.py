"""What an archive has recorded over the last hours, as far as this service has seen it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from aerotape.context import Closing
from aerotape.errors import AerotapeError
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._web.observed import ObservedArchive, Snapshot

INTERVAL_S: Final = 5.0
FINE_S: Final = 900
"""For so long back there is a point each 5 s, seconds; further back one each minute."""
KEPT_S: Final = 86_400
"""For so long back there are points, seconds."""
_MINUTE_S: Final = 60
_COUNTED: Final = 4 << 20  # the newest bytes of a recording in which messages are counted
_COUNTED_RECORDINGS: Final = 16
_MIN_FORECAST_S: Final = 60


@dataclass(frozen=True, slots=True)
class Point:
    """The rates of recording in an interval.

    Attributes:
        time_ms: its end, epoch milliseconds.
        seconds: how long it was.
        bytes_per_s: recorded in all recordings, frame headers and padding included.
        messages_per_s: likewise. Of the 16 recordings that have grown most the newest 4 MiB are
            counted; what else was recorded is taken to have messages of the same length. None: it
            could not be read.
        free_bytes: free space at its end.
    """

    time_ms: int
    seconds: float
    bytes_per_s: float
    messages_per_s: float | None
    free_bytes: int


class Trend(Closing):
    """Looks at an archive each 5 s, and keeps a day of points. Use from any thread."""

    def __init__(self, observed: ObservedArchive) -> None:
        """Create it; `start` begins to look.

        Args:
            observed: the archive.
        """
        self._observed = observed
        self._before: Snapshot | None = None
        self._fine: deque[Point] = deque(maxlen=int(FINE_S / INTERVAL_S))
        self._coarse: deque[Point] = deque(maxlen=KEPT_S // _MINUTE_S)
        self._minute: list[Point] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin to look, in a thread; if the storage hangs, so does that thread."""
        threading.Thread(target=self._run, name="trend", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def points(self, seconds: int) -> list[Point]:
        """Return the points of the last seconds, by ascending time."""
        with self._lock:
            newest = self._fine[-1].time_ms if self._fine else 0
            found = self._fine if seconds <= FINE_S else [*self._coarse, *self._rest()]
            return [each for each in found if each.time_ms > newest - seconds * 1_000]

    def full_in_s(self) -> float | None:
        """The time until no space is left at the rate of the last 15 minutes, seconds.

        None: free space does not become less, or was seen for less than a minute.
        """
        with self._lock:
            if not self._fine:
                return None
            first, last = self._fine[0], self._fine[-1]
        seconds = (last.time_ms - first.time_ms) / 1e3
        used = first.free_bytes - last.free_bytes
        if seconds < _MIN_FORECAST_S or used <= 0:
            return None
        return last.free_bytes * seconds / used

    def look(self) -> None:
        """Add a point for the time since the last look; nothing if the files cannot be read."""
        try:
            snapshot = self._observed.snapshot()
        except AerotapeError:
            return
        before, self._before = self._before, snapshot
        if before is None or snapshot.taken_ms <= before.taken_ms:
            return
        grown = _grown(before, snapshot)
        seconds = (snapshot.taken_ms - before.taken_ms) / 1e3
        messages = self._messages(grown)
        point = Point(
            snapshot.taken_ms,
            seconds,
            sum(end - begin for begin, end in grown.values()) / seconds,
            None if messages is None else messages / seconds,
            snapshot.free_bytes,
        )
        with self._lock:
            self._fine.append(point)
            self._minute.append(point)
            if sum(each.seconds for each in self._minute) >= _MINUTE_S:
                self._coarse.extend(self._rest())
                self._minute.clear()

    def _rest(self) -> list[Point]:
        """Return the point of the minute that has begun, none if that is empty."""
        return [_mean(self._minute)] if self._minute else []

    def _messages(self, grown: dict[int, tuple[int, int]]) -> float | None:
        """The number of messages in the bytes by which recordings have grown."""
        if not grown:
            return 0.0
        counted = messages = 0
        largest = sorted(grown, key=lambda each: grown[each][0] - grown[each][1])
        with suppress(AerotapeError):
            directory = open_directory(self._observed.directory)
            for recording_id in largest[:_COUNTED_RECORDINGS]:
                begin, end = grown[recording_id]
                begin = max(begin, end - _COUNTED)
                with suppress(AerotapeError):  # it may be purged or damaged
                    found = directory.recording(recording_id).stats(begin, end, bins=0)
                    if not found.gaps:
                        messages += found.messages
                        counted += end - begin
        if not counted:
            return None
        return messages * sum(end - begin for begin, end in grown.values()) / counted

    def _run(self) -> None:
        self.look()
        while not self._closed.wait(INTERVAL_S):
            self.look()


def _grown(before: Snapshot, now: Snapshot) -> dict[int, tuple[int, int]]:
    """Return from where to where recordings have grown between two snapshots, by recording id."""
    earlier = before.ends()
    found = {}
    ends = now.ends()
    for each in now.recordings:
        end = ends[each.recording_id]
        begin = earlier.get(each.recording_id, each.start_position)
        if 0 <= max(begin, each.start_position) < end:
            found[each.recording_id] = max(begin, each.start_position), end
    return found


def _mean(points: Sequence[Point]) -> Point:
    """Return one point for the time of some."""
    seconds = sum(each.seconds for each in points)
    counted = [each for each in points if each.messages_per_s is not None]
    counted_s = sum(each.seconds for each in counted)
    return Point(
        points[-1].time_ms,
        seconds,
        sum(each.bytes_per_s * each.seconds for each in points) / seconds,
        sum((each.messages_per_s or 0) * each.seconds for each in counted) / counted_s
        if counted
        else None,
        points[-1].free_bytes,
    )
