"""The interface of a store, as far as readers of journals need it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from aerotape.entity.records import EventRecord, Head, Pointer, SnapshotRecord


class Store(Protocol):
    """Replicated journals. A reader may use it in another thread than the one that opened it."""

    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        """Return the pointer of a partition and the head of a journal; the head not earlier."""

    def pointer(self, topic: str, partition: int) -> Pointer | None:
        """Return the pointer of a partition; None: nothing of it is replicated."""

    def head(self, topic: str, id: str) -> Head | None:
        """Return the state of a journal, None when there is none."""

    def events(
        self, topic: str, id: str, from_seq_nr: int, record_id: str
    ) -> Iterator[EventRecord]:
        """Iterate over the events of a journal, by rising sequence number, in bounded memory.

        Only events of the incarnation, past the `delete_to` of its head and of at least
        `from_seq_nr`.

        Raises:
            JournalChangedError: it was purged, or events after those returned so far were deleted.
        """

    def snapshot(self, topic: str, id: str) -> SnapshotRecord | None:
        """Return the snapshot with the highest sequence number; None: there is none.

        Only of the incarnation that the head has at the call.
        """

    def events_between(
        self, topic: str, partition: int, begin: int, end: int, tags: Collection[str] = ()
    ) -> Iterator[tuple[str, EventRecord]]:
        """Iterate over ids and events of a partition by position, then by sequence number.

        Only events of records from position `begin` on and below `end`, bytes, and if there are
        tags, with one of them.
        """
