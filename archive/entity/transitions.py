"""The replicator's state transitions: how actions change the stored journal of an entity.

`collapse` is a pure function of the stored head and of actions in log order. It returns one
change for all of them, equal to applying them one by one: events that a later delete or purge
of the same batch removes are never decoded or stored.

docs/entities.md has the table of what each action does; `tests/archive/entity/test_semantics.py`
compares the replicator, the reader (`head_info.py`) and the tables for Spark
(`native/src/entity/journals.rs`). Further rules:

- An action at an offset that the head already includes is ignored, so a batch may be repeated. A
  purge is repeated also at the head's offset.
- A journal whose first append begins at k > 1 has `delete_to` k - 1.
- An append adds events after the last one. Earlier ones, of a writer that did not know the last,
  are left out, as by a reader of the log, whose events rise strictly.
- Each incarnation of a journal has a record id, which its events repeat. Events left over from
  an earlier incarnation have another one and are not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from aerotape.archive.entity.records import Head
from aerotape.codecs.entity.actions import ActionHeader, ActionKind, Append, Events
from aerotape.codecs.entity.messages import SingleAppend, decode, read_header, single_append
from aerotape.codecs.entity.payload import events_of
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
    journal = None if head is None else _Journal.stored(head)
    for action in actions:
        kind = action.header.kind
        if kind is ActionKind.MARK:
            continue
        if kind is ActionKind.PURGE:
            if journal is not None and action.offset >= journal.offset:
                journal = None
        elif journal is None:
            journal = _Journal.begun(action)
        elif action.offset > journal.offset:
            journal.apply(action)
    if journal is None:
        return Change(head, head is not None, None, [], None)
    return Change(
        head,
        head is not None and journal.head is None,
        journal.delete(),
        journal.insertions(),
        journal.new_head(segment_size),
    )


def record_id(partition: int, offset: int, id: bytes) -> str:
    """Return the id of the incarnation that the action at this offset begins.

    It depends on the log alone, so that a repeated batch stores the same.
    """
    text = b"%d/%d/%b" % (partition, offset, id)
    digest = hashlib.md5(text, usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def expires_ms(timestamp_ms: int, expire_after_ns: int) -> int:
    """Return when a journal expires, milliseconds since the epoch.

    Args:
        timestamp_ms: of the last append, milliseconds since the epoch.
        expire_after_ns: nanoseconds; a part of a millisecond counts as a whole one.
    """
    return min(timestamp_ms - -expire_after_ns // 1_000_000, MAX_LONG)


@dataclass(slots=True)
class _Journal:
    """A journal to which actions are applied.

    Attributes:
        head: the stored head; None: the journal begins in this batch.
        record_id: id of the incarnation.
        offset: position of the last action, bytes.
        seq_nr: last event.
        deleted: last deleted event, 0: none.
        actions: those that were applied.
        appends: the appends among them, each with the last event preceding it.
    """

    head: Head | None
    record_id: str
    offset: int
    seq_nr: int
    deleted: int
    actions: list[LoggedAction] = field(default_factory=list)
    appends: list[tuple[LoggedAction, int]] = field(default_factory=list)

    @classmethod
    def stored(cls, head: Head) -> _Journal:
        """Return the journal in the store."""
        return cls(head, head.record_id, head.offset, head.seq_nr, head.delete_to or 0)

    @classmethod
    def begun(cls, action: LoggedAction) -> _Journal:
        """Return the journal that an append or a delete begins."""
        header = action.header
        id = record_id(action.partition, action.offset, header.id)
        # Of an append, the events preceding its first do not exist; of a delete, none does.
        if header.kind is ActionKind.APPEND:
            journal = cls(None, id, action.offset, 0, header.from_seq_nr - 1)
        else:
            journal = cls(None, id, action.offset, header.to_seq_nr, header.to_seq_nr)
        journal.apply(action)
        return journal

    def apply(self, action: LoggedAction) -> None:
        """Apply an append or a delete."""
        to = action.header.to_seq_nr
        self.offset = action.offset
        self.actions.append(action)
        if action.header.kind is ActionKind.APPEND:
            self.appends.append((action, self.seq_nr))
            self.seq_nr = max(self.seq_nr, to)
        else:
            self.deleted = max(self.deleted, min(to, self.seq_nr))

    def delete(self) -> tuple[int, int] | None:
        """Return the first and the last stored event to delete; None: none."""
        deleted = self.deleted if self.head is None else self.head.delete_to or 0
        return (deleted + 1, self.deleted) if self.deleted > deleted else None

    def insertions(self) -> list[Insertion]:
        """Return the appends of which events are stored."""
        found = (
            Insertion(action, max(seq_nr, self.deleted), self.record_id)
            for action, seq_nr in self.appends
        )
        return [each for each in found if each.action.header.to_seq_nr > each.after]

    def new_head(self, segment_size: int) -> Head | None:
        """Return the head to store; the segment size is that of a new journal."""
        if not self.actions:
            return self.head
        first, last = self.actions[0], self.actions[-1]
        if self.head is None:
            created_ms, origin = first.header.timestamp_ms, first.origin
        else:
            created_ms, origin = self.head.created_ms, self.head.origin
            segment_size = self.head.segment_size
        expire_after_ns, expires = _expiry(self.head, self.appends[-1][0] if self.appends else None)
        return Head(
            last.partition,
            self.offset,
            self.seq_nr,
            self.deleted or None,
            segment_size,
            expire_after_ns,
            expires,
            self.record_id,
            created_ms,
            last.header.timestamp_ms,
            origin,
        )


def _expiry(head: Head | None, last_append: LoggedAction | None) -> tuple[int | None, int | None]:
    """Return expiry (nanoseconds) and its time (milliseconds) after the last append of a batch."""
    if last_append is None:
        return (None, None) if head is None else (head.expire_after_ns, head.expires_ms)
    after_ns = last_append.expire_after_ns
    if after_ns is None:
        return None, None
    return after_ns, expires_ms(last_append.header.timestamp_ms, after_ns)
