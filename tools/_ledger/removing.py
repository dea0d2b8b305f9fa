"""`delete`: removes a ledger."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.protocol import NULL_VALUE
from aerotape.tools._cli.confirm import add_confirmation_option, confirm
from aerotape.tools._cli.connection import connect
from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit
from aerotape.tools._ledger._common import (
    LedgerId,
    add_ledger_command,
    add_ledger_options,
    id_row,
    required_ledger,
)


@dataclass(frozen=True, slots=True)
class DeletedLedger(LedgerId):
    """A ledger that was deleted.

    Attributes:
        deleted: whether it existed.
    """

    deleted: bool


JSON_ROWS: Final = {"delete": DeletedLedger}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    delete = add_ledger_command(commands, "delete", _delete)
    add_ledger_options(delete)
    add_confirmation_option(delete)


def _delete(args: argparse.Namespace) -> None:
    """Delete a ledger without a writer, with all its entries."""
    ledger = required_ledger(args)
    with connect(args) as client:
        recording_id = client.ledger_info(ledger).recording_id
        recording = "" if recording_id == NULL_VALUE else f" with its recording {recording_id}"
        confirm(args, f"delete ledger {ledger}{recording}")
        client.delete_ledger(ledger)
    emit(DeletedLedger(**id_row(ledger), deleted=True), args)
