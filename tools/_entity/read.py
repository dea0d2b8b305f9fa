"""`read`: print the events of a journal."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, Final

from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import Json, emit_line
from aerotape.tools._entity._common import add_journal_command, journals, seq_nr

if TYPE_CHECKING:
    from aerotape.archive.entity.records import EventRecord


# Characters in texts of JSON that control a terminal or begin a line.
_CONTROL: Final = re.compile("[\x7f-\x9f\u2028\u2029]")


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_journal_command(commands, "read", _read)
    parser.add_argument(
        "--from", dest="from_seq_nr", metavar="N", type=seq_nr, default=1, help="the first event"
    )


def _read(args: argparse.Namespace) -> None:
    """Print the events of a journal, one a line.

    With --json, the payload of a binary event is hexadecimal, that of a json event is printed as it
    was appended, except that its line breaks are spaces and characters that would control a
    terminal are escaped: the value is the same.
    """
    with journals(args) as entities:
        records = entities.read(args.key, args.from_seq_nr)
        for record in records:
            emit_line(event_row(record), event_text(record), args)


def event_text(record: EventRecord) -> str:
    """Return an event as a line for people."""
    return f"{record.seq_nr} {record.event.payload_type} {payload_text(record) or ''}".rstrip()


def event_row(record: EventRecord) -> dict[str, Any]:
    """Return the fields of an event that `--json` prints."""
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


def _payload(record: EventRecord) -> str | None:
    shown = payload_text(record)
    if shown is None or record.event.payload_type != "json":
        return shown
    one_line = shown.replace("\r", " ").replace("\n", " ")  # in texts they are escaped
    return Json(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", one_line))


def payload_text(record: EventRecord) -> str | None:
    """Return a payload as text, that of a binary event in hexadecimal; None: none."""
    payload = record.event.payload
    if payload is None:
        return None
    return payload.hex() if record.event.payload_type == "binary" else payload.decode()
