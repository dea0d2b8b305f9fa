"""The journals of entities, from the recordings of their logs, without the archive.

A journal is the log of its partition, folded for one key: all of that log is read, as far as it
was recorded when the reading began.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from aerotape._native import Fold
from aerotape.codecs.entity.messages import Selector
from aerotape.entity.log.tail import LogStatistics, Tail, TailEvents, check_start
from aerotape.entity.records import EventRecord, SnapshotRecord
from aerotape.entity.topic import check_topic, existing_recordings_of, partition_of
from aerotape.errors import StorageError
from aerotape.formatting import bytes_text
from aerotape.message import Message
from aerotape.replay.offline.directory import Recording, directory_at
from aerotape.tools._web.observed import ObservedArchive
from aerotape.waiting import Task, run

_READ_S: Final = 10.0
"""How long a log is read for one journal, seconds."""
_WINDOW: Final = 1 << 20
_BUFFERED: Final = 4 << 20
"""How much of the log a read has in memory, bytes."""


@dataclass(frozen=True, slots=True)
class Journal:
    """A part of a journal.

    Attributes:
        last: the last sequence number; None: there is no journal.
        snapshot: the latest snapshot; None: there is none.
        events: some of its events.
    """

    last: int | None
    snapshot: SnapshotRecord | None
    events: list[EventRecord]


class Journals:
    """Reads journals from the files of an archive."""

    def __init__(self, observed: ObservedArchive) -> None:
        """Create it; nothing is read.

        Args:
            observed: the archive.
        """
        self._observed = observed

    def read(
        self, topic: str, key: str, from_seq_nr: int | None, limit: int, max_bytes: int
    ) -> Journal:
        """Read a part of a journal, and its latest snapshot.

        Args:
            topic: the topic.
            key: of the entity.
            from_seq_nr: the first event; None: so that the newest are read, as many as the limit if
                their numbers have no gaps.
            limit: the most events.
            max_bytes: the most bytes of their payloads and tags, but of one event.

        Raises:
            ConfigurationError: the topic has no valid name.
            UnknownTopicError: there is no such topic.
            EntityError: the log is damaged, or purged.
            StorageError: it cannot be read, or takes longer than 10 s.
        """
        found = existing_recordings_of(check_topic(topic), self._observed.snapshot().recordings)
        partitions = {each.index: each for each in found}
        partition = partitions.get(partition_of(key, next(iter(found)).count))
        if partition is None:  # nothing was written to it
            return Journal(None, None, [])
        recording = directory_at(self._observed.directory).recording(
            found[partition].recording_id
        )
        check_start(partition, recording.start_position, 0, has_store=False)
        tail = Tail(
            _Log(recording),
            partition,
            recording.recording_id,
            Selector(key),
            Fold(),
            recording.recorded_position,
            LogStatistics(),
            _BUFFERED,
        )
        run(tail.scan(recording.start_position))
        last = tail.fold.last if tail.fold.exists else None
        begin = max((last or 0) - limit + 1, 1) if from_seq_nr is None else from_seq_nr
        with closing(tail.events(begin)) as reading:
            events = list(_limited(reading, limit, max_bytes))
        return Journal(last, tail.snapshot(), events)


def _limited(reading: TailEvents, limit: int, max_bytes: int) -> Iterator[EventRecord]:
    """Iterate over the first events, as many as their number and length allow."""
    count = length = 0
    while batch := run(reading.next()):
        for event in batch:
            length += len(event.event.payload or b"") + sum(map(len, event.event.tags))
            if count == limit or (count and length > max_bytes):
                return
            yield event
            count += 1


class _Log:
    """A recording as the log of a partition, which is read for a limited time."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._deadline_s = time.monotonic() + _READ_S

    def start_position(self, _recording_id: int) -> Task[int]:
        """Return the start position of the recording, bytes."""
        yield from ()
        return self._recording.start_position

    def records(self, _recording_id: int, begin: int, end: int) -> _Records:
        """Return the records from one position to another, bytes."""
        return _Records(self._recording, begin, end, self._deadline_s)


class _Records:
    """Records of a recording, in batches."""

    def __init__(self, recording: Recording, begin: int, end: int, deadline_s: float) -> None:
        self._recording = recording
        self._at, self._end = begin, end
        self._deadline_s = deadline_s

    def next(self) -> Task[list[Message]]:
        """Return the next records; none at the end (StorageError)."""
        yield from ()
        found: list[Message] = []
        while not found and self._at < self._end:
            if time.monotonic() >= self._deadline_s:
                raise StorageError(
                    f"reading recording {self._recording.recording_id} for one journal takes "
                    f"longer than {_READ_S:g} s, with {bytes_text(self._end - self._at)} left: "
                    "`aerotape entity read` has no limit"
                )
            to = min(self._at + _WINDOW, self._end)
            found = list(self._recording.messages(self._at, to))
            self._at = max(to, found[-1].end_position if found else to)
        return found

    def close(self) -> None:
        """Do nothing: no file is open between two batches."""
