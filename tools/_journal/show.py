"""`show`: show one record of a journal in full."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import AerotapeError, CodecError, JournalError
from aerotape.tools._cli.arguments import identity
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import ABSENT, Absent, as_row, emit, note, print_section
from aerotape.tools._journal.arguments import add_journal, one_journal
from aerotape.tools._journal.rows import JournalRow, RecordRow, record_fields

if TYPE_CHECKING:
    from aerotape.codecs.raft_journal.directory import RaftJournal, StoredRecord


@dataclass(frozen=True)
class RecordPlace(JournalRow):
    """The place of a record in the files.

    Attributes:
        segment: name of the segment file.
        offset: position in the file, bytes.
        length: length, bytes.
    """

    segment: str
    offset: int
    length: int


@dataclass(frozen=True, kw_only=True)
class ShownRecord(RecordRow, RecordPlace):
    """A record of a journal in full.

    Attributes:
        records: the engine's records in an application entry, with their values; null if it has
            others.
        data: the data of an application entry that is not records of the engine, hexadecimal.
    """

    records: Any | Absent = ABSENT
    data: bytes | Absent = ABSENT


JSON_ROWS: Final = {"show": ShownRecord}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "show", _show)
    add_journal(parser)
    parser.add_argument("index", metavar="INDEX", type=identity, help="the record's index")


def _show(args: argparse.Namespace) -> int:
    """Show one record of a journal in full.

    Shows its place in the file, its raft entry, and the engine's records in an application entry,
    with their values from MessagePack. Without the package msgpack, values are in hexadecimal; so
    is the data of an application entry that is not records of the engine.
    """
    from aerotape.codecs.raft_journal.directory import RaftJournal

    journal = RaftJournal.open(one_journal(args), args.name)
    try:
        record = next(journal.records(args.index), None)
        is_there = record is not None and record.index == args.index
        last_index = args.index if is_there else journal.last_index()
    except JournalError as error:
        note(f"{error}; run `aerotape journal verify` for all damage")
        return EXIT_DATA_SUSPECT
    if record is None or record.index != args.index:
        raise _missing(journal, args.index, last_index)
    shown = ShownRecord(
        journal=journal.name,
        segment=record.segment.name,
        offset=record.offset,
        length=len(record.record),
        **record_fields(record),
        **_application(record),
    )
    if args.json:
        emit(shown, args)
        return EXIT_OK
    row = as_row(shown)
    records = row.pop("records", None)
    if records is not None:
        del row["raft_record"]
    emit(row, args)
    if records:
        print()
    for each in records or ():
        print_section(f"record at position {each['position']}", each)
    return EXIT_OK


def _missing(journal: RaftJournal, index: int, last_index: int) -> AerotapeError:
    first_index = journal.first_index
    has = f"its records are {first_index} to {last_index}"
    if last_index < first_index:
        has = f"it has no records, and the first will be {first_index}"
    return AerotapeError(f"journal {journal.name} has no record {index}: {has}")


def _application(record: StoredRecord) -> dict[str, Any]:
    """Return the engine's records in an application entry, or its data if it has others."""
    from aerotape.codecs.raft.application import decode_records, decode_value
    from aerotape.codecs.raft.entries import ApplicationEntry, decode_entry

    try:
        entry = decode_entry(record.data)
    except CodecError:
        return {}
    if not isinstance(entry, ApplicationEntry):
        return {}
    try:
        records = decode_records(entry.data)
    except CodecError:
        return {"records": None, "data": entry.data}
    return {"records": [{**asdict(each), "value": decode_value(each.value)} for each in records]}
