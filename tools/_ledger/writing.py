"""`create`, `add`, `sync`, `close` and `replace-mirror`: actions that change a ledger."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from aerotape.codecs.journal_type import JOURNAL_TYPES
from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import channel, integer
from aerotape.tools._cli.connection import connect
from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit
from aerotape.tools._ledger._common import (
    LedgerId,
    LedgerRow,
    add_ledger_command,
    add_ledger_options,
    add_password_option,
    emit_info,
    given_ledger,
    has_ledger_options,
    id_row,
    password_of,
    required_ledger,
)

_DIGEST_TYPES: Final = ("CRC32C", "CRC32", "HMAC", "DUMMY")
_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class AddedEntries(LedgerId):
    """Entries that were added.

    Attributes:
        entries_added: number of entries added.
        last_entry_id: id of the last entry added.
        last_add_confirmed: last entry confirmed, -1 without one.
    """

    entries_added: int
    last_entry_id: int
    last_add_confirmed: int | None


@dataclass(frozen=True, slots=True)
class SyncedLedger(LedgerId):
    """A ledger whose entries are on storage.

    Attributes:
        last_add_confirmed: last entry confirmed, -1 without one.
    """

    last_add_confirmed: int | None


JSON_ROWS: Final = {
    "create": LedgerRow,
    "add": AddedEntries,
    "sync": SyncedLedger,
    "close": LedgerRow,
    "open": LedgerRow,
    "replace-mirror": LedgerRow,
}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    create = add_ledger_command(commands, "create", _create)
    add_ledger_options(create)
    create.add_argument(
        "--type",
        choices=JOURNAL_TYPES,
        default="PD_JOURNAL",
        help="acknowledge adds on storage (PD_JOURNAL, the default) or in the page cache",
    )
    create.add_argument(
        "--digest-type",
        choices=_DIGEST_TYPES,
        default="CRC32C",
        help="the digest of each entry (default: CRC32C; DUMMY: none)",
    )
    create.add_argument(
        "--write-quorum",
        metavar="N",
        type=_quorum,
        default=1,
        help="archives that record each entry (default: 1)",
    )
    create.add_argument(
        "--ack-quorum",
        metavar="N",
        type=_quorum,
        default=1,
        help="archives that have to acknowledge an add (default: 1)",
    )
    create.add_argument(
        "--mirror",
        dest="mirrors",
        metavar="CHANNEL",
        type=channel,
        action="append",
        default=[],
        help="the control channel of another archive that records it (repeatable)",
    )
    add_password_option(create)

    add = add_ledger_command(commands, "add", _add)
    add_ledger_options(add)
    add.add_argument(
        "payloads",
        metavar="PAYLOAD",
        nargs="*",
        help="the text of an entry; without any, each line of standard input is one",
    )
    add.add_argument("--close", action="store_true", help="close the ledger afterwards")
    add.add_argument(
        "--take-over",
        action="store_true",
        help="end another writer of the ledger, also one that is alive",
    )
    add_password_option(add)

    add_ledger_options(add_ledger_command(commands, "sync", _sync))

    for name in ("close", "open"):  # BookKeeper's name is open
        close = add_ledger_command(commands, name, _close)
        add_ledger_options(close)
        add_password_option(close)

    replace = add_ledger_command(commands, "replace-mirror", _replace_mirror)
    add_ledger_options(replace)
    for name, which in (("mirror", "mirror that is replaced"), ("replacement", "other archive")):
        help_ = f"the control channel of the {which}"
        replace.add_argument(name, metavar=name.upper(), type=channel, help=help_)
    replace.add_argument(
        "--lost",
        action="store_true",
        help="the mirror that is replaced has lost the ledger, or will never return: it no longer"
        " counts at once",
    )


def _quorum(text: str) -> int:
    return integer(text, 1, 100)


def _create(args: argparse.Namespace) -> None:
    """Create a ledger and print its id, a random one unless one is given."""
    ledger = given_ledger(args)
    with connect(args) as client:
        created = client.declare_ledger(
            args.type,
            ledger,
            digest_type=args.digest_type,
            password=password_of(args),
            write_quorum=args.write_quorum,
            ack_quorum=args.ack_quorum,
            mirrors=args.mirrors,
        )
        emit_info(client.ledger_info(created), args)


def _add(args: argparse.Namespace) -> None:
    """Add entries to an open ledger and wait for their acknowledgement."""
    if has_ledger_options(args) and args.ledger is not None:
        args.ledger, args.payloads = None, [args.ledger, *args.payloads]
    ledger = required_ledger(args)
    if args.password_file == "-" and not args.payloads:
        raise ConfigurationError(
            "entries and password cannot both come from standard input: give a file",
            "--password-file",
        )
    count = 0
    with connect(args) as client:
        writer = client.open_ledger_writer(ledger, password_of(args), take_over=args.take_over)
        try:
            payloads = _payloads(args)
            while batch := list(islice(payloads, _BATCH)):
                writer.add_async(*batch)
                count += len(batch)
            last = writer.flush()
        finally:
            writer.close() if args.close else writer.detach()
        row = AddedEntries(
            **id_row(ledger),
            entries_added=count,
            last_entry_id=last,
            last_add_confirmed=client.ledger_info(ledger).last_add_confirmed,
        )
    emit(row, args)


def _payloads(args: argparse.Namespace) -> Iterator[bytes]:
    if args.payloads:
        return (text.encode(errors="surrogateescape") for text in args.payloads)
    return (line.removesuffix(b"\n") for line in sys.stdin.buffer)


def _sync(args: argparse.Namespace) -> None:
    """Force the entries of a ledger to storage and print the last one that is confirmed."""
    ledger = required_ledger(args)
    with connect(args) as client:
        last = client.sync_ledger(ledger)
    emit(SyncedLedger(**id_row(ledger), last_add_confirmed=last), args)


def _close(args: argparse.Namespace) -> None:
    """Close a ledger permanently: stop its writer and confirm what is recorded.

    `open` is the same: BookKeeper's name for it, because it recovers a ledger whose writer is gone.
    """
    ledger = required_ledger(args)
    with connect(args) as client, client.open_ledger(ledger, password_of(args)) as reader:
        emit_info(reader.refresh(), args)


def _replace_mirror(args: argparse.Namespace) -> None:
    """Mirror an open PD_JOURNAL ledger on another archive instead of one."""
    ledger = required_ledger(args)
    with connect(args) as client:
        client.replace_mirror(ledger, args.mirror, args.replacement, is_lost=args.lost)
        emit_info(client.ledger_info(ledger), args)
