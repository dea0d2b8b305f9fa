# Generated from asynchronous/entities.py: do not edit.
# Regenerate: python -m aerotape.client.generate
"""The journal of a topic, for asyncio: append, read, delete and purge by the id of an entity."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Self

from aerotape._native import Effect
from aerotape.client.blocking_requests import BlockingRequests
from aerotape.codecs.entity.actions import ActionKind, Event, EventPayloadType
from aerotape.codecs.journal_type import JournalType
from aerotape.context import Closing
from aerotape.entity import reading
from aerotape.entity.following.changes import TopicChange
from aerotape.entity.following.following import Following, From, follow
from aerotape.entity.log.topic_log import TopicLog
from aerotape.entity.log.writer import RecordPosition
from aerotape.entity.reading import JournalEvents
from aerotape.entity.records import EventRecord, Head, SnapshotRecord
from aerotape.errors import EntityError, SequenceConflictError


class Subscription(Iterator[TopicChange], Closing):
    """The changes of the journals of a topic. Created by `Entities.subscribe`.

    For one reader. Iterating waits for the next change. It raises `AeronTimeoutError` when there is
    none in time, and other errors when the archive or the store does not respond: iterate again to
    continue. A reader that is interrupted or cancelled loses no change.
    """

    def __init__(self, requests: BlockingRequests, following: Following) -> None:
        """Follow. Created by `Entities.subscribe`."""
        self._requests = requests
        self._following = following

    @property
    def positions(self) -> dict[int, int]:
        """The position to which each partition has been followed, bytes.

        A subscription from there continues after the change that was returned last. Positions also
        move with records that are no changes, or have none of the tags.
        """
        return dict(self._following.positions)

    @property
    def is_over(self) -> bool:
        """Whether it is closed, or has caught up and was to end then."""
        return self._following.is_over

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> TopicChange:
        change = self._requests._run(self._following.next())
        if change is None:
            raise StopIteration
        return change

    def take(self, limit: int) -> list[TopicChange]:
        """Return the changes that there are now, without waiting for more.

        Args:
            limit: the most changes.

        Raises:
            EntityError: the log is damaged, or purged where it is needed, or not that of the
                positions or the store.
            EntityStoreError: the store does not respond.
            AerotapeError: the archive is gone.
        """
        return self._requests._run(self._following.take(limit))

    def close(self) -> None:
        """End it. Idempotent."""
        self._following.close()


class Entities(Closing):
    """The journals of one topic. Created by `ArchiveClient.entities`.

    Any number of operations may be in progress at the same time. When one that writes is cancelled
    while it waits for room in the publication, nothing was written; later, what it has written is
    recorded, or may be.

    Attributes:
        topic: the topic's name.
        partitions: the number of its partitions.
        type: ``PD_JOURNAL`` or ``VD_JOURNAL``.
        statistics: what reads took from the log.
    """

    def __init__(self, requests: BlockingRequests, log: TopicLog) -> None:
        """Use an open topic. Created by `ArchiveClient.entities`."""
        self.topic = log.topic
        self.partitions = len(log.partitions)
        self.type: JournalType = log.partitions[0].type
        self.statistics = log.statistics
        self._requests = requests
        self._log = log

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
        message, action = self._log.messages.append(
            kind, id, events, expire_after_ns, metadata, payload_metadata
        )
        if expect is None:
            return self._requests._run(self._log.written(id, message, action))
        if action.from_seq_nr != expect + 1:
            raise EntityError(
                f"cannot append to {id!r}: the events begin with {action.from_seq_nr}; with "
                f"expect={expect} they begin with {expect + 1}",
                self.topic,
            )
        decided = self._log.decided(id, message, action)
        place, effect, last = self._requests._run(decided)
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
        append = partial(self._log.messages.append, ActionKind.APPEND)
        given = ((id, *append(id, events)) for id, events in appends)
        return self._requests._run(self._log.all_written(given))

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
        message, action = self._log.messages.append(
            ActionKind.SNAPSHOT, id, [event], metadata=metadata
        )
        decided = self._log.decided(id, message, action)
        place, effect, last = self._requests._run(decided)
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
        deleted = self._log.messages.other(ActionKind.DELETE, id, min(to_seq_nr, last))
        return self._requests._run(self._log.written(id, *deleted))

    def purge(self, id: str) -> RecordPosition:
        """Delete a journal; the next append begins a new one.

        Returns:
            The place of the record.

        Raises:
            EntityError: as `append`.
            AeronTimeoutError: as `append`.
        """
        purged = self._log.messages.other(ActionKind.PURGE, id)
        return self._requests._run(self._log.written(id, *purged))

    def purge_unchanged(self, id: str, head: Head) -> bool:
        """Delete a journal if its last change is the one of a head in a store.

        Returns:
            Whether it is deleted; the order of the log decides between this and an append.

        Raises:
            EntityError: as `append`.
            AeronTimeoutError: as `append`.
        """
        purged = self._log.messages.other(ActionKind.CONDITIONAL_PURGE, id, head.offset)
        _, effect, _ = self._requests._run(self._log.decided(id, *purged))
        return effect is Effect.PURGED

    # -- reading -------------------------------------------------------------------------------

    def read(self, id: str, from_seq_nr: int = 1) -> Generator[EventRecord, None, None]:
        """Iterate over the events of a journal, by strictly rising sequence number.

        It has everything that was acknowledged before it began, and may have later appends. First
        it looks through the part of the log that is not replicated; with a store that is up to
        date, the log is not read.

        Args:
            id: the entity's id.
            from_seq_nr: the first event.

        Raises:
            EntityError: the log is damaged, or purged where it is not replicated; by the iterator,
                if the log has been replicated and purged where it is still to be read: read again.
            AeronTimeoutError: the archive does not respond.
        """
        reading_it = reading.read(self._log, id, from_seq_nr)
        return self._requests._iterate(reading_it, self._each)

    def snapshot(self, id: str) -> SnapshotRecord | None:
        """Return the snapshot with the highest sequence number, the last one if several have it.

        Returns:
            The snapshot; None when the journal, if any, has none.

        Raises:
            EntityError: as `read`.
            AeronTimeoutError: as `read`.
        """
        return self._requests._run(reading.snapshot(self._log, id))

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
        recovering = reading.recover(self._log, id)
        snapshot, events = self._requests._run(recovering)
        return snapshot, self._each(events)

    def pointer(self, id: str) -> int | None:
        """Return the last sequence number of a journal, None when there is no journal.

        Raises:
            EntityError: as `read`.
            AeronTimeoutError: as `read`.
        """
        return self._requests._run(reading.pointer(self._log, id))

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
        begin = partial(follow, self._log, from_, tags, until_caught_up, timeout_ns)
        return self._requests._open(begin, partial(Subscription, self._requests))

    def _each(self, events: JournalEvents) -> Generator[EventRecord, None, None]:
        try:
            while batch := self._requests._run(events.next()):
                for record in batch:
                    yield record
        finally:
            events.close()

    def close(self) -> None:
        """Close the publications; recordings stop when no other writer is left. Idempotent."""
        self._log.close()
