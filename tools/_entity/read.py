"""`read` and `snapshot`: print the events of a journal, and its latest snapshot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aerotape.tools._cli.group import Commands
from aerotape.tools._cli.output import Json, emit_line
from aerotape.tools._entity._common import (
    add_journal_command,
    add_store_only,
    readable_journals,
    seq_nr,
)

if TYPE_CHECKING:
    from aerotape.codecs.entity.actions import Event
    from aerotape.entity.records import EventRecord, SnapshotRecord


@dataclass(frozen=True, slots=True)
class _RecordRow:
    """An event or a snapshot, with the record that wrote it.

    Attributes:
        seq_nr: sequence number of the event, from 1.
        payload_type: json, text, binary or none.
        payload: payload: JSON, text, or hexadecimal of a binary one; null without one.
        timestamp_ms: time, epoch milliseconds.
        partition: partition of the topic.
        offset: position of the record in the partition's log, bytes.
        origin: the writer, a host or an application; null if it is not known.
        version: version of the writer, null if it is not known.
        metadata: JSON that was given with the append or snapshot.
    """

    seq_nr: int
    payload_type: str
    payload: Any
    timestamp_ms: int
    partition: int
    offset: int
    origin: str | None
    version: str | None
    metadata: Any


@dataclass(frozen=True, slots=True)
class EventRow(_RecordRow):
    """An event.

    Attributes:
        tags: tags of the event.
        payload_metadata: JSON that was given with the event.
        expire_after_ns: expiry after the last append, nanoseconds.
    """

    tags: Sequence[str]
    payload_metadata: Any
    expire_after_ns: int | None


@dataclass(frozen=True, slots=True)
class SnapshotRow(_RecordRow):
    """A snapshot.

    Attributes:
        seq_nr: the last event that is in the snapshot.
    """


JSON_ROWS: Final = {"read": EventRow, "snapshot": SnapshotRow}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    parser = add_journal_command(commands, "read", _read)
    parser.add_argument(
        "--from", dest="from_seq_nr", metavar="N", type=seq_nr, default=1, help="the first event"
    )
    add_store_only(parser)
    add_store_only(add_journal_command(commands, "snapshot", _snapshot))


def _read(args: argparse.Namespace) -> None:
    """Print the events of a journal, one a line.

    With --json, the payload of a binary event is hexadecimal, that of a json event is printed as it
    was appended, except that its line breaks are spaces and characters that would control a
    terminal are escaped: the value is the same.
    """
    with readable_journals(args) as entities:
        for record in entities.read(args.key, args.from_seq_nr):
            emit_line(event_row(record), event_text(record), args)


def _snapshot(args: argparse.Namespace) -> None:
    """Print the latest snapshot of a journal as `read` prints an event; nothing if it has none.

    `aerotape entity save-snapshot` accepts the line that is printed with --json.
    """
    with readable_journals(args) as entities:
        record = entities.snapshot(args.key)
    if record is not None:
        emit_line(snapshot_row(record), _text(snapshot_event(record)), args)


def snapshot_event(record: SnapshotRecord) -> Event:
    """Return the state in a snapshot as the event that `save-snapshot` accepts."""
    from aerotape.codecs.entity.actions import Event

    return Event(record.seq_nr, record.payload, record.payload_type)


def snapshot_row(record: SnapshotRecord) -> SnapshotRow:
    """Return the fields of a snapshot."""
    return SnapshotRow(
        seq_nr=record.seq_nr, **_payload(snapshot_event(record)), **_about(record)
    )


def event_text(record: EventRecord) -> str:
    """Return an event as a line for people."""
    return _text(record.event)


def event_row(record: EventRecord) -> EventRow:
    """Return the fields of an event that `--json` prints."""
    return EventRow(
        seq_nr=record.seq_nr,
        tags=list(record.event.tags),
        **_payload(record.event),
        **_about(record),
        payload_metadata=record.payload_metadata,
        expire_after_ns=record.expire_after_ns,
    )


def _about(record: EventRecord | SnapshotRecord) -> dict[str, Any]:
    """Return the columns of the record that has an event or a snapshot."""
    return {
        "timestamp_ms": record.timestamp_ms,
        "partition": record.partition,
        "offset": record.offset,
        "origin": record.origin or None,
        "version": record.version or None,
        "metadata": record.metadata,
    }


def _text(event: Event) -> str:
    return f"{event.seq_nr} {event.payload_type} {payload_text(event) or ''}".rstrip()


def _payload(event: Event) -> dict[str, Any]:
    return {"payload_type": event.payload_type, "payload": _one_line(event)}


def _one_line(event: Event) -> str | None:
    shown = payload_text(event)
    if shown is None or event.payload_type != "json":
        return shown
    return Json.of(shown)


def payload_text(event: Event) -> str | None:
    """Return a payload as text, that of a binary event in hexadecimal; None: none."""
    if event.payload is None:
        return None
    return event.payload.hex() if event.payload_type == "binary" else event.payload.decode()
