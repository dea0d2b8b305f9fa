"""`read`, `list` and `status`: actions that change nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError, EntryError
from aerotape.qualified_id import QualifiedId
from aerotape.tools._cli.arguments import count, identity
from aerotape.tools._cli.connection import connect
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit, emit_line, note
from aerotape.tools._ledger._common import (
    LedgerRow,
    add_ledger_command,
    add_ledger_options,
    add_password_option,
    add_scope_option,
    emit_info,
    id_row,
    info_row,
    password_of,
    required_ledger,
)
from aerotape.tools._ledger.imported import (
    EntryRow,
    ImportedRow,
    imported_recording,
    imported_recordings,
    imported_row,
    read_imported,
)

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient
    from aerotape.codecs.entry import Entry


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope of an archive.

    Attributes:
        scope_id: scope id, unsigned, decimal.
        is_own: whether it is the archive's own scope.
    """

    scope_id: str
    is_own: bool


JSON_ROWS: Final = {
    "read": EntryRow,
    "list": LedgerRow | ImportedRow,
    "scopes": Scope,
    "status": LedgerRow | ImportedRow,
}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    read = add_ledger_command(commands, "read", _read)
    add_ledger_options(read)
    read.add_argument(
        "--first", metavar="ID", type=identity, default=0, help="the first entry (default: 0)"
    )
    read.add_argument(
        "--last", metavar="ID", type=identity, help="the last entry (default: all that may be read)"
    )
    read.add_argument(
        "--unconfirmed",
        action="store_true",
        help="read entries that are not on storage, too, which may be lost",
    )
    read.add_argument(
        "--follow",
        action="store_true",
        help="continue with entries as they are confirmed, until the ledger is closed",
    )
    add_password_option(read)

    listing = add_ledger_command(commands, "list", _list)
    add_scope_option(listing)
    listing.add_argument(
        "--all-scopes", action="store_true", help="list those of all scopes, not of one"
    )
    listing.add_argument("--count", metavar="N", type=count, help="the maximum number of ledgers")

    add_ledger_command(commands, "scopes", _scopes)

    status = add_ledger_command(commands, "status", _status)
    add_ledger_options(status)


def _read(args: argparse.Namespace) -> int:
    """Print the entries of a ledger: their ids and texts, with --json their bytes in hex.

    Of an imported recording, the messages. A damaged entry ends the output, with exit code 3.
    """
    ledger = required_ledger(args)
    if args.follow and args.unconfirmed:
        raise ConfigurationError(
            "--follow reads confirmed entries: leave out --unconfirmed", "--unconfirmed"
        )
    with connect(args) as client:
        if imported_recording(client, ledger) is not None:
            read_imported(client, ledger, args)
            return 0
        with client.open_ledger_read_only(ledger, password_of(args)) as reader:
            try:
                if args.unconfirmed:
                    entries = reader.read_unconfirmed(args.first, args.last)
                else:
                    entries = reader.read(args.first, args.last, follow=args.follow)
                for entry in entries:
                    _print(entry, args)
                    if args.follow:
                        sys.stdout.flush()
            except EntryError as error:
                note(f"aerotape ledger: {error}")
                return EXIT_DATA_SUSPECT
    return EXIT_OK


def _print(entry: Entry, args: argparse.Namespace) -> None:
    row = EntryRow(
        **id_row(entry.qualified_id),
        entry_id=entry.entry_id,
        last_add_confirmed=entry.last_add_confirmed,
        length=entry.length,
        payload=entry.payload,
    )
    emit_line(row, f"{entry.entry_id} {entry.payload.decode(errors='replace')}", args)


def _list(args: argparse.Namespace) -> None:
    """List the ledgers and the imported recordings of a scope in the order of their ids.

    `aerotape ledger scopes` lists the scopes. Ledgers that were created without an id are not in
    scope 0: --all-scopes lists them, too.
    """
    scope_id = args.ledger_scope_id or 0
    none = f"no ledgers in scope {scope_id}; --all-scopes lists those of all scopes"
    if args.all_scopes:
        if args.ledger_scope_id is not None:
            raise ConfigurationError(
                "--all-scopes and --ledger-scope-id exclude each other: give one", "--all-scopes"
            )
        none = "no ledgers"
    with connect(args) as client:
        scopes = sorted({0, *client.scopes()}) if args.all_scopes else [scope_id]
        listed = chain.from_iterable(_rows(client, each) for each in scopes)
        found = islice(listed, args.count)
        if args.json:
            for row in found:
                emit_line(row, "", args)
            return
        rows = (
            {
                "scope_id": row.scope_id,
                "ledger_id": row.ledger_id,
                "qualified_name": row.qualified_name,
                "type": row.type,
                "state": row.state,
                "writer": row.has_writer,
                "recording": row.recording_id,
                "confirmed": row.confirmed_position,
                "recorded": row.recorded_position,
            }
            for row in found
        )
        emit(rows, args, none=none)


def _rows(client: ArchiveClient, scope_id: int) -> Iterator[LedgerRow | ImportedRow]:
    """Iterate over what is listed of a scope."""
    ledgers: Iterator[tuple[QualifiedId, LedgerRow | ImportedRow]] = (
        (info.id, info_row(info)) for info in client.list_ledgers(scope_id)
    )
    imported: Iterator[tuple[QualifiedId, LedgerRow | ImportedRow]] = (
        (id, imported_row(id, descriptor))
        for id, descriptor in imported_recordings(client, scope_id)
    )
    return (row for _, row in merge(ledgers, imported, key=lambda each: each[0]))


def _scopes(args: argparse.Namespace) -> None:
    """List the scopes of an archive: that of its recordings, of imported ones, and of ledgers.

    Ledgers that were created by number alone are in scope 0, which is not listed.
    """
    from aerotape.catalog.scope_layout import scope_of_archive

    with connect(args) as client:
        own = scope_of_archive(client.archive_id)
        for scope_id in client.scopes():
            row = Scope(str(scope_id), scope_id == own)
            emit_line(row, f"{scope_id} (own)" if scope_id == own else str(scope_id), args)


def _status(args: argparse.Namespace) -> None:
    """Print the state of a ledger, with the last entries that are confirmed and pushed."""
    ledger = required_ledger(args)
    with connect(args) as client:
        descriptor = imported_recording(client, ledger)
        if descriptor is None:
            emit_info(client.ledger_info(ledger), args)
        else:
            emit(imported_row(ledger, descriptor), args)
