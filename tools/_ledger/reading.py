"""`read`, `list` and `status`: actions that change nothing."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.arguments import count, identity
from aerotape.tools._cli.connection import connect
from aerotape.tools._cli.output import emit, emit_line
from aerotape.tools._ledger._common import (
    Actions,
    add_action,
    add_ledger_options,
    add_password_option,
    add_scope_option,
    id_row,
    info_row,
    password_of,
    required_ledger,
)


def add_actions(actions: Actions) -> None:
    """Add the actions."""
    read = add_action(actions, "read", _read)
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
    add_password_option(read)

    listing = add_action(actions, "list", _list)
    add_scope_option(listing)
    listing.add_argument("--count", metavar="N", type=count, help="the maximum number of ledgers")

    status = add_action(actions, "status", _status)
    add_ledger_options(status)


def _read(args: argparse.Namespace) -> int:
    """Print the entries of a ledger: their ids and texts, with --json their bytes in hex."""
    ledger = required_ledger(args)
    with (
        connect(args) as client,
        client.open_ledger_read_only(ledger, password_of(args)) as reader,
    ):
        read = reader.read_unconfirmed if args.unconfirmed else reader.read
        for entry in read(args.first, args.last):
            row = {
                **id_row(ledger),
                "entry_id": entry.entry_id,
                "last_add_confirmed": entry.last_add_confirmed,
                "length": entry.length,
                "payload": entry.payload,
            }
            emit_line(row, f"{entry.entry_id} {entry.payload.decode(errors='replace')}", args)
    return 0


def _list(args: argparse.Namespace) -> int:
    """List the ledgers of a scope in the order of their ids."""
    scope_id = args.ledger_scope_id or 0
    with connect(args) as client:
        found = client.list_ledgers(scope_id, count=args.count)
        if args.json:
            for info in found:
                emit_line(info_row(info), "", args)
            return 0
        rows = (
            {
                **id_row(info.id),
                "type": info.type,
                "state": info.state,
                "writer": info.has_writer,
                "recording": info.recording_id,
                "confirmed": info.confirmed_position,
                "recorded": info.recorded_position,
            }
            for info in found
        )
        emit(rows, args, none=f"no ledgers in scope {scope_id}")
    return 0


def _status(args: argparse.Namespace) -> int:
    """Print the state of a ledger, with the last entries that are confirmed and pushed."""
    ledger = required_ledger(args)
    with connect(args) as client:
        emit(info_row(client.ledger_info(ledger)), args)
    return 0
