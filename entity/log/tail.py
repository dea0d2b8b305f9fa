"""Reading the log of a partition for one entity.

The end of a log that no store has yet is read once and folded over the head in the store. Its
appends are buffered up to a limit, so that reading the events needs no second pass; past the limit
they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.codecs.entity.actions import ActionHeader, Append
from aerotape.codecs.entity.messages import Selector, decode, is_mark, read_header
from aerotape.codecs.entity.payload import events_of
from aerotape.entity.fold import Effect, Fold
from aerotape.entity.partition import Partition
from aerotape.entity.records import EventRecord, SnapshotRecord
from aerotape.errors import CodecError, EntityError, InvalidPositionError

if TYPE_CHECKING:
    from aerotape.client.client import Client

DEFAULT_BUFFER_LENGTH: Final = 16 << 20

_Found = tuple[ActionHeader, int, bytes]


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
        client: Client,
        partition: Partition,
        recording_id: int,
        selector: Selector,
        fold: Fold,
        end: int,
        statistics: LogStatistics,
        buffer_length: int = DEFAULT_BUFFER_LENGTH,
        replicated: Callable[[], int] = lambda: 0,
    ) -> None:
        """Create an empty tail; `scan` reads the log, which is recorded up to `end`.

        Args:
            fold: the journal in the store, or as of a position from which the log is read.
            replicated: returns the position up to which a store has the log now, bytes.
        """
        self.id = selector.key
        self.fold = fold
        self.effect = Effect.NONE
        self.marks_from = end
        self._client = client
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

    def scan(self, begin: int) -> None:
        """Read the log from a position, bytes.

        Raises:
            MovedToStoreError: the log does not reach back so far any more, but the store does.
            EntityError: neither does, or the log has a record that is no action.
        """
        self.marks_from = begin
        before = copy(self.fold)
        for effect, offset, message in self._effects(begin, self.fold):
            self.effect = effect
            if effect is Effect.ADDED:
                if self._first is None:
                    self._first = offset, before
                self._buffer(offset, message)
            elif effect is Effect.PURGED:
                self._appends, self._buffered, self._first = [], 0, None
                self._snapshot = None
            elif effect is Effect.SNAPSHOT:
                found = read_header(message).to_seq_nr, offset, message
                self._snapshot = found if self._snapshot is None else max(self._snapshot, found)
            if self._first is None:
                before = copy(self.fold)

    def _buffer(self, offset: int, message: bytes) -> None:
        if self._appends is None:
            return
        self._buffered += len(message)
        if self._buffered > self._buffer_length:
            self._appends = None
        else:
            self._appends.append((offset, message))

    def events(self, from_seq_nr: int) -> Iterator[EventRecord]:
        """Iterate over the events in the log from a sequence number, strictly rising."""
        last = max(from_seq_nr - 1, self.fold.deleted)
        for offset, message in self._each_append():
            append = decode(message)
            assert isinstance(append, Append)
            if append.to_seq_nr <= last:
                continue
            for record in self._records(append, offset):
                if record.seq_nr > last:
                    last = record.seq_nr
                    yield record

    def snapshot(self) -> SnapshotRecord | None:
        """Return the snapshot in the log with the highest sequence number, the last of these."""
        if self._snapshot is None:
            return None
        _, offset, message = self._snapshot
        action = decode(message)
        assert isinstance(action, Append)
        (record,) = self._records(action, offset)
        return SnapshotRecord.of(record)

    def _each_append(self) -> Iterator[tuple[int, bytes]]:
        if self._appends is not None:
            yield from self._appends
        elif self._first is not None:
            begin, fold = self._first
            for effect, offset, message in self._effects(begin, copy(fold)):
                if effect is Effect.ADDED:
                    yield offset, message

    def _effects(self, begin: int, fold: Fold) -> Iterator[tuple[Effect, int, bytes]]:
        """Apply the entity's actions from a position to the mark, and yield the effect of each."""
        for header, offset, message in self._pass(begin):
            yield fold.apply(header, offset), offset, message

    def _records(self, append: Append, offset: int) -> Iterator[EventRecord]:
        self._statistics.decoded_payloads += 1
        try:
            yield from records_of(append, self._partition.index, offset)
        except CodecError as error:
            raise damaged(self._partition, self._recording_id, offset, error) from error

    def _pass(self, begin: int) -> Iterator[_Found]:
        """Iterate over the entity's actions from a position to the mark."""
        statistics, header_of = self._statistics, self._selector.header
        statistics.passes += 1
        seen = 0
        try:
            with self._client.replay(self._recording_id, begin, self.end - begin) as messages:
                for message in messages:
                    seen += 1
                    try:
                        header = header_of(message.payload)
                    except CodecError as error:
                        raise damaged(
                            self._partition, self._recording_id, message.position, error
                        ) from error
                    if not is_mark(message.payload):
                        self.marks_from = message.end_position
                    if header is not None:
                        yield header, message.position, message.payload
        except InvalidPositionError as error:
            raise self._refused(begin, error) from error
        finally:
            statistics.records += seen

    def _refused(self, begin: int, error: InvalidPositionError) -> EntityError:
        """Return the error of a log that cannot be read from a position, as it is now."""
        partition = self._partition
        start = self._client.start_position(self._recording_id)
        if start <= begin:
            return EntityError(f"cannot read the log of {partition}: {error}", partition.topic)
        replicated = self._replicated()
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
