"""Seeking in a recording of a raft journal: from an index or an asqn to a position.

`from_index=N` begins at the first record whose index is N or higher. `from_asqn=N` begins at the
record with the highest asqn that is N or lower, as the journal's own reader does: a record with an
ApplicationEntry has the asqn of the first application record in it, so N is in that record. Without
such a record it begins at the first. Records without an asqn (-1) are passed over by the search.

The points of the seek index (`aerotape.catalog.seek_index.file`) shorten the search; the record at
a point has to be the one that the point names. Where points are missing or wrong, records are read
from the last good point on, and the index is written again with the points that this yields.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from aerotape.catalog.seek_index.file import (
    NO_ASQN,
    RECORDS_PER_POINT,
    SeekPoint,
    decode_seek_index,
    write_seek_index,
)
from aerotape.codecs.raft.record import decode_partially
from aerotape.errors import (
    AerotapeError,
    CodecError,
    ConfigurationError,
    JournalError,
    StorageError,
)
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    from aerotape.catalog.directory import StoredRecording
    from aerotape.replay.offline.reader import RecordingRange

_PROBE_BYTES: Final = 1


@dataclass(frozen=True, slots=True)
class SeekTarget:
    """The record to begin at; all records when both are None.

    Attributes:
        index: begin at the first record with this index or a higher one.
        asqn: begin at the last record with this asqn or a lower one.
    """

    index: int | None = None
    asqn: int | None = None

    def __post_init__(self) -> None:
        if self.index is not None and self.asqn is not None:
            raise ConfigurationError("from_index and from_asqn exclude each other: give one")
        for name, value in (("from_index", self.index), ("from_asqn", self.asqn)):
            if value is not None and value < 0:
                raise ConfigurationError(f"{name} {value} is negative", name)

    def __bool__(self) -> bool:
        return self.index is not None or self.asqn is not None


class Search:
    """The search for a target among records in their order; feed it until it is done."""

    def __init__(self, target: SeekTarget) -> None:
        self._target = target
        self.position: int | None = None
        """The position to read from, as found so far; None while all records precede the target."""

    def feed(self, index: int, asqn: int, position: int) -> bool:
        """Take the next record; return whether the search is done."""
        if self._target.index is not None:
            if index >= self._target.index:
                self.position = position
            return self.position is not None
        if self.position is None:
            self.position = position
        if self._target.asqn is None or asqn == NO_ASQN:
            return False
        if asqn > self._target.asqn:
            return True
        self.position = position
        return False

    def is_before(self, index: int, asqn: int) -> bool:
        """Whether the search can begin at a record, which is at the target or before it."""
        if self._target.index is not None:
            return index <= self._target.index
        return asqn != NO_ASQN and self._target.asqn is not None and asqn <= self._target.asqn


class PointCollector:
    """Chooses the records that become points of a seek index."""

    def __init__(self, *, at_point: bool = False) -> None:
        """Begin without points; the next record may be a point of the index already."""
        self.points: list[SeekPoint] = []
        self._since = 0 if at_point else 2 * RECORDS_PER_POINT

    def add(self, index: int, asqn: int, position: int) -> None:
        """Take the next record.

        A record without asqn becomes a point only if no other follows soon: such a point is of no
        use for the search of an asqn.
        """
        self._since += 1
        due = RECORDS_PER_POINT if asqn != NO_ASQN else 2 * RECORDS_PER_POINT
        if self._since > due:
            self.points.append(SeekPoint(index, asqn, position))
            self._since = 1


def seek_position(recording: StoredRecording, whole: RecordingRange, target: SeekTarget) -> int:
    """Return the position of the message at which to begin; the end if no record is left.

    Raises:
        CodecError: a message is not a record of a raft journal.
        SegmentError: a segment file is missing, too short or damaged.
    """
    stored = _stored_points(recording, whole)
    points = list(stored)
    search = Search(target)
    while (usable := _count_before(points, search)) and not _is_true(points[usable - 1], whole):
        # Those after it are not true either: a recording is only replaced from some position on.
        del points[usable - 1 :]
    begin = points[usable - 1].position if usable else whole.from_position
    collector = PointCollector(at_point=usable > 0)
    for index, asqn, position in record_keys(
        replace(whole, from_position=begin, from_boundary=usable > 0)
    ):
        collector.add(index, asqn, position)
        if search.feed(index, asqn, position):
            break
    if new := collector.points:
        last = new[-1]
        after = [p for p in points[usable:] if p.position > last.position and p.index > last.index]
        points = [*points[:usable], *new, *after]
    if points != stored and not isinstance(recording.archive_dir, UrlPath):
        with suppress(StorageError):  # a reader may lack permission
            write_seek_index(
                recording.archive_dir,
                recording.recording_id,
                recording.descriptor.start_timestamp_ms,
                points,
            )
    return whole.limit_position if search.position is None else search.position


def record_keys(part: RecordingRange) -> Iterator[tuple[int, int, int]]:
    """Iterate index, asqn and position of the records in a range (CodecError, SegmentError)."""
    scan = part.scan(batch_rows=2 * RECORDS_PER_POINT)
    while (messages := scan.next_messages()) is not None:
        for position, *_, payload in messages:
            yield *record_key(payload, part.recording_id, position), position


def record_key(payload: bytes, recording_id: int, position: int) -> tuple[int, int]:
    """Return index and asqn of the record that a message holds (CodecError)."""
    try:
        if (record := decode_partially(payload)) is not None:
            return record.index, record.asqn
        problem = "its frame is 0"
    except JournalError as error:
        problem = str(error)
    raise CodecError(
        f"recording {recording_id}, position {position}: the message is not a record of a raft "
        f"journal, {problem}; only recordings of raft journals can be searched by index or asqn"
    )


def _stored_points(recording: StoredRecording, whole: RecordingRange) -> list[SeekPoint]:
    try:
        data = recording.read_seek_index()
    except (StorageError, OSError):
        return []
    found = None
    if data is not None:
        found = decode_seek_index(
            data, recording.recording_id, recording.descriptor.start_timestamp_ms
        )
    return [
        point
        for point in found or []
        if whole.from_position <= point.position < whole.limit_position
    ]


def _count_before(points: list[SeekPoint], search: Search) -> int:
    """Return the number of points up to the last one at which the search can begin."""
    usable = (at for at, each in enumerate(points, 1) if search.is_before(each.index, each.asqn))
    return max(usable, default=0)


def _is_true(point: SeekPoint, whole: RecordingRange) -> bool:
    """Whether the record at a point has the point's index and asqn."""
    only = replace(
        whole,
        from_position=point.position,
        to_position=point.position + _PROBE_BYTES,
        from_boundary=True,
    )
    try:
        found = next(record_keys(only), None)
    except AerotapeError:
        return False
    return found == (point.index, point.asqn, point.position)
