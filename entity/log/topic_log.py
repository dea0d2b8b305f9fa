"""The log of an open topic: its partitions' writers, and what log and store have of a journal.

Positions of a partition, each at most the one before it: `PartitionWriter.position` is the end of
what is sent, also by others; `KnownEnd.end` of what this object has sent; `PartitionRecording.live`
of what is recorded; `Tail.end` of what a read considers; `Pointer.next_position` of what a store
has.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from aerotape._native import Effect, Fold
from aerotape.codecs.entity.actions import ActionHeader
from aerotape.codecs.entity.messages import Selector
from aerotape.codecs.journal_type import JOURNAL_TYPES, JournalType
from aerotape.context import Closing
from aerotape.entity.log.archive import LogArchive
from aerotape.entity.log.known_end import Known
from aerotape.entity.log.messages import Messages
from aerotape.entity.log.opening import open_writer
from aerotape.entity.log.tail import (
    DEFAULT_BUFFER_LENGTH,
    LogStatistics,
    MovedToStoreError,
    Tail,
    check_start,
    of_another_log,
)
from aerotape.entity.log.turns import Turns
from aerotape.entity.log.writer import PartitionWriter, RecordPosition
from aerotape.entity.partition import Partition
from aerotape.entity.records import Head, Pointer
from aerotape.entity.stores.store import Store
from aerotape.entity.topic import MAX_PARTITIONS, check_topic, partition_of, recordings_of
from aerotape.errors import ConfigurationError, EntityError
from aerotape.waiting import Blocking, Pause, Task, Until

if TYPE_CHECKING:
    from aerotape.client.client import Access

DEFAULT_CHANNEL: Final = "aeron:ipc"
# Each is a replay, of which an archive allows a limited number.
_SCANS: Final = 4
# After so many records others get a turn, in an event loop.
_TURN: Final = 256


class TopicLog(Closing):
    """The partitions of a topic, and its store. Thread-safe.

    Attributes:
        archive: has the recordings.
        partitions: what each partition is, by index.
        store: None: none.
        topic: the topic's name.
        messages: encodes its records.
        statistics: what reads took from the log.
    """

    def __init__(
        self,
        archive: LogArchive,
        partitions: list[Partition],
        store: Store | None,
        channel: str,
        origin: str,
        timeout_ns: int,
        buffer_length: int,
    ) -> None:
        """Open no partition yet. `open_topic` documents the arguments."""
        self.archive = archive
        self.partitions = partitions
        self.store = store
        self.topic = partitions[0].topic
        self.messages = Messages(self.topic, origin)
        self.statistics = LogStatistics()
        self._channel = channel
        self._timeout_ns = timeout_ns
        self._buffer_length = buffer_length
        self._lock = threading.Lock()
        self._writers: dict[int, PartitionWriter] = {}
        self._scans = Turns(_SCANS)
        self._opening: dict[int, object] = {}
        self._is_closed = False

    # -- reading -------------------------------------------------------------------------------

    def view(self, id: str) -> Task[tuple[Tail, Head | None]]:
        """Read the log of a journal from where the store ends up to the log's end.

        A mark is sent to find the end, unless this object knows that the last record is its own.

        Args:
            id: the entity's id.

        Returns:
            The end of the log, and the head of this journal in the store, None if it is not there.

        Raises:
            EntityError: the log is damaged, or purged where it is not replicated.
            AeronTimeoutError: the archive does not respond.
        """
        while True:
            try:
                return (yield from self._view(id))
            except MovedToStoreError:
                # Replicated and purged since the store was read: it is read again.
                continue

    def _view(self, id: str) -> Task[tuple[Tail, Head | None]]:
        writer = yield from self.writer(id)
        # First the store: what its head has, also a purge, precedes the end of the log then.
        begin, head = yield from self._stored(writer, id, writer.position)
        end = yield from writer.end_of_log(partial(self.messages.mark, id))
        tail = self._tail(writer, id, Fold(head), end)
        known_end = writer.known_end
        with writer.lock:
            is_known = begin >= end or known_end.is_unchanged(tail.id, begin, end)
        if not is_known:
            yield from writer.recorded(end)
            yield from self._scans.within(tail.scan(begin))
        with writer.lock:
            known_end.extend_back(tail.marks_from, end)
            known_end.learn(tail.id, tail.fold.copy(), end)
        return tail, head if tail.fold.begun_at is None and tail.fold.exists else None

    def _tail(self, writer: PartitionWriter, id: str, fold: Fold, end: int) -> Tail:
        return Tail(
            self.archive,
            writer.partition,
            writer.recording.id,
            Selector(id),
            fold,
            end,
            self.statistics,
            self._buffer_length,
            partial(self._replicated, writer.partition),
        )

    def _replicated(self, partition: Partition) -> Task[int]:
        """Return the position up to which the store has the log of a partition, bytes."""
        if self.store is None:
            return 0
        asked = Blocking(partial(self.store.pointer, self.topic, partition.index))
        yield asked
        return 0 if asked.value is None else asked.value.next_position

    def _stored(self, writer: PartitionWriter, id: str, end: int) -> Task[tuple[int, Head | None]]:
        """Return the position from which the log is not replicated, and the head in the store.

        Args:
            end: the end of the log, bytes.

        Raises:
            EntityError: the rest of the log has been purged and the store, if any, does not have
                it, or the store is that of another log.
        """
        pointer, head = yield from self._seen(writer.partition, id)
        begin = 0
        if pointer is None:
            begin = yield from self.archive.start_position(writer.recording.id)
            if begin > 0:
                # It may have been replicated and purged since the store was read.
                pointer, head = yield from self._seen(writer.partition, id)
        if pointer is None:
            check_start(writer.partition, begin, 0, self.store is not None)
            return begin, head
        if pointer.next_position > end:
            yield from writer.recorded(end)
            yield from self._check_end(writer, pointer.next_position)
        return pointer.next_position, head

    def _seen(self, partition: Partition, id: str) -> Task[tuple[Pointer | None, Head | None]]:
        """The pointer of a partition and the head of a journal that the store has now."""
        if self.store is None:
            return None, None
        asked = Blocking(partial(self.store.view, self.topic, partition.index, id))
        yield asked
        return asked.value

    # -- writing -------------------------------------------------------------------------------

    def written(self, id: str, message: bytes, action: ActionHeader) -> Task[RecordPosition]:
        """Send an action and wait until it is recorded."""
        writer = yield from self.writer(id)
        place, _ = yield from writer.send(message, action)
        yield from writer.recorded(place.next_position)
        return place

    def all_written(
        self, given: Iterable[tuple[str, bytes, ActionHeader]]
    ) -> Task[list[RecordPosition]]:
        """Send actions by ids of their entities, and wait until all are recorded."""
        places = []
        ends: dict[PartitionWriter, int] = {}
        for number, (id, message, action) in enumerate(given):
            if number % _TURN == _TURN - 1:
                yield Pause()
            writer = yield from self.writer(id)
            place, _ = yield from writer.send(message, action)
            ends[writer] = place.next_position
            places.append(place)
        for writer, end in ends.items():
            yield from writer.recorded(end)
        return places

    def decided(
        self, id: str, message: bytes, action: ActionHeader
    ) -> Task[tuple[RecordPosition, Effect, int]]:
        """Send a conditional action, and wait until it is recorded and its effect is known.

        The records in front of it decide. If this object sent those since it knew the journal, the
        effect follows from them; otherwise they are read.

        Returns:
            Its place, its effect, and the journal's last sequence number after it.
        """
        writer = yield from self.writer(id)
        with writer.lock:
            base = writer.known_end.journal(action.id)
            end = writer.position
        if base is None or (base.position < end and self.store is not None):
            # In front of the record, so that the head does not have its effect yet.
            begin, head = yield from self._stored(writer, id, end)
            if base is None or begin > base.position:
                base = Known(Fold(head), begin)
        place, decided = yield from writer.send(message, action, base)
        yield from writer.recorded(place.next_position)
        if decided is not None:
            return place, *decided
        tail = yield from self._decisive(writer, id, place, base)
        with writer.lock:
            writer.known_end.learn(action.id, tail.fold, place.next_position)
        return place, tail.effect, tail.fold.last

    def _decisive(
        self, writer: PartitionWriter, id: str, place: RecordPosition, base: Known
    ) -> Task[Tail]:
        """Read the log from where a journal is known to the end of a record that was sent."""
        while True:
            tail = self._tail(writer, id, base.fold.copy(), place.next_position)
            try:
                yield from self._scans.within(tail.scan(base.position))
                return tail
            except MovedToStoreError:
                # What precedes the record is in the store, unless the record is there too.
                begin, head = yield from self._stored(writer, id, place.next_position)
                if begin > place.offset:
                    raise
                base = Known(Fold(head), begin)

    # -- the partitions ------------------------------------------------------------------------

    def writer(self, id: str) -> Task[PartitionWriter]:
        """Return the writer of the partition of an entity.

        Raises:
            EntityError: the topic is closed, or its log has been purged and no store has the rest.
        """
        index = partition_of(id, len(self.partitions))
        writer = self._writers.get(index)
        while writer is None or not writer.is_open:
            writer = yield from self._open(index)
        return writer

    def _open(self, index: int) -> Task[PartitionWriter | None]:
        """Open a writer, unless it is being opened: then wait for that and return None."""
        own = object()
        try:
            if self._opening.setdefault(index, own) is not own:
                yield Until(lambda: index not in self._opening)
                return self._writers.get(index)
            if self._is_closed:
                raise EntityError(f"topic {self.topic} is closed", self.topic)
            closed = self._writers.pop(index, None)
            if closed is not None:
                closed.close()
            writer = yield from open_writer(
                self.archive, self.partitions[index], self._channel, self._timeout_ns
            )
            try:
                yield from self._check_log(writer)
                with self._lock:
                    if self._is_closed:
                        raise EntityError(f"topic {self.topic} is closed", self.topic)
                    self._writers[index] = writer
            except BaseException:
                writer.close()
                raise
            return writer
        finally:
            if self._opening.get(index) is own:
                del self._opening[index]

    def _check_log(self, writer: PartitionWriter) -> Task[None]:
        """Check that what is replicated is the beginning of the log, which is not shorter."""
        partition = writer.partition
        # In this order: what is replicated now may be purged in a moment.
        start = yield from self.archive.start_position(writer.recording.id)
        replicated = yield from self._replicated(partition)
        check_start(partition, start, replicated, self.store is not None)
        if replicated:
            yield from self._check_end(writer, replicated)

    def _check_end(self, writer: PartitionWriter, replicated: int) -> Task[None]:
        recorded = yield from self.archive.last_position(writer.recording.id)
        if replicated > recorded:
            raise of_another_log(writer.partition, writer.recording.id, replicated, recorded)

    def close(self) -> None:
        """Close the publications; recordings stop when no other writer is left. Idempotent."""
        with self._lock:
            self._is_closed = True
            for writer in self._writers.values():
                writer.close()
            self._writers.clear()


def open_topic(
    access: Access,
    topic: str,
    partitions: int | None = None,
    store: Store | None = None,
    *,
    type: JournalType | None = None,
    channel: str = DEFAULT_CHANNEL,
    origin: str = "",
    timeout_ns: int | None = None,
    buffer_length: int = DEFAULT_BUFFER_LENGTH,
) -> Task[TopicLog]:
    """Open a topic. `ArchiveClient.entities` documents the arguments."""
    archive = LogArchive(access)
    check_topic(topic)
    existing = recordings_of(topic, (yield from archive.recordings()))
    found = next(iter(existing), None)
    count = None if found is None else found.count
    if partitions is None:
        partitions = count or 1
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise ConfigurationError(
            f"partitions={partitions}: expected 1 to {MAX_PARTITIONS}", "partitions"
        )
    if count not in (None, partitions):
        raise ConfigurationError(
            f"partitions={partitions}: topic {topic} has {count} partitions", "partitions"
        )
    known = None if found is None else found.type
    if known is not None and type not in (None, known):
        raise ConfigurationError(f"type={type}: topic {topic} is of type {known}", "type")
    chosen = type or known or "VD_JOURNAL"
    if chosen not in JOURNAL_TYPES:
        raise ConfigurationError(f"type={type}: expected {' or '.join(JOURNAL_TYPES)}", "type")
    is_persistent = chosen == "PD_JOURNAL"
    return TopicLog(
        archive,
        [Partition(topic, index, partitions, is_persistent) for index in range(partitions)],
        store,
        channel,
        origin,
        archive.timeout_ns if timeout_ns is None else timeout_ns,
        buffer_length,
    )
