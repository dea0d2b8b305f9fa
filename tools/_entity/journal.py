"""`pointer`, `delete` and `purge`: the last event of a journal, and the end of events."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import ABSENT, Absent, emit
from aerotape.tools._entity._common import (
    add_journal_command,
    add_store_only,
    journals,
    readable_journals,
    seq_nr,
)


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last event of a journal.

    Attributes:
        topic: topic.
        key: key of the entity.
        seq_nr: its sequence number, null without a journal.
    """

    topic: str
    key: str
    seq_nr: int | None


@dataclass(frozen=True, slots=True)
class DeletedEvents:
    """Events that were deleted; without a place if there was no journal.

    Attributes:
        topic: topic.
        key: key of the entity.
        deleted: whether there was a journal.
        partition: partition of the topic.
        offset: position of the record in the partition's log, bytes.
        next_position: position after the record, bytes.
    """

    topic: str
    key: str
    deleted: bool
    partition: int | Absent = ABSENT
    offset: int | Absent = ABSENT
    next_position: int | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class PurgedJournal:
    """A journal that was deleted.

    Attributes:
        topic: topic.
        key: key of the entity.
        partition: partition of the topic.
        offset: position of the record in the partition's log, bytes.
        next_position: position after the record, bytes.
    """

    topic: str
    key: str
    partition: int
    offset: int
    next_position: int


JSON_ROWS: Final = {"pointer": LastEvent, "delete": DeletedEvents, "purge": PurgedJournal}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    add_store_only(add_journal_command(commands, "pointer", _pointer))
    delete = add_journal_command(commands, "delete", _delete)
    delete.add_argument(
        "--to",
        dest="to_seq_nr",
        metavar="N",
        type=seq_nr,
        required=True,
        help="the last event to delete; more than there are: all",
    )
    add_journal_command(commands, "purge", _purge)


def _pointer(args: argparse.Namespace) -> None:
    """Print the last sequence number of a journal; none when there is no journal."""
    with readable_journals(args) as entities:
        last = entities.pointer(args.key)
    emit(LastEvent(args.topic, args.key, last), args)


def _delete(args: argparse.Namespace) -> None:
    """Delete the events of a journal up to one; later events stay.

    Nothing is written when there is no journal.
    """
    with journals(args) as entities:
        place = entities.delete(args.key, args.to_seq_nr)
    written: dict[str, int] = {} if place is None else place._asdict()
    row = DeletedEvents(topic=args.topic, key=args.key, deleted=place is not None, **written)
    emit(row, args)


def _purge(args: argparse.Namespace) -> None:
    """Delete a journal; the next append begins a new one."""
    with journals(args) as entities:
        place = entities.purge(args.key)
    emit(PurgedJournal(args.topic, args.key, **place._asdict()), args)
