"""The changes of the journals of one partition, from the store and then from the log.

Up to its pointer the store decides: its events, by position, and between them the deletes and
purges of the log. An event that has been deleted or purged meanwhile is left out, and what removed
it follows. From the pointer on the log is folded, each journal over its head in the store, which is
read at the first action of the journal. If the store has that action already, its head is of a
later moment: then the store decides again, up to its new pointer. So the journals in memory are
those with actions since the pointer; without a store, those of the whole log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape._native import Effect, Fold
from aerotape.codecs.entity.actions import ActionHeader, ActionKind, Append
from aerotape.codecs.entity.messages import decode, read_header
from aerotape.entity.following.changes import (
    TopicAppend,
    TopicChange,
    TopicDelete,
    TopicPurge,
)
from aerotape.entity.log.recording import PartitionRecording
from aerotape.entity.log.tail import check_start, damaged, of_another_log, records_of
from aerotape.entity.partition import Partition
from aerotape.entity.transitions import record_id
from aerotape.errors import CodecError, EntityError, InvalidPositionError
from aerotape.frame_header import HEADER_LENGTH
from aerotape.waiting import Blocking, Task, Wait

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.entity.log.archive import LogArchive, Records
    from aerotape.entity.stores.store import Store
    from aerotape.message import Message

# Changes that are taken from a store at a time.
_BATCH: Final = 256
_NO_CHANGES: Final = {ActionKind.MARK, ActionKind.SNAPSHOT}


T = TypeVar("T")
Steps = Generator[Wait | TopicChange, None, T]
"""A task that also yields changes."""


def _called(call: Callable[[], T]) -> Task[T]:
    """Call a store."""
    calling = Blocking(call)
    yield calling
    return calling.value


class _StoredChanges:
    """Changes that a store yields in the order of the log."""

    def __init__(self, changes: Iterator[TopicChange]) -> None:
        self._changes = changes
        self._batch: deque[TopicChange] = deque()

    def next(self, end: int) -> Task[TopicChange | None]:
        """Remove and return the next change if its record begins before a position."""
        if not self._batch:
            self._batch.extend((yield from _called(lambda: list(islice(self._changes, _BATCH)))))
        return self._batch.popleft() if self._batch and self._batch[0].offset < end else None


class _PurgedError(EntityError):
    """The log begins at `start`, past where it is needed."""

    def __init__(self, message: str, topic: str, start: int) -> None:
        super().__init__(message, topic)
        self.start = start


class PartitionChanges:
    """The changes of one partition. For one thread.

    Attributes:
        position: the changes by records at lower positions have been returned, bytes.
    """

    def __init__(
        self,
        archive: LogArchive,
        partition: Partition,
        recording: RecordingDescriptor,
        store: Store | None,
        position: int,
        tags: Collection[str],
    ) -> None:
        """Begin at a position. `Entities.subscribe` documents the arguments."""
        self.position = position
        self._archive = archive
        self._partition = partition
        self._recording_id = recording.recording_id
        self._term_length = recording.term_buffer_length
        self._recording = PartitionRecording(archive, partition, recording.recording_id)
        self._store = store
        self._tags = frozenset(tags)
        self._folds: dict[bytes, Fold] = {}
        # The log is folded up to here; None: the store is to be asked where to begin.
        self._folded: int | None = None
        self._end = -1

    def new(self) -> Steps[None]:
        """Yield the changes that have been recorded since the last call.

        Raises:
            EntityError: the log is damaged, or purged where it is needed, or not that of the
                position or the store.
            EntityStoreError: the store does not respond.
        """
        end = yield from self._recording.end()
        if end == self._end:
            return
        try:
            while True:
                try:
                    if self._folded is None:
                        yield from self._begin(end)
                    if (yield from self._from_log(end)):
                        break
                except _PurgedError as error:
                    # Replicated and purged since the store was asked where to begin?
                    replicated = yield from self._replicated()
                    if replicated < error.start or self.position < error.start:
                        raise
                self._forget()
        except BaseException:
            self._forget()  # an action may have been applied and its change not returned
            raise
        self._end = end

    def _forget(self) -> None:
        self._folds.clear()
        self._folded = None

    def _begin(self, end: int) -> Steps[None]:
        """Yield the changes that the store has, and set where the log is to be read."""
        partition, archive, store = self._partition, self._archive, self._store
        # In this order: what is replicated now may be purged in a moment.
        start = yield from archive.start_position(self._recording_id)
        replicated = yield from self._replicated()
        check_start(partition, start, replicated, store is not None)
        if max(self.position, replicated) > end:
            end = yield from archive.last_position(self._recording_id)
        if replicated > end:
            raise of_another_log(partition, self._recording_id, replicated, end)
        if self.position > end:
            raise EntityError(
                f"{partition} cannot be followed from {self.position}, recording "
                f"{self._recording_id} ends at {end}: the position is that of another log; follow "
                "from the beginning",
                partition.topic,
            )
        if store is not None and self.position < replicated:
            yield from self._from_store(store, start, replicated)
            self.position = replicated
        self._folded = replicated

    def _replicated(self) -> Task[int]:
        """Return the position up to which the store has the log, bytes; 0 without a store."""
        if self._store is None:
            return 0
        topic, index = self._partition.topic, self._partition.index
        pointer = yield from _called(partial(self._store.pointer, topic, index))
        return 0 if pointer is None else pointer.next_position

    # -- the store -----------------------------------------------------------------------------

    def _from_store(self, store: Store, start: int, end: int) -> Steps[None]:
        begin = self.position
        events = _StoredChanges(self._stored_events(store, begin, end))
        if begin > 0:  # else there is nothing that removals could remove
            if start > begin:
                raise self._purged_from(begin, start)
            with closing(self._removals(store, start, begin, end)) as removals:
                for step in removals:
                    if isinstance(step, TopicChange):
                        while (event := (yield from events.next(step.offset))) is not None:
                            yield self._at(event)
                        yield self._at(step)
                    else:
                        yield step
        while (event := (yield from events.next(end))) is not None:
            yield self._at(event)

    def _at(self, change: TopicChange) -> TopicChange:
        self.position = change.offset + HEADER_LENGTH
        return change

    def _stored_events(self, store: Store, begin: int, end: int) -> Iterator[TopicChange]:
        topic, index = self._partition.topic, self._partition.index
        found = store.events_between(topic, index, begin, end, self._tags)
        for offset, group in groupby(found, key=lambda item: item[1].offset):
            items = list(group)
            events = tuple(record for _, record in items)
            yield TopicAppend(id=items[0][0], partition=index, offset=offset, events=events)

    def _removals(self, store: Store, start: int, begin: int, end: int) -> Steps[None]:
        """Yield the deletes and purges in the part of the log that is replicated."""
        # A term begins with a frame; at `begin` there need not be one.
        scanned_from = max(start, begin - begin % self._term_length)
        with closing(self._archive.records(self._recording_id, scanned_from, end)) as records:
            while batch := (yield from self._next(records, scanned_from)):
                for message in batch:
                    header = self._header(message)
                    self._check_within(message)
                    kind, offset = header.kind, message.position
                    if offset < begin:
                        continue
                    if kind is ActionKind.DELETE:
                        yield self._delete(header, offset)
                    elif kind is ActionKind.PURGE or (
                        kind is ActionKind.CONDITIONAL_PURGE
                        and (yield from self._is_gone(store, header.id, offset))
                    ):
                        yield self._purge(header, offset)

    def _is_gone(self, store: Store, id: bytes, offset: int) -> Task[bool]:
        """Whether the journal that there was at a position has been purged."""
        topic, index = self._partition.topic, self._partition.index
        head = yield from _called(partial(store.head, topic, self._id(id, offset)))
        if head is None:
            return True
        end = yield from self._archive.last_position(self._recording_id)
        with closing(self._archive.records(self._recording_id, offset, end)) as records:
            while batch := (yield from self._next(records, offset)):
                for message in batch:
                    header = self._header(message)
                    if header.id == id and record_id(index, message.position, id) == head.record_id:
                        return True
        return False

    # -- the log -------------------------------------------------------------------------------

    def _from_log(self, end: int) -> Steps[bool]:
        """Fold the log and yield its changes; return False if the store is ahead of it."""
        assert self._folded is not None
        begin = self._folded
        with closing(self._archive.records(self._recording_id, begin, end)) as records:
            while batch := (yield from self._next(records, begin)):
                for message in batch:
                    header = self._header(message)
                    self._check_within(message)
                    offset = message.position
                    change = None
                    if header.kind not in _NO_CHANGES:
                        fold = self._folds.get(header.id)
                        if fold is None:
                            fold = yield from self._stored_fold(header.id, offset)
                        if fold is None:
                            return False
                        effect = fold.apply(header, offset)
                        if offset >= self.position:
                            change = self._change(effect, header, message, fold.after)
                    self._folded = message.end_position
                    self.position = max(self.position, message.end_position)
                    if change is not None:
                        yield change
        return True

    def _stored_fold(self, id: bytes, offset: int) -> Task[Fold | None]:
        """Return a journal in front of its first action; None: the store has the action already."""
        head = None
        if self._store is not None:
            topic, index = self._partition.topic, self._partition.index
            view = partial(self._store.view, topic, index, self._id(id, offset))
            pointer, head = yield from _called(view)
            if pointer is not None and pointer.next_position > offset:
                return None
        return self._folds.setdefault(id, Fold(head))

    def _change(
        self, effect: Effect, header: ActionHeader, message: Message, after: int
    ) -> TopicChange | None:
        offset = message.position
        if effect is Effect.DELETED:
            return self._delete(header, offset)
        if effect is Effect.PURGED:
            return self._purge(header, offset)
        if effect is not Effect.ADDED or header.to_seq_nr <= after:
            return None
        index = self._partition.index
        try:
            append = decode(message.payload)
            assert isinstance(append, Append)
            events = tuple(
                record
                for record in records_of(append, index, offset)
                if record.seq_nr > after
                and (not self._tags or not self._tags.isdisjoint(record.event.tags))
            )
        except CodecError as error:
            raise damaged(self._partition, self._recording_id, offset, error) from error
        if not events:
            return None
        return TopicAppend(id=append.id, partition=index, offset=offset, events=events)

    # -- both ----------------------------------------------------------------------------------

    def _check_within(self, message: Message) -> None:
        """Refuse a position within a record, which would be left out silently (EntityError).

        That after its header is where a change from the store ends: the store has no end.
        """
        begin, end, position = message.position, message.end_position, self.position
        if begin < position < end and position != begin + HEADER_LENGTH:
            raise EntityError(
                f"{self._partition} cannot be followed from {position}, within the record from "
                f"{begin} to {end}: follow from {begin}, or from {end} without that record",
                self._partition.topic,
            )

    def _delete(self, header: ActionHeader, offset: int) -> TopicDelete:
        return TopicDelete(
            id=self._id(header.id, offset),
            partition=self._partition.index,
            offset=offset,
            to_seq_nr=header.to_seq_nr,
            timestamp_ms=header.timestamp_ms,
        )

    def _purge(self, header: ActionHeader, offset: int) -> TopicPurge:
        return TopicPurge(
            id=self._id(header.id, offset),
            partition=self._partition.index,
            offset=offset,
            timestamp_ms=header.timestamp_ms,
        )

    def _id(self, id: bytes, offset: int) -> str:
        try:
            return id.decode()
        except UnicodeDecodeError as error:
            invalid = CodecError(f"id of an action is not UTF-8: {error}")
            raise damaged(self._partition, self._recording_id, offset, invalid) from error

    def _next(self, records: Records, begin: int) -> Task[list[Message]]:
        """Return the next records of a part of the log that begins at a position."""
        try:
            return (yield from records.next())
        except InvalidPositionError as error:
            start = yield from self._archive.start_position(self._recording_id)
            if start <= begin:
                partition = self._partition
                raise EntityError(
                    f"{partition} cannot be followed from {begin}: {error}", partition.topic
                ) from error
            raise self._purged_from(begin, start) from error

    def _header(self, message: Message) -> ActionHeader:
        try:
            return read_header(message.payload)
        except CodecError as error:
            raise damaged(
                self._partition, self._recording_id, message.position, error
            ) from error

    def _purged_from(self, begin: int, start: int) -> EntityError:
        return _PurgedError(
            f"{self._partition} cannot be followed from {begin}, its log begins at {start}: "
            "deletes and purges preceding that are not known; follow from the beginning",
            self._partition.topic,
            start,
        )
