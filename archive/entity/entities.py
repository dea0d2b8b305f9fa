"""The journal of a topic: append, read, delete and purge by the id of an entity."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from aerotape import __version__
from aerotape.archive.entity.head_info import Appended, Deleted, HeadInfo, Purged, last_seq_nr
from aerotape.archive.entity.log import DEFAULT_BUFFER_LENGTH, LogStatistics, Tail
from aerotape.archive.entity.partition import Partition
from aerotape.archive.entity.records import EventRecord, Head
from aerotape.archive.entity.stores.store import Store
from aerotape.archive.entity.topic import (
    MAX_PARTITIONS,
    check_topic,
    partition_of,
    recordings_of,
)
from aerotape.archive.entity.writer import PartitionWriter, RecordPosition
from aerotape.codecs.entity.actions import ActionKind, Event
from aerotape.codecs.entity.messages import Selector, encode_fields
from aerotape.codecs.entity.payload import encode_events
from aerotape.codecs.journal_type import JOURNAL_TYPES, JournalType
from aerotape.context import Closing
from aerotape.errors import CodecError, ConfigurationError, EntityError

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient

DEFAULT_CHANNEL: Final = "aeron:ipc"


class Entities(Closing):
    """The journals of one topic. Created by `ArchiveClient.entities`; thread-safe.

    Attributes:
        topic: the topic's name.
        partitions: the number of its partitions.
        type: ``PD_JOURNAL`` or ``VD_JOURNAL``.
        statistics: what reads took from the log.
    """

    def __init__(
        self,
        client: ArchiveClient,
        topic: str,
        partitions: int | None = None,
        store: Store | None = None,
        *,
        type: JournalType | None = None,
        channel: str = DEFAULT_CHANNEL,
        origin: str = "",
        timeout_ns: int | None = None,
        buffer_length: int = DEFAULT_BUFFER_LENGTH,
    ) -> None:
        """Open a topic. Use `ArchiveClient.entities`, which documents the arguments."""
        self.topic = check_topic(topic)
        existing = recordings_of(topic, client.list_recordings())
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
        self.type = type or known or "VD_JOURNAL"
        if self.type not in JOURNAL_TYPES:
            raise ConfigurationError(f"type={type}: expected {' or '.join(JOURNAL_TYPES)}", "type")
        self.partitions = partitions
        self.statistics = LogStatistics()
        self._client = client
        self._store = store
        self._channel = channel
        self._timeout_ns = client._session.timeout_ns if timeout_ns is None else timeout_ns
        self._buffer_length = buffer_length
        self._lock = threading.Lock()
        self._writers: dict[int, PartitionWriter] = {}
        # By partition: a range of positions at the end of the log with nothing but marks.
        self._marks: dict[int, tuple[int, int]] = {}
        self._is_closed = False
        self._origin = origin
        self._version = f"aerotape {__version__}"

    # -- writing -------------------------------------------------------------------------------

    def append(
        self,
        id: str,
        events: Sequence[Event],
        *,
        expire_after_ns: int | None = None,
        metadata: Any = None,
        payload_metadata: Any = None,
    ) -> RecordPosition:
        """Append events to a journal, all or none, and wait until they are recorded.

        Args:
            id: the entity's id.
            events: at least one, with strictly rising sequence numbers.
            expire_after_ns: after so long without another append the journal may be purged,
                nanoseconds; None: never.
            metadata: of the record, any JSON value.
            payload_metadata: of the events, any JSON value.

        Returns:
            The place of the record.

        Raises:
            EntityError: the events are invalid or too long, or the recording stopped; then they
                may have been lost.
            AeronTimeoutError: they are not recorded in time; they may be later.
        """
        message = self._append_message(id, events, expire_after_ns, metadata, payload_metadata)
        return self._written(id, message)

    def append_many(self, appends: Iterable[tuple[str, Sequence[Event]]]) -> list[RecordPosition]:
        """Append to many journals and wait once, until all are recorded.

        Each append is atomic; after an error some may have been recorded and others not.

        Args:
            appends: ids of entities, and the events of each.

        Returns:
            The places of the records, in order.

        Raises:
            EntityError: as `append`.
            AeronTimeoutError: as `append`.
        """
        places = []
        writers: dict[int, PartitionWriter] = {}
        ends: dict[int, int] = {}
        for id, events in appends:
            message = self._append_message(id, events, None, None, None)
            index = self._partition_of(id)
            if (writer := writers.get(index)) is None:
                writer = writers[index] = self._writer(index)
            place = writer.send(message)
            ends[index] = place.next_position
            places.append(place)
        for index, end in ends.items():
            writers[index].await_recorded(end)
        return places

    def delete(self, id: str, to_seq_nr: int) -> RecordPosition | None:
        """Delete the events of a journal up to a sequence number, at most those that exist.

        Args:
            id: the entity's id.
            to_seq_nr: the last event to delete; more than the last event means all.

        Returns:
            The place of the record; None when there is no journal, and nothing was written.

        Raises:
            EntityError: `to_seq_nr` is invalid, or as `append`.
            AeronTimeoutError: as `append`.
        """
        if to_seq_nr < 1:
            raise EntityError(
                f"cannot delete up to event {to_seq_nr}: sequence numbers begin at 1", self.topic
            )
        last = self.pointer(id)
        if last is None:
            return None
        message = self._message(ActionKind.DELETE, id, to_seq_nr=min(to_seq_nr, last))
        return self._written(id, message)

    def purge(self, id: str) -> RecordPosition:
        """Delete a journal; the next append begins a new one.

        Returns:
            The place of the record.

        Raises:
            EntityError: as `append`.
            AeronTimeoutError: as `append`.
        """
        return self._written(id, self._message(ActionKind.PURGE, id))

    # -- reading -------------------------------------------------------------------------------

    def read(self, id: str, from_seq_nr: int = 1) -> Generator[EventRecord, None, None]:
        """Return an iterator over the events of a journal, by strictly rising sequence number.

        It has everything that was acknowledged before the call, and may have later appends. The
        call looks through the part of the log that is not replicated; with a store that is up to
        date, the log is not read.

        Args:
            id: the entity's id.
            from_seq_nr: the first event.

        Raises:
            EntityError: the log is damaged, or purged where it is not replicated.
            AeronTimeoutError: the archive does not respond.
        """
        tail, head = self._view(id)
        return self._events(id, tail, head, max(from_seq_nr, 1))

    def pointer(self, id: str) -> int | None:
        """Return the last sequence number of a journal, None when there is no journal.

        Raises:
            EntityError: as `read`.
            AeronTimeoutError: as `read`.
        """
        tail, head = self._view(id)
        return last_seq_nr(tail.info, None if head is None else head.seq_nr)

    def unreplicated(self, id: str) -> HeadInfo:
        """Return the state of a journal in the end of the log that the store does not have.

        Raises:
            EntityError: as `read`.
            AeronTimeoutError: as `read`.
        """
        tail, _ = self._view(id)
        return tail.info

    def _view(self, id: str) -> tuple[Tail, Head | None]:
        """Push a mark, and look through the log from where the store ends up to the mark.

        Returns:
            The end of the log, and the head in the store.
        """
        index = self._partition_of(id)
        writer = self._writer(index)
        place = writer.send(self._message(ActionKind.MARK, id, mark_id=uuid.uuid4().hex))
        # Meanwhile the mark is being recorded.
        pointer, head = None, None
        if self._store is not None:
            pointer = self._store.pointer(self.topic, index)
            head = self._store.head(self.topic, id)
        tail = Tail(
            self._client,
            self._partition(index),
            writer.recording_id,
            Selector(id),
            place.offset,
            self.statistics,
            self._buffer_length,
        )
        if pointer is None:
            begin = self._client.start_position(writer.recording_id)
        else:
            begin = pointer.next_position
            self._check_pointer(writer, begin, place)
        first, after_last = self._marks.get(index, (place.offset, place.offset))
        if begin >= first and after_last == place.offset:
            tail.marks_from = first
        elif begin < place.offset:
            writer.await_recorded(place.next_position)
            tail.scan(begin)
        self._marks[index] = tail.marks_from, place.next_position
        return tail, head

    def _check_pointer(self, writer: PartitionWriter, end: int, mark: RecordPosition) -> None:
        """Check that what is replicated up to a position, bytes, is this log."""
        if end <= mark.next_position:
            return
        writer.await_recorded(mark.next_position)
        recorded = self._client.max_recorded_position(writer.recording_id)
        if end > recorded:
            raise EntityError(
                f"partition {mark.partition} of topic {self.topic} is replicated up to {end}, but "
                f"recording {writer.recording_id} ends at {recorded}: the store is that of another "
                "log; use a new namespace",
                self.topic,
            )

    def _events(
        self, id: str, tail: Tail, head: Head | None, from_seq_nr: int
    ) -> Generator[EventRecord, None, None]:
        info = tail.info
        is_purged = isinstance(info, Purged) or (
            isinstance(info, Appended | Deleted) and info.is_purged
        )
        if self._store is not None and not is_purged:
            if head is not None:
                now = self._store.head(self.topic, id)
                if now is None or now.record_id != head.record_id:
                    return  # purged since the call
                if now.offset < tail.end:
                    from_seq_nr = max(from_seq_nr, (now.delete_to or 0) + 1)
            if isinstance(info, Appended | Deleted):
                from_seq_nr = max(from_seq_nr, (info.delete_to or 0) + 1)
            for record in self._store.events(self.topic, id, from_seq_nr):
                # Records after the mark may be of a journal that replaced this one.
                if from_seq_nr <= record.seq_nr and record.offset < tail.end:
                    from_seq_nr = record.seq_nr + 1
                    yield record
        yield from tail.events(from_seq_nr)

    # -- the partitions ------------------------------------------------------------------------

    def _partition_of(self, id: str) -> int:
        return partition_of(id, self.partitions)

    def _partition(self, index: int) -> Partition:
        return Partition(self.topic, index, self.partitions, self.type == "PD_JOURNAL")

    def _writer(self, index: int) -> PartitionWriter:
        writer = self._writers.get(index)
        if writer is not None and writer.is_open:
            return writer
        with self._lock:
            if self._is_closed:
                raise EntityError(f"topic {self.topic} is closed", self.topic)
            writer = self._writers.pop(index, None)
            if writer is not None:
                if writer.is_open:
                    self._writers[index] = writer
                    return writer
                writer.close()
            partition = self._partition(index)
            writer = PartitionWriter(self._client, partition, self._channel, self._timeout_ns)
            self._writers[index] = writer
            self._marks.pop(index, None)
            return writer

    def _append_message(
        self,
        id: str,
        events: Sequence[Event],
        expire_after_ns: int | None,
        metadata: Any,
        payload_metadata: Any,
    ) -> bytes:
        try:
            payload, payload_type = encode_events(events, expire_after_ns, payload_metadata)
            return encode_fields(
                ActionKind.APPEND,
                id,
                time.time_ns() // 1_000_000,
                self._origin,
                self._version,
                metadata,
                events[0].seq_nr,
                events[-1].seq_nr,
                payload_type,
                payload,
            )
        except CodecError as error:
            raise EntityError(f"cannot append to {id!r}: {error}", self.topic) from error

    def _message(self, kind: ActionKind, id: str, **fields: Any) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        try:
            return encode_fields(kind, id, now_ms, self._origin, self._version, **fields)
        except CodecError as error:
            raise EntityError(str(error), self.topic) from error

    def _written(self, id: str, message: bytes) -> RecordPosition:
        writer = self._writer(self._partition_of(id))
        place = writer.send(message)
        writer.await_recorded(place.next_position)
        return place

    def close(self) -> None:
        """Close the publications; recordings stop when no other writer is left. Idempotent."""
        with self._lock:
            self._is_closed = True
            for writer in self._writers.values():
                writer.close()
            self._writers.clear()
