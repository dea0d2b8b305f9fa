"""Reading a journal: what the store has of it, and then the end of the log."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from aerotape.entity.stored import stored_events, stored_snapshot
from aerotape.waiting import Blocking, Task

if TYPE_CHECKING:
    from aerotape.entity.log.tail import Tail
    from aerotape.entity.log.topic_log import TopicLog
    from aerotape.entity.records import EventRecord, Head, SnapshotRecord

# Events that are taken from a store at a time.
_BATCH: Final = 256


class JournalEvents:
    """Events of a journal, in batches."""

    def __init__(
        self,
        log: TopicLog,
        tail: Tail,
        head: Head | None,
        from_seq_nr: int,
        is_whole: bool = False,
    ) -> None:
        """Read what a view of the log has, from an event on.

        Args:
            log: of the topic.
            tail: the end of the log, which was scanned.
            head: of the journal in the store; None: it is not there.
            from_seq_nr: the first event.
            is_whole: as of `stored_events`.
        """
        self._tail = tail
        self._following: int | None = from_seq_nr
        self._stored: Generator[EventRecord, None, None] | None = None
        self._failure: Exception | None = None
        if log.store is not None and head is not None:
            first = max(from_seq_nr, tail.fold.deleted + 1)
            events = stored_events(
                log.store, log.topic, tail.id.decode(), head, first, tail.end, is_whole=is_whole
            )
            self._stored = self._then(events)
        self._logged = None if self._stored is not None else tail.events(from_seq_nr)

    def next(self) -> Task[list[EventRecord]]:
        """Return the next events; none at the end."""
        if self._failure is not None:
            raise self._failure
        if self._stored is not None:
            taking = Blocking(partial(self._take, self._stored))
            yield taking
            if taking.value:
                return taking.value
            self._stored = None
            if self._following is not None:
                self._logged = self._tail.events(self._following)
        return [] if self._logged is None else (yield from self._logged.next())

    def _then(
        self, events: Generator[EventRecord, None, int | None]
    ) -> Generator[EventRecord, None, None]:
        self._following = yield from events

    def _take(self, stored: Generator[EventRecord, None, None]) -> list[EventRecord]:
        """Return the next stored events; an error after some of them is raised later."""
        found: list[EventRecord] = []
        try:
            found.extend(islice(stored, _BATCH))
        except Exception as error:
            if not found:
                raise
            self._failure = error
        return found

    def close(self) -> None:
        """End a pass over the log. Idempotent."""
        if self._logged is not None:
            self._logged.close()


def read(log: TopicLog, id: str, from_seq_nr: int) -> Task[JournalEvents]:
    """Return the events of a journal from a number on."""
    tail, head = yield from log.view(id)
    return JournalEvents(log, tail, head, max(from_seq_nr, 1))


def recover(log: TopicLog, id: str) -> Task[tuple[SnapshotRecord | None, JournalEvents]]:
    """Return the latest snapshot of a journal, and the events after it."""
    tail, head = yield from log.view(id)
    found = yield from _snapshot(log, tail, head)
    after = 0 if found is None else found.seq_nr
    return found, JournalEvents(log, tail, head, after + 1, is_whole=True)


def snapshot(log: TopicLog, id: str) -> Task[SnapshotRecord | None]:
    """Return the latest snapshot of a journal; None: there is none."""
    tail, head = yield from log.view(id)
    return (yield from _snapshot(log, tail, head))


def pointer(log: TopicLog, id: str) -> Task[int | None]:
    """Return the last sequence number of a journal, None when there is no journal."""
    tail, _ = yield from log.view(id)
    return tail.fold.last if tail.fold.exists else None


def _snapshot(log: TopicLog, tail: Tail, head: Head | None) -> Task[SnapshotRecord | None]:
    found = [tail.snapshot()]
    if log.store is not None and head is not None:
        asked = Blocking(partial(stored_snapshot, log.store, log.topic, tail.id.decode(), head))
        yield asked
        found.append(asked.value)
    snapshots = [each for each in found if each is not None]
    return max(snapshots, key=lambda each: (each.seq_nr, each.offset), default=None)
