"""The log of an open topic: its partitions' writers, and what log and store have of a journal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

from aerotape.codecs.entity.actions import ActionHeader
from aerotape.codecs.entity.messages import Selector
from aerotape.context import Closing
from aerotape.entity.fold import Effect, Fold
from aerotape.entity.log.known_end import Known
from aerotape.entity.log.tail import (
    LogStatistics,
    MovedToStoreError,
    Tail,
    check_start,
    of_another_log,
)
from aerotape.entity.log.writer import PartitionWriter, RecordPosition
from aerotape.entity.partition import Partition
from aerotape.entity.records import Head
from aerotape.entity.stores.store import Store
from aerotape.entity.topic import partition_of
from aerotape.errors import EntityError

if TYPE_CHECKING:
    from aerotape.client.client import Client


class TopicLog(Closing):
    """The partitions of a topic, and its store. Thread-safe.

    Attributes:
        partitions: what each partition is, by index.
        statistics: what reads took from the log.
    """

    def __init__(
        self,
        client: Client,
        partitions: list[Partition],
        store: Store | None,
        channel: str,
        timeout_ns: int,
        buffer_length: int,
    ) -> None:
        """Open no partition yet. `Entities` documents the arguments."""
        self.partitions = partitions
        self.statistics = LogStatistics()
        self._topic = partitions[0].topic
        self._client = client
        self._store = store
        self._channel = channel
        self._timeout_ns = timeout_ns
        self._buffer_length = buffer_length
        self._lock = threading.Lock()
        self._writers: dict[int, PartitionWriter] = {}
        self._is_closed = False

    # -- reading -------------------------------------------------------------------------------

    def view(self, id: str, mark: Callable[[], bytes]) -> tuple[Tail, Head | None]:
        """Read the log of a journal from where the store ends up to the log's end.

        Args:
            id: the entity's id.
            mark: returns a mark, which is pushed to find the end, unless this object knows that
                the last record is the one that it has seen last.

        Returns:
            The end of the log, and the head of this journal in the store, None if it is not there.

        Raises:
            EntityError: the log is damaged, or purged where it is not replicated.
            AeronTimeoutError: the archive does not respond.
        """
        while True:
            try:
                return self._view(id, mark)
            except MovedToStoreError:
                # Replicated and purged since the store was read: it is read again.
                continue

    def _view(self, id: str, mark: Callable[[], bytes]) -> tuple[Tail, Head | None]:
        writer = self.writer(id)
        # First the store: what its head has, also a purge, precedes the end of the log then.
        begin, head = self._stored(writer, id, writer.position)
        end = writer.end_of_log(mark)
        tail = self._tail(writer, id, Fold.stored(head), end)
        known_end = writer.known_end
        with writer.lock:
            is_known = begin >= end or known_end.is_unchanged(tail.id, begin, end)
        if not is_known:
            writer.await_recorded(end)
            tail.scan(begin)
        with writer.lock:
            known_end.extend_back(tail.marks_from, end)
            known_end.learn(tail.id, copy(tail.fold), end)
        return tail, head if tail.fold.begun_at is None and tail.fold.exists else None

    def _tail(self, writer: PartitionWriter, id: str, fold: Fold, end: int) -> Tail:
        return Tail(
            self._client,
            writer.partition,
            writer.recording_id,
            Selector(id),
            fold,
            end,
            self.statistics,
            self._buffer_length,
            lambda: self._replicated(writer.partition),
        )

    def _replicated(self, partition: Partition) -> int:
        """Return the position up to which the store has the log of a partition, bytes."""
        pointer = None if self._store is None else self._store.pointer(self._topic, partition.index)
        return 0 if pointer is None else pointer.next_position

    def _stored(self, writer: PartitionWriter, id: str, end: int) -> tuple[int, Head | None]:
        """Return the position from which the log is not replicated, and the head in the store.

        Args:
            end: the end of the log, bytes.

        Raises:
            EntityError: the rest of the log has been purged and the store, if any, does not have
                it, or the store is that of another log.
        """
        pointer, head = None, None
        if self._store is not None:
            pointer, head = self._store.view(self._topic, writer.partition.index, id)
        begin = 0
        if pointer is None:
            begin = self._client.start_position(writer.recording_id)
            if begin > 0 and self._store is not None:
                # It may have been replicated and purged since the store was read.
                pointer, head = self._store.view(self._topic, writer.partition.index, id)
        if pointer is None:
            check_start(writer.partition, begin, 0, self._store is not None)
            return begin, head
        if pointer.next_position > end:
            writer.await_recorded(end)
            self._check_end(writer, pointer.next_position)
        return pointer.next_position, head

    # -- writing -------------------------------------------------------------------------------

    def written(self, id: str, message: bytes, action: ActionHeader) -> RecordPosition:
        """Send an action and wait until it is recorded."""
        writer = self.writer(id)
        place, _ = writer.send(message, action)
        writer.await_recorded(place.next_position)
        return place

    def decided(
        self, id: str, message: bytes, action: ActionHeader
    ) -> tuple[RecordPosition, Effect, int]:
        """Send a conditional action, and wait until it is recorded and its effect is known.

        The records in front of it decide. If this object sent those since it knew the journal, the
        effect follows from them; otherwise they are read.

        Returns:
            Its place, its effect, and the journal's last sequence number after it.
        """
        writer = self.writer(id)
        with writer.lock:
            base = writer.known_end.journal(action.id)
            end = writer.position
        if base is None or (base.position < end and self._store is not None):
            # In front of the record, so that the head does not have its effect yet.
            begin, head = self._stored(writer, id, end)
            if base is None or begin > base.position:
                base = Known(Fold.stored(head), begin)
        place, decided = writer.send(message, action, base)
        writer.await_recorded(place.next_position)
        if decided is not None:
            return place, *decided
        tail = self._decisive(writer, id, place, base)
        with writer.lock:
            writer.known_end.learn(action.id, tail.fold, place.next_position)
        return place, tail.effect, tail.fold.last

    def _decisive(
        self, writer: PartitionWriter, id: str, place: RecordPosition, base: Known
    ) -> Tail:
        """Read the log from where a journal is known to the end of a record that was sent."""
        while True:
            tail = self._tail(writer, id, copy(base.fold), place.next_position)
            try:
                tail.scan(base.position)
                return tail
            except MovedToStoreError:
                # What precedes the record is in the store, unless the record is there too.
                begin, head = self._stored(writer, id, place.next_position)
                if begin > place.offset:
                    raise
                base = Known(Fold.stored(head), begin)

    # -- the partitions ------------------------------------------------------------------------

    def writer(self, id: str) -> PartitionWriter:
        """Return the writer of the partition of an entity.

        Raises:
            EntityError: the topic is closed, or its log has been purged and no store has the rest.
        """
        index = partition_of(id, len(self.partitions))
        writer = self._writers.get(index)
        if writer is not None and writer.is_open:
            return writer
        with self._lock:
            if self._is_closed:
                raise EntityError(f"topic {self._topic} is closed", self._topic)
            writer = self._writers.pop(index, None)
            if writer is not None:
                if writer.is_open:
                    self._writers[index] = writer
                    return writer
                writer.close()
            partition = self.partitions[index]
            writer = PartitionWriter(self._client, partition, self._channel, self._timeout_ns)
            try:
                self._check_log(writer)
            except BaseException:
                writer.close()
                raise
            self._writers[index] = writer
            return writer

    def _check_log(self, writer: PartitionWriter) -> None:
        """Check that what is replicated is the beginning of the log, which is not shorter."""
        partition, recording_id = writer.partition, writer.recording_id
        # In this order: what is replicated now may be purged in a moment.
        start = self._client.start_position(recording_id)
        replicated = self._replicated(partition)
        check_start(partition, start, replicated, self._store is not None)
        if replicated:
            self._check_end(writer, replicated)

    def _check_end(self, writer: PartitionWriter, replicated: int) -> None:
        recorded = self._client.max_recorded_position(writer.recording_id)
        if replicated > recorded:
            raise of_another_log(writer.partition, writer.recording_id, replicated, recorded)

    def close(self) -> None:
        """Close the publications; recordings stop when no other writer is left. Idempotent."""
        with self._lock:
            self._is_closed = True
            for writer in self._writers.values():
                writer.close()
            self._writers.clear()
