"""The replicator's state transitions: how actions change the stored journal of an entity.

`collapse` is a pure function of the stored head and of actions in log order. It returns one
change for all of them, equal to applying them one by one: events that a later delete or purge
of the same batch removes are never decoded or stored. `native/src/entity/fold.rs` has the rules.

Each incarnation of a journal has a record id, which its events repeat. Events left over from an
earlier incarnation have another one and are not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from aerotape._native import Effect, Fold
from aerotape.codecs.entity.actions import ActionHeader, Append, Events
from aerotape.codecs.entity.messages import SingleAppend, decode, read_header, single_append
from aerotape.codecs.entity.payload import events_of
from aerotape.entity.records import Head
from aerotape.errors import CodecError
from aerotape.units import MAX_LONG


class LoggedAction:
    """An action in the log, decoded only as far as it is needed.

    Attributes:
        partition: index of the recording in the topic.
        offset: position of its first frame, bytes.
        header: kind, id, range and time.
        single: the most frequent append; None: another action.
    """

    def __init__(self, partition: int, offset: int, message: bytes) -> None:
        """Read the header.

        Raises:
            CodecError: it is not an action, or damaged.
        """
        self.partition = partition
        self.offset = offset
        self.header: ActionHeader = read_header(message)
        self.single: SingleAppend | None = single_append(message, self.header)
        self._message = message

    @property
    def origin(self) -> str:
        """The writer."""
        return decode(self._message).origin if self.single is None else self.single.origin or ""

    @cached_property
    def append(self) -> Append:
        """The append, its payload encoded (CodecError: it is damaged)."""
        append = decode(self._message)
        assert isinstance(append, Append)
        return append

    @cached_property
    def events(self) -> Events:
        """The events of an append (CodecError: the payload is damaged or of another version)."""
        try:
            return events_of(self.append)
        except CodecError as error:
            where = f"partition {self.partition}, position {self.offset}"
            raise CodecError(f"{where}: {error}") from error

    @property
    def expire_after_ns(self) -> int | None:
        """The expiry of an append, nanoseconds (CodecError: the payload is damaged)."""
        return None if self.single is not None else self.events.expire_after_ns


@dataclass(frozen=True, slots=True)
class Insertion:
    """The events of an append that are stored: those after `after`."""

    action: LoggedAction
    after: int
    record_id: str

    @property
    def count(self) -> int:
        """The number of these events (CodecError: the append is damaged)."""
        if self.action.single is not None:
            return 1
        return sum(event.seq_nr > self.after for event in self.action.events.events)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one key by a batch of actions, to be stored in the order of the attributes.

    Attributes:
        before: the stored head.
        is_purged: delete all stored events of the journal.
        delete: first and last of the stored events to delete; None: none.
        insertions: appends whose events are added, in log order.
        head: the head to store; None: no entry.
        snapshots: records whose payload has one event, a snapshot with the sequence number of the
            last event in it; of the head's incarnation.
    """

    before: Head | None
    is_purged: bool
    delete: tuple[int, int] | None
    insertions: list[Insertion]
    head: Head | None
    snapshots: list[LoggedAction] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.is_purged and self.head is self.before and not self.snapshots


def collapse(head: Head | None, actions: Iterable[LoggedAction], segment_size: int) -> Change:
    """Return the change of a journal by actions of its key, in log order.

    Args:
        head: the stored head; None: no entry.
        actions: of one key, in the order of the log.
        segment_size: events in a segment of a journal that these actions begin.

    Raises:
        CodecError: an append that has to be stored is damaged.
    """
    fold = Fold(head)
    batch = _Batch()
    for action in actions:
        effect = fold.apply(action.header, action.offset)
        if effect is Effect.ADDED:
            batch.changes.append(action)
            batch.appends.append((action, fold.after))
        elif effect is Effect.DELETED or (effect is Effect.REFUSED and fold.exists):
            batch.changes.append(action)
        elif effect is Effect.SNAPSHOT:
            batch.snapshots.append(action)
        elif effect is Effect.PURGED:
            batch = _Batch()
    if not fold.exists:
        return Change(head, head is not None, None, [], None)
    before = head if fold.begun_at is None else None
    new_head = batch.head(before, fold, segment_size)
    deleted = fold.deleted if before is None else before.delete_to or 0
    return Change(
        head,
        head is not None and before is None,
        (deleted + 1, fold.deleted) if fold.deleted > deleted else None,
        batch.insertions(fold.deleted, new_head.record_id),
        new_head,
        batch.snapshots,
    )


def record_id(partition: int, offset: int, id: bytes) -> str:
    """Return the id of the incarnation that the action at this offset begins.

    It depends on the log alone, so that a repeated batch stores the same.
    """
    text = b"%d/%d/%b" % (partition, offset, id)
    digest = hashlib.md5(text, usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def expires_ms(timestamp_ms: int, expire_after_ns: int) -> int:
    """Return the time at which a journal expires, milliseconds since the epoch.

    Args:
        timestamp_ms: of the last append, milliseconds since the epoch.
        expire_after_ns: nanoseconds; a part of a millisecond counts as a whole one.
    """
    return min(timestamp_ms - -expire_after_ns // 1_000_000, MAX_LONG)


@dataclass(slots=True)
class _Batch:
    """The actions of a batch that count: those after the last purge.

    Attributes:
        changes: appends, refused ones too, and deletes.
        appends: those that add events, each with the last event preceding these.
        snapshots: in log order.
    """

    changes: list[LoggedAction] = field(default_factory=list)
    appends: list[tuple[LoggedAction, int]] = field(default_factory=list)
    snapshots: list[LoggedAction] = field(default_factory=list)

    def insertions(self, deleted: int, record_id: str) -> list[Insertion]:
        """Return the appends of which events are stored."""
        found = (Insertion(each, max(after, deleted), record_id) for each, after in self.appends)
        return [each for each in found if each.action.header.to_seq_nr > each.after]

    def head(self, before: Head | None, fold: Fold, segment_size: int) -> Head:
        """Return the head to store; `before`: of this journal in the store, None: it is new."""
        if not self.changes:
            assert before is not None
            return before
        first, last = self.changes[0], self.changes[-1]
        expire_after_ns, expires = _expiry(before, self.appends[-1][0] if self.appends else None)
        return Head(
            last.partition,
            fold.offset,
            fold.seq_nr,
            fold.deleted or None,
            segment_size if before is None else before.segment_size,
            expire_after_ns,
            expires,
            record_id(first.partition, first.offset, first.header.id)
            if before is None
            else before.record_id,
            first.header.timestamp_ms if before is None else before.created_ms,
            last.header.timestamp_ms,
            first.origin if before is None else before.origin,
        )


def _expiry(head: Head | None, last_append: LoggedAction | None) -> tuple[int | None, int | None]:
    """Return expiry (nanoseconds) and its time (milliseconds) after the last append of a batch."""
    if last_append is None:
        return (None, None) if head is None else (head.expire_after_ns, head.expires_ms)
    after_ns = last_append.expire_after_ns
    if after_ns is None:
        return None, None
    return after_ns, expires_ms(last_append.header.timestamp_ms, after_ns)
