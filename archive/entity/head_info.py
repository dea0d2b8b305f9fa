"""The state of one journal in the end of the log that is not replicated yet.

A fold over the actions of one entity, oldest first. Only their kinds and ranges matter, so no
payload is decoded. Together with the head in the store it determines what a reader returns.

Unlike in kafka-journal, a purge is remembered when appends or deletes follow it: the store still
has the events of the purged journal, and no reader may return them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aerotape.codecs.entity.actions import ActionHeader, ActionKind


@dataclass(frozen=True, slots=True)
class Empty:
    """No action: the store has everything."""


@dataclass(frozen=True, slots=True)
class Appended:
    """There are events.

    Attributes:
        offset: position of the first append that counts, bytes.
        seq_nr: sequence number of the last event.
        delete_to: events up to this one are deleted; None: none.
        is_purged: a purge precedes the first append; nothing in the store counts.
    """

    offset: int
    seq_nr: int
    delete_to: int | None = None
    is_purged: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """There are only deletes.

    Attributes:
        delete_to: events up to this one are deleted.
        reset_to: the sequence number that the journal has if the store has none: the limit of
            the first delete.
        is_purged: a purge precedes them; nothing in the store counts.
    """

    delete_to: int
    reset_to: int
    is_purged: bool = False


@dataclass(frozen=True, slots=True)
class Purged:
    """The last action is a purge."""


HeadInfo = Empty | Appended | Deleted | Purged


def fold(info: HeadInfo, action: ActionHeader, offset: int) -> HeadInfo:
    """Return the state after one more action.

    Args:
        info: the state before it; `Empty()` at first.
        action: the action's kind and range.
        offset: position of its record, bytes.
    """
    match action.kind:
        case ActionKind.APPEND:
            return _append(info, action.from_seq_nr, action.to_seq_nr, offset)
        case ActionKind.DELETE:
            return _delete(info, action.to_seq_nr)
        case ActionKind.PURGE:
            return Purged()
    return info


def last_seq_nr(info: HeadInfo, stored: int | None) -> int | None:
    """Return the last sequence number of a journal; None: there is no journal.

    Args:
        info: its state in the end of the log.
        stored: the last sequence number in the store; None: no journal there.
    """
    match info:
        case Appended(seq_nr=seq_nr, is_purged=is_purged):
            return seq_nr if is_purged or stored is None else max(seq_nr, stored)
        case Deleted(reset_to=reset_to, is_purged=is_purged):
            return reset_to if is_purged or stored is None else stored
        case Purged():
            return None
    return stored


def _append(info: HeadInfo, first: int, last: int, offset: int) -> HeadInfo:
    match info:
        case Appended():
            # As in stores, the last sequence number never falls.
            return replace(info, seq_nr=max(info.seq_nr, last))
        case Deleted(delete_to, _, is_purged):
            kept = min(delete_to, first - 1)
            return Appended(offset, last, kept or None, is_purged)
        case Purged():
            return Appended(offset, last, is_purged=True)
    return Appended(offset, last)


def _delete(info: HeadInfo, to: int) -> HeadInfo:
    match info:
        case Appended(_, seq_nr, delete_to):
            return replace(info, delete_to=min(max(to, delete_to or 0), seq_nr))
        case Deleted(delete_to):
            return replace(info, delete_to=max(delete_to, to))
        case Purged():
            return Deleted(to, to, is_purged=True)
    return Deleted(to, to)
