"""Journals as a store has them: its part of a read, and reads without an archive."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from aerotape.entity.records import EventRecord, Head, Replicated, SnapshotRecord
from aerotape.entity.topic import check_topic
from aerotape.errors import JournalChangedError
from aerotape.units import MAX_LONG

if TYPE_CHECKING:
    from aerotape.entity.stores.base import EntityStore
    from aerotape.entity.stores.store import Store


class StoredEntities:
    """The journals of one topic in a store alone; no archive is needed. Thread-safe.

    Reads have what is replicated and may lack any later record: `replicated_to` returns how far and
    since when that is. Those of `Entities` have everything.

    Attributes:
        topic: the topic's name.
    """

    def __init__(self, store: EntityStore, topic: str) -> None:
        """Read a topic of an open store, which is left open.

        Raises:
            ConfigurationError: `topic` is not a topic's name.
            EntityStoreError: the store does not have the topic.
        """
        self.topic = check_topic(topic)
        self._store = store
        self.replicated_to()

    def read(self, id: str, from_seq_nr: int = 1) -> Generator[EventRecord, None, None]:
        """Return an iterator over the stored events, by strictly rising sequence number.

        They are of one journal and without a gap, also if a replicator changes it meanwhile.

        Args:
            id: the entity's id.
            from_seq_nr: the first event.

        Raises:
            JournalChangedError: by the iterator, if it was purged or shortened so that events after
                those returned so far are missing.
            EntityStoreError: the store does not respond.
        """
        return self._events(id, self._store.head(self.topic, id), max(from_seq_nr, 1))

    def pointer(self, id: str) -> int | None:
        """Return the last sequence number of a journal, None when the store has no journal.

        Raises:
            EntityStoreError: the store does not respond.
        """
        head = self._store.head(self.topic, id)
        return None if head is None else max(head.seq_nr, head.delete_to or 0)

    def snapshot(self, id: str) -> SnapshotRecord | None:
        """Return the stored snapshot with the highest sequence number; None: there is none.

        Raises:
            EntityStoreError: the store does not respond.
        """
        return self._store.snapshot(self.topic, id)

    def recover(self, id: str) -> tuple[SnapshotRecord | None, Generator[EventRecord, None, None]]:
        """Return the latest stored snapshot, and an iterator over the stored events after it.

        As `Entities.recover`.

        Raises:
            JournalChangedError: by the iterator, as `Entities.recover`.
            EntityStoreError: the store does not respond.
        """
        head = self._store.head(self.topic, id)
        if head is None:
            return None, self._events(id, None, 1)
        snapshot = stored_snapshot(self._store, self.topic, id, head)
        after = max(head.delete_to or 0, 0 if snapshot is None else snapshot.seq_nr)
        return snapshot, self._events(id, head, after + 1, is_whole=True)

    def replicated_to(self) -> dict[int, Replicated]:
        """Return the pointers of the topic's partitions, by their indices.

        Records that were written later are missing; earlier ones too if the replicator had not
        reached them. A partition of which nothing is replicated is not in it.

        Raises:
            EntityStoreError: the store does not respond, or does not have the topic any more.
        """
        if found := self._store.replicated(self.topic):
            return found
        raise self._store.no_topic(self.topic)

    def _events(
        self, id: str, head: Head | None, from_seq_nr: int, is_whole: bool = False
    ) -> Generator[EventRecord, None, None]:
        if head is not None:
            yield from stored_events(
                self._store, self.topic, id, head, from_seq_nr, is_whole=is_whole
            )


def stored_events(
    store: Store,
    topic: str,
    id: str,
    head: Head,
    from_seq_nr: int,
    end: int = MAX_LONG,
    *,
    is_whole: bool = False,
) -> Generator[EventRecord, None, int | None]:
    """Iterate over the stored events of a journal, by strictly rising sequence number.

    Args:
        store: of the journal.
        topic: the topic's name.
        id: the entity's id.
        head: of the journal, read before; those of another incarnation are left out.
        from_seq_nr: the first event.
        end: events of records at this position or higher, bytes, are left out.
        is_whole: raise an error at the end if events from `from_seq_nr` on may have been deleted.

    Returns:
        The number that follows the last event; None: the journal was purged before the first one.

    Raises:
        JournalChangedError: the journal was purged after the first event, or events after those
            returned so far were deleted. With `is_whole`, also if a later snapshot was stored, up
            to which events may be being deleted.
    """
    following, is_first = from_seq_nr, True
    try:
        for record in store.events(topic, id, from_seq_nr, head.record_id):
            # Records from `end` on may be of a journal that replaced this one.
            if following <= record.seq_nr and record.offset < end:
                following, is_first = record.seq_nr + 1, False
                yield record
    except JournalChangedError:
        if is_whole or not is_first:
            raise
        return None
    if is_whole and not _has_all(store, topic, id, head, from_seq_nr):
        raise JournalChangedError(
            f"journal {id!r} of topic {topic} was purged, shortened or saved while it was read: "
            "the events may be incomplete; recover it again",
            topic,
        )
    if is_first:
        # The events that precede those in the log may have been deleted since the head was read.
        now = _now(store, topic, id, head)
        return None if now is None else max(following, (now.delete_to or 0) + 1)
    return following


def stored_snapshot(store: Store, topic: str, id: str, head: Head) -> SnapshotRecord | None:
    """Return the latest stored snapshot of the journal with a head that was read before."""
    found = store.snapshot(topic, id)
    return None if found is None or _now(store, topic, id, head) is None else found


def _has_all(store: Store, topic: str, id: str, head: Head, from_seq_nr: int) -> bool:
    """Whether the events from a number on are certainly still there."""
    now, snapshot = _now(store, topic, id, head), store.snapshot(topic, id)
    if now is None or (now.delete_to or 0) >= from_seq_nr:
        return False
    # Cassandra stores a snapshot first, then deletes events, and changes the head last.
    return snapshot is None or snapshot.seq_nr < from_seq_nr


def _now(store: Store, topic: str, id: str, head: Head) -> Head | None:
    """Return the head as it is now, None if the journal was purged since."""
    now = store.head(topic, id)
    return now if now is not None and now.record_id == head.record_id else None
