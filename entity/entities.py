"""The journal of a topic: append, read, delete and purge by the id of an entity."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from aerotape import __version__
from aerotape.codecs.entity.actions import ActionHeader, ActionKind, Event, EventPayloadType
from aerotape.codecs.entity.messages import encode_fields
from aerotape.codecs.entity.payload import encode_events
from aerotape.codecs.journal_type import JOURNAL_TYPES, JournalType
from aerotape.context import Closing
from aerotape.entity.fold import Effect
from aerotape.entity.following.subscription import From, Subscription
from aerotape.entity.log.tail import DEFAULT_BUFFER_LENGTH, Tail
from aerotape.entity.log.topic_log import TopicLog
from aerotape.entity.log.writer import PartitionWriter, RecordPosition
from aerotape.entity.partition import Partition
from aerotape.entity.records import EventRecord, Head, SnapshotRecord
from aerotape.entity.stored import stored_events, stored_snapshot
from aerotape.entity.stores.store import Store
from aerotape.entity.topic import (
    MAX_PARTITIONS,
    check_topic,
    recordings_of,
)
from aerotape.errors import (
    CodecError,
    ConfigurationError,
    EntityError,
    SequenceConflictError,
)

if TYPE_CHECKING:
    from aerotape.client.client import Client

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
        client: Client,
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
        self._client = client
        self._store = store
        is_persistent = self.type == "PD_JOURNAL"
        self._log = TopicLog(
            client,
            [Partition(topic, index, partitions, is_persistent) for index in range(partitions)],
            store,
            channel,
            client._session.timeout_ns if timeout_ns is None else timeout_ns,
            buffer_length,
        )
        self.statistics = self._log.statistics
        self._origin = origin
        self._version = f"aerotape {__version__}"

    # -- writing -------------------------------------------------------------------------------

    def append(
        self,
        id: str,
        events: Sequence[Event],
        *,
        expect: int | None = None,
        expire_after_ns: int | None = None,
        metadata: Any = None,
        payload_metadata: Any = None,
    ) -> RecordPosition:
        """Append events to a journal, all or none, and wait until they are recorded.

        Args:
            id: the entity's id.
            events: at least one, with strictly rising sequence numbers.
            expect: the last sequence number that the journal has to have, 0: that there is no
                journal; the events begin with the next one. The order of the log decides between
                writers that expect the same. None: the events after the journal's last one are
                added, the others are left out.
            expire_after_ns: after so long without another append the journal may be purged,
                nanoseconds; None: never.
            metadata: of the record, any JSON value.
            payload_metadata: of the events, any JSON value.

        Returns:
            The place of the record.

        Raises:
            SequenceConflictError: the journal has another last sequence number; nothing was added.
            EntityError: the events are invalid or too long, the recording stopped, so that they
                may have been lost, or the log has been purged and no store has the rest.
            AeronTimeoutError: they are not recorded in time; they may be later.
        """
        kind = ActionKind.APPEND if expect is None else ActionKind.CONDITIONAL_APPEND
        message, action = self._append_message(
            kind, id, events, expire_after_ns, metadata, payload_metadata
        )
        if expect is None:
            return self._log.written(id, message, action)
        if action.from_seq_nr != expect + 1:
            raise EntityError(
                f"cannot append to {id!r}: the events begin with {action.from_seq_nr}; with "
                f"expect={expect} they begin with {expect + 1}",
                self.topic,
            )
        place, effect, last = self._log.decided(id, message, action)
        if effect is Effect.REFUSED:
            raise SequenceConflictError(
                f"journal {id!r} of topic {self.topic} ends with event {last}, not with {expect}: "
                "nothing was appended; read what is new, and append after it",
                self.topic,
                id,
                expect,
                last,
            )
        return place

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
        ends: dict[PartitionWriter, int] = {}
        for id, events in appends:
            message, action = self._append_message(ActionKind.APPEND, id, events, None, None, None)
            writer = self._log.writer(id)
            place, _ = writer.send(message, action)
            ends[writer] = place.next_position
            places.append(place)
        for writer, end in ends.items():
            writer.await_recorded(end)
        return places

    def save_snapshot(
        self,
        id: str,
        seq_nr: int,
        payload: bytes | None,
        payload_type: EventPayloadType = "binary",
        *,
        metadata: Any = None,
    ) -> RecordPosition:
        """Save the state of an entity after one of its events; the events stay as they are.

        Deleting events does not delete it, purging the journal does. Stores retain the latest ten.

        Args:
            id: the entity's id.
            seq_nr: the last event that is in the state, at most the journal's last one.
            payload: the state; in UTF-8 for the types "json" and "text", None for "none".
            payload_type: what the payload is.
            metadata: of the record, any JSON value.

        Returns:
            The place of the record.

        Raises:
            EntityError: there is no journal or it ends at a lower number, and nothing was saved;
                an argument is invalid; or as `append`.
            AeronTimeoutError: as `append`.
        """
        refused = f"cannot save a snapshot of {id!r} after event {seq_nr}"
        if seq_nr < 1:
            raise EntityError(f"{refused}: sequence numbers begin at 1", self.topic)
        event = Event(seq_nr, payload, payload_type)
        message, action = self._append_message(
            ActionKind.SNAPSHOT, id, [event], None, metadata, None
        )
        place, effect, last = self._log.decided(id, message, action)
        if effect is not Effect.SNAPSHOT:
            has = f"its journal ends with event {last}" if last else "it has no journal"
            raise EntityError(f"{refused}: {has}", self.topic)
        return place

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
        return self._log.written(id, *self._message(ActionKind.DELETE, id, min(to_seq_nr, last)))

    def purge(self, id: str) -> RecordPosition:
        """Delete a journal; the next append begins a new one.

        Returns:
            The place of the record.

        Raises:
            EntityError: as `append`.
            AeronTimeoutError: as `append`.
        """
        return self._log.written(id, *self._message(ActionKind.PURGE, id))

    def purge_unchanged(self, id: str, head: Head) -> bool:
        """Delete a journal if its last change is the one of a head in a store.

        Returns:
            Whether it is deleted; the order of the log decides between this and an append.

        Raises:
            EntityError: as `append`.
            AeronTimeoutError: as `append`.
        """
        message, action = self._message(ActionKind.CONDITIONAL_PURGE, id, head.offset)
        return self._log.decided(id, message, action)[1] is Effect.PURGED

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
            EntityError: the log is damaged, or purged where it is not replicated; by the iterator,
                if the log has been replicated and purged where it is still to be read: read again.
            AeronTimeoutError: the archive does not respond.
        """
        tail, head = self._view(id)
        return self._events(id, tail, head, max(from_seq_nr, 1))

    def snapshot(self, id: str) -> SnapshotRecord | None:
        """Return the snapshot with the highest sequence number, the last one if several have it.

        Returns:
            The snapshot; None when the journal, if any, has none.

        Raises:
            EntityError: as `read`.
            AeronTimeoutError: as `read`.
        """
        return self._snapshot(id, *self._view(id))

    def recover(self, id: str) -> tuple[SnapshotRecord | None, Generator[EventRecord, None, None]]:
        """Return the latest snapshot, and an iterator over the events after it, as `read`.

        If meanwhile such events are deleted from the store, a later snapshot is saved there or the
        journal is purged, the iterator raises an error at the end: recover it again then.

        Args:
            id: the entity's id.

        Returns:
            The snapshot, and the events after it; None, and all events.

        Raises:
            EntityError: as `read`; by the iterator, if the events may be incomplete.
            AeronTimeoutError: as `read`.
        """
        tail, head = self._view(id)
        snapshot = self._snapshot(id, tail, head)
        after = 0 if snapshot is None else snapshot.seq_nr
        return snapshot, self._events(id, tail, head, after + 1, is_whole=True)

    def pointer(self, id: str) -> int | None:
        """Return the last sequence number of a journal, None when there is no journal.

        Raises:
            EntityError: as `read`.
            AeronTimeoutError: as `read`.
        """
        tail, _ = self._view(id)
        return tail.fold.last if tail.fold.exists else None

    def subscribe(
        self,
        from_: From = "beginning",
        tags: Collection[str] = (),
        *,
        until_caught_up: bool = False,
        timeout_ns: int | None = None,
    ) -> Subscription:
        """Return the changes of all journals of the topic, each once, as they are recorded.

        Those of a partition, and so of an entity, are in the order of the log. Appends that the
        journal refused or had already are left out. With a store, events up to its pointers are
        taken from there; those that have been deleted or purged since are left out. Nothing is
        written, and a topic that has no recording yet is waited for.

        Args:
            from_: ``"beginning"``; ``"now"``: what is recorded from now on; or the positions of an
                earlier change or subscription. A partition that is missing begins at 0, which is
                the beginning. The first step refuses a position within a record (EntityError).
            tags: only events with one of these tags, and all deletes and purges. Default: all.
            until_caught_up: end when all that was recorded at the first step has been returned;
                else follow for ever.
            timeout_ns: how long to wait for the next change. Default: no limit.

        Raises:
            ConfigurationError: an argument is invalid.
            EntityStoreError: the store has no order of events across entities (Cassandra) or,
                for all tags, no index of positions.
        """
        return Subscription(
            self._client,
            self._log.partitions,
            self._store,
            from_,
            tags,
            until_caught_up,
            timeout_ns,
        )

    def _view(self, id: str) -> tuple[Tail, Head | None]:
        return self._log.view(
            id, lambda: self._message(ActionKind.MARK, id, mark_id=uuid.uuid4().hex)[0]
        )

    def _events(
        self,
        id: str,
        tail: Tail,
        head: Head | None,
        from_seq_nr: int,
        is_whole: bool = False,
    ) -> Generator[EventRecord, None, None]:
        following: int | None = from_seq_nr
        if self._store is not None and head is not None:
            first = max(from_seq_nr, tail.fold.deleted + 1)
            following = yield from stored_events(
                self._store, self.topic, id, head, first, tail.end, is_whole=is_whole
            )
        if following is not None:
            yield from tail.events(following)

    def _snapshot(self, id: str, tail: Tail, head: Head | None) -> SnapshotRecord | None:
        found = [tail.snapshot()]
        if self._store is not None and head is not None:
            found.append(stored_snapshot(self._store, self.topic, id, head))
        snapshots = [each for each in found if each is not None]
        return max(snapshots, key=lambda each: (each.seq_nr, each.offset), default=None)

    # -- messages ------------------------------------------------------------------------------

    def _append_message(
        self,
        kind: ActionKind,
        id: str,
        events: Sequence[Event],
        expire_after_ns: int | None,
        metadata: Any,
        payload_metadata: Any,
    ) -> tuple[bytes, ActionHeader]:
        try:
            payload, payload_type = encode_events(events, expire_after_ns, payload_metadata)
            now_ms = time.time_ns() // 1_000_000
            first, last = events[0].seq_nr, events[-1].seq_nr
            message = encode_fields(
                kind,
                id,
                now_ms,
                self._origin,
                self._version,
                metadata,
                first,
                last,
                payload_type,
                payload,
            )
            return message, ActionHeader(kind, id.encode(), first, last, now_ms)
        except CodecError as error:
            what = "save a snapshot of" if kind is ActionKind.SNAPSHOT else "append to"
            raise EntityError(f"cannot {what} {id!r}: {error}", self.topic) from error

    def _message(
        self, kind: ActionKind, id: str, to_seq_nr: int = 0, mark_id: str = ""
    ) -> tuple[bytes, ActionHeader]:
        now_ms = time.time_ns() // 1_000_000
        try:
            message = encode_fields(
                kind,
                id,
                now_ms,
                self._origin,
                self._version,
                to_seq_nr=to_seq_nr,
                mark_id=mark_id,
            )
            return message, ActionHeader(kind, id.encode(), 0, to_seq_nr, now_ms)
        except CodecError as error:
            raise EntityError(str(error), self.topic) from error

    def close(self) -> None:
        """Close the publications; recordings stop when no other writer is left. Idempotent."""
        self._log.close()
