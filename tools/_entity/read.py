"""`read`: print the events of a journal."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import emit_line
from aerotape.tools._entity._common import add_journal_command, journals, seq_nr

if TYPE_CHECKING:
    from aerotape.archive.entity.records import EventRecord


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_journal_command(commands, "read", _read)
    parser.add_argument(
        "--from", dest="from_seq_nr", metavar="N", type=seq_nr, default=1, help="the first event"
    )


def _read(args: argparse.Namespace) -> None:
    """Print the events of a journal, one a line.

    With --json, the payload of a json event is a JSON value, that of a binary event hexadecimal.
    """
    with journals(args) as entities:
        records = entities.read(args.key, args.from_seq_nr)
        for record in records:
            row = _row(record)
            text = row["payload"] if record.event.payload_type != "json" else _text(record)
            emit_line(
                row, f"{record.seq_nr} {record.event.payload_type} {text or ''}".rstrip(), args
            )


def _row(record: EventRecord) -> dict[str, Any]:
    return {
        "seq_nr": record.seq_nr,
        "tags": list(record.event.tags),
        "payload_type": record.event.payload_type,
        "payload": _payload(record),
        "timestamp_ms": record.timestamp_ms,
        "partition": record.partition,
        "offset": record.offset,
        "origin": record.origin or None,
        "version": record.version or None,
        "metadata": record.metadata,
        "payload_metadata": record.payload_metadata,
        "expire_after_ns": record.expire_after_ns,
    }


def _payload(record: EventRecord) -> Any:
    if record.event.payload is None:
        return None
    if record.event.payload_type == "binary":
        return record.event.payload.hex()
    return json.loads(_text(record)) if record.event.payload_type == "json" else _text(record)


def _text(record: EventRecord) -> str:
    return (record.event.payload or b"").decode()
