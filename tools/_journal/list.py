"""`list`: list the records of a journal, one a line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import JournalError
from aerotape.tools._cli.arguments import count, identity
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_line, note
from aerotape.tools._cli.times import time_text
from aerotape.tools._journal.arguments import add_journal, for_each_journal
from aerotape.tools._journal.rows import JournalRow, MemberRow, RecordRow, record_fields

if TYPE_CHECKING:
    from aerotape.codecs.raft_journal.directory import StoredRecord

_COLUMNS = "{:>12}  {:>12}  {:>8}  {:13}  {:>12}  {:>12}  {:>10}  {}"
_NAMES = ("index", "asqn", "term", "type", "lowest_asqn", "highest_asqn", "length", "members")


@dataclass(frozen=True)
class ListedRecord(RecordRow, JournalRow):
    """A record of a journal, and its raft entry."""


JSON_ROWS: Final = {"list": ListedRecord}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "list", _list)
    add_journal(parser)
    parser.add_argument(
        "--from-index",
        metavar="N",
        type=identity,
        help="the index of the first record (default: the journal's first)",
    )
    parser.add_argument("--count", metavar="N", type=count, help="the maximum number of records")


def _list(args: argparse.Namespace) -> int:
    """List the records of a journal, one a line.

    Of a broker's data directory, those of each partition. With --json each line is an object with
    the serialized raft entry in hexadecimal; the fields of a record whose data is not a raft entry
    are null. At a damaged record the list ends with an error; `aerotape journal verify` shows all
    damage.
    """
    from itertools import islice

    from aerotape.codecs.raft_journal.directory import RaftJournal

    def read(directory: Path) -> int:
        journal = RaftJournal.open(directory, args.name)
        if not args.json:
            # Not a table of `emit`, which would hold all rows to align them.
            print(_COLUMNS.format(*_NAMES))
        try:
            for record in islice(journal.records(args.from_index), args.count):
                row = ListedRecord(journal=journal.name, **record_fields(record))
                emit_line(row, "" if args.json else _line(record, row), args)
        except JournalError as error:
            note(f"{error}; run `aerotape journal verify` for all damage")
            return EXIT_DATA_SUSPECT
        return EXIT_OK

    return for_each_journal(args, read)


def _line(record: StoredRecord, row: ListedRecord) -> str:
    shown = [getattr(row, name) for name in _NAMES[:6]]
    members = ""
    if isinstance(row.members, Sequence) and isinstance(row.timestamp, int):
        members = f"at {time_text(row.timestamp)}: {_names(row.members)}"
        if isinstance(row.old_members, Sequence) and row.old_members:
            members += f", before {_names(row.old_members)}"
    cells = ("-" if value is None else value for value in shown)
    return _COLUMNS.format(*cells, len(record.record), members).rstrip()


def _names(members: Sequence[MemberRow]) -> str:
    return ", ".join(f"{each.member_id} {each.type}" for each in members) or "none"
