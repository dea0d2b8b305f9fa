"""Reading the log of a partition for one entity.

The end of a log that no store has yet is read once and folded over the head in the store. Its
appends are buffered up to a limit, so that reading the events needs no second pass; past the limit
they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from aerotape._native import Effect, Fold
from aerotape.codecs.entity.actions import ActionHeader, Append
from aerotape.codecs.entity.messages import Selector, decode, is_mark
from aerotape.codecs.entity.payload import events_of
from aerotape.entity.partition import Partition
from aerotape.entity.records import EventRecord, SnapshotRecord
from aerotape.errors import CodecError, EntityError, InvalidPositionError

if TYPE_CHECKING:
    from aerotape.message import Message
    from aerotape.waiting import Task

DEFAULT_BUFFER_LENGTH: Final = 16 << 20
# The number of buffered appends that are decoded at a time.
_BATCH: Final = 64

_Found = tuple[ActionHeader, int, bytes]


class Records(Protocol):
    """Records of a log, in batches."""

    def next(self) -> Task[list[Message]]:
        """Return the next records; none at the end."""

    def close(self) -> None:
        """End the reading. Idempotent."""


class Logs(Protocol):
    """The recordings that are logs, in an archive or its files."""

    def start_position(self, recording_id: int, /) -> Task[int]:
        """Return the start position of a recording, bytes."""

    def records(self, recording_id: int, begin: int, end: int, /) -> Records:
        """Return the records from one position to another, bytes."""


class MovedToStoreError(EntityError):
    """A part of the log that was to be read is in the store by now, and was purged from the log."""


@dataclass(slots=True)
class LogStatistics:
    """Counters of what readers of a topic read from its log.

    Attributes:
        passes: passes over a part of the log; a read without one used the store alone.
        records: records that were read.
        decoded_payloads: payloads of appends decoded.
    """

    passes: int = 0
    records: int = 0
    decoded_payloads: int = 0


class Tail:
    """The end of a partition's log, for one entity: from a position to a reader's mark.

    Attributes:
        id: the entity's id in UTF-8.
        fold: the journal; after `scan` with what the end of the log changes.
        effect: of the entity's last action in it.
        end: the position of the mark, bytes.
        marks_from: from here up to the mark `scan` found only marks.
    """

    def __init__(
        self,
        archive: Logs,
        partition: Partition,
        recording_id: int,
        selector: Selector,
        fold: Fold,
        end: int,
        statistics: LogStatistics,
        buffer_length: int = DEFAULT_BUFFER_LENGTH,
        replicated: Callable[[], Task[int]] | None = None,
    ) -> None:
        """Create an empty tail; `scan` reads the log, which is recorded up to `end`.

        Args:
            fold: the journal in the store, or as of a position from which the log is read.
            replicated: returns the position up to which a store has the log now, bytes; None: no
                store.
        """
        self.id = selector.key
        self.fold = fold
        self.effect = Effect.NONE
        self.marks_from = end
        self._archive = archive
        self._partition = partition
        self._recording_id = recording_id
        self._selector = selector
        self.end = end
        self._statistics = statistics
        self._buffer_length = buffer_length
        self._replicated = replicated
        # Appends that count; None: more than may be buffered.
        self._appends: list[tuple[int, bytes]] | None = []
        self._buffered = 0
        # The first of them, and the journal in front of it.
        self._first: tuple[int, Fold] | None = None
        # Of its snapshots, the latest: sequence number, position and message.
        self._snapshot: tuple[int, int, bytes] | None = None

    def scan(self, begin: int) -> Task[None]:
        """Read the log from a position, bytes.

        Raises:
            MovedToStoreError: the log does not reach back so far any more, but the store does.
            EntityError: neither does, or the log has a record that is no action.
        """
        self.marks_from = begin
        before = self.fold.copy()
        with closing(_Pass(self, begin)) as actions:
            while found := (yield from actions.next()):
                for header, offset, message in found:
                    self.effect = effect = self.fold.apply(header, offset)
                    if effect is Effect.ADDED:
                        if self._first is None:
                            self._first = offset, before
                        self._buffer(offset, message)
                    elif effect is Effect.PURGED:
                        self._appends, self._buffered, self._first = [], 0, None
                        self._snapshot = None
                    elif effect is Effect.SNAPSHOT:
                        seen = header.to_seq_nr, offset, message
                        self._snapshot = max(self._snapshot or seen, seen)
                    if self._first is None:
                        before = self.fold.copy()

    def _buffer(self, offset: int, message: bytes) -> None:
        if self._appends is None:
            return
        self._buffered += len(message)
        if self._buffered > self._buffer_length:
            self._appends = None
        else:
            self._appends.append((offset, message))

    def events(self, from_seq_nr: int) -> TailEvents:
        """Return the events in the log from a sequence number, strictly rising."""
        return TailEvents(self, max(from_seq_nr - 1, self.fold.deleted))

    def snapshot(self) -> SnapshotRecord | None:
        """Return the snapshot in the log with the highest sequence number, the last of these."""
        if self._snapshot is None:
            return None
        _, offset, message = self._snapshot
        action = decode(message)
        assert isinstance(action, Append)
        (record,) = self._records(action, offset)
        return SnapshotRecord.of(record)

    def _records(self, append: Append, offset: int) -> Iterator[EventRecord]:
        self._statistics.decoded_payloads += 1
        try:
            yield from records_of(append, self._partition.index, offset)
        except CodecError as error:
            raise damaged(self._partition, self._recording_id, offset, error) from error

    def _refused(self, begin: int, error: InvalidPositionError) -> Task[EntityError]:
        """Return the error of a log that cannot be read from a position, as it is now."""
        partition = self._partition
        start = yield from self._archive.start_position(self._recording_id)
        if start <= begin:
            return EntityError(f"cannot read the log of {partition}: {error}", partition.topic)
        replicated = 0 if self._replicated is None else (yield from self._replicated())
        if replicated >= start:
            return MovedToStoreError(
                f"the log of {partition} has been purged from {begin} to {start} while it was "
                f"read, and the store has it up to {replicated}: read again",
                partition.topic,
            )
        return EntityError(
            f"the log of {partition} is not replicated from {begin} on and has been "
            f"purged there: events are lost ({error})",
            partition.topic,
        )


class _Pass:
    """A pass over the log from a position to the end of a tail: the actions of its entity."""

    def __init__(self, tail: Tail, begin: int) -> None:
        self._tail = tail
        self._begin = begin
        self._records = tail._archive.records(tail._recording_id, begin, tail.end)
        tail._statistics.passes += 1

    def next(self) -> Task[list[_Found]]:
        """Return the next actions; none at the end."""
        tail, header_of = self._tail, self._tail._selector.header
        found: list[_Found] = []
        while not found and (records := (yield from self._read())):
            tail._statistics.records += len(records)
            for record in records:
                try:
                    header = header_of(record.payload)
                except CodecError as error:
                    raise damaged(
                        tail._partition, tail._recording_id, record.position, error
                    ) from error
                if not is_mark(record.payload):
                    tail.marks_from = record.end_position
                if header is not None:
                    found.append((header, record.position, record.payload))
        return found

    def _read(self) -> Task[list[Message]]:
        try:
            return (yield from self._records.next())
        except InvalidPositionError as error:
            raise (yield from self._tail._refused(self._begin, error)) from error

    def close(self) -> None:
        self._records.close()


class TailEvents:
    """The events in a tail, in batches: of its buffer or, if they are too many, read again."""

    def __init__(self, tail: Tail, last: int) -> None:
        """Begin after a sequence number."""
        self._tail = tail
        self._last = last
        self._buffered = tail._appends
        self._index = 0
        self._pass: _Pass | None = None
        if self._buffered is None and tail._first is not None:
            begin, fold = tail._first
            self._pass, self._fold = _Pass(tail, begin), fold.copy()

    def next(self) -> Task[list[EventRecord]]:
        """Return the next events; none at the end."""
        found: list[EventRecord] = []
        while not found and (appends := (yield from self._appends())):
            for offset, message in appends:
                append = decode(message)
                assert isinstance(append, Append)
                if append.to_seq_nr <= self._last:
                    continue
                for record in self._tail._records(append, offset):
                    if record.seq_nr > self._last:
                        self._last = record.seq_nr
                        found.append(record)
        return found

    def _appends(self) -> Task[list[tuple[int, bytes]]]:
        """Return the next appends that count; none at the end."""
        if self._buffered is not None:
            begin, self._index = self._index, self._index + _BATCH
            return self._buffered[begin : self._index]
        added: list[tuple[int, bytes]] = []
        if self._pass is not None:
            while not added and (actions := (yield from self._pass.next())):
                for header, offset, message in actions:
                    if self._fold.apply(header, offset) is Effect.ADDED:
                        added.append((offset, message))
        return added

    def close(self) -> None:
        """End a pass over the log. Idempotent."""
        if self._pass is not None:
            self._pass.close()


def records_of(append: Append, partition: int, offset: int) -> Iterator[EventRecord]:
    """Yield the events of an append in the log (CodecError: its payload is damaged).

    Args:
        append: the append.
        partition: the partition's index.
        offset: position of the record, bytes.
    """
    events = events_of(append)
    for event in events.events:
        yield EventRecord(
            event,
            partition,
            offset,
            append.timestamp_ms,
            append.origin,
            append.version,
            append.metadata,
            events.metadata,
            events.expire_after_ns,
        )


def check_start(partition: Partition, start: int, replicated: int, has_store: bool) -> None:
    """Check that a log that begins at `start` continues what is replicated, both in bytes.

    Raises:
        EntityError: the part between them has been purged.
    """
    if start <= replicated:
        return
    has = f"the store has it up to {replicated}" if has_store else "no store is given"
    raise EntityError(
        f"the log of {partition} begins at {start}, the rest has been purged, and {has}: give "
        "store=…, that of the topic's replicator",
        partition.topic,
    ).naming("store=…")


def of_another_log(
    partition: Partition, recording_id: int, replicated: int, end: int
) -> EntityError:
    """Return the error that a store has more than a recording, which ends at `end`."""
    return EntityError(
        f"{partition} is replicated up to {replicated}, but recording {recording_id} ends at "
        f"{end}: the store is that of another log, or records were lost in a power cut; use a new "
        "namespace",
        partition.topic,
    )


def damaged(
    partition: Partition, recording_id: int, position: int, error: CodecError
) -> EntityError:
    """Return the error that the record at a position is invalid."""
    return EntityError(
        f"recording {recording_id} of {partition} has an invalid record at {position}: {error}",
        partition.topic,
    )
