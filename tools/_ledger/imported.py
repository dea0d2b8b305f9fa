"""Imported recordings in the actions for ledgers: complete, and read message by message."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.qualified_id import QualifiedId
from aerotape.tools._cli.output import ABSENT, Absent, emit_line
from aerotape.tools._ledger._common import LedgerId, id_row

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.clients import ArchiveClient


@dataclass(frozen=True, slots=True)
class ImportedRow(LedgerId):
    """An imported recording, as a ledger.

    Attributes:
        type: RECORDING.
        state: CLOSED.
        has_writer: false.
        recording_id: recording id.
        confirmed_position: confirmed position, bytes.
        recorded_position: recorded position, bytes.
        created_ms: creation time, epoch milliseconds.
    """

    type: str
    state: str
    has_writer: bool
    recording_id: int
    confirmed_position: int
    recorded_position: int
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow(LedgerId):
    """An entry of a ledger, or a message of an imported recording.

    Attributes:
        entry_id: entry id.
        last_add_confirmed: last entry that was confirmed when this one was added; not of a
            message.
        length: bytes of the payloads up to this entry; not of a message.
        payload: its bytes, hexadecimal.
    """

    entry_id: int
    last_add_confirmed: int | Absent = ABSENT
    length: int | Absent = ABSENT
    payload: bytes


def imported_recordings(
    client: ArchiveClient, scope_id: int
) -> Iterator[tuple[QualifiedId, RecordingDescriptor]]:
    """Iterate over the imported recordings of a scope, in the order of their ids."""
    from aerotape.catalog.scope_layout import scope_of_archive

    if scope_id in (0, scope_of_archive(client.archive_id)):
        return
    for descriptor in client.list_recordings(scope_id=scope_id):
        yield QualifiedId(scope_id, descriptor.recording_id), descriptor


def imported_row(id: QualifiedId, descriptor: RecordingDescriptor) -> ImportedRow:
    """Return the row of an imported recording, as of a ledger."""
    return ImportedRow(
        **id_row(id),
        type="RECORDING",
        state="CLOSED",
        has_writer=False,
        recording_id=descriptor.recording_id,
        confirmed_position=descriptor.stop_position,
        recorded_position=descriptor.stop_position,
        created_ms=descriptor.start_timestamp_ms,
    )


def imported_recording(client: ArchiveClient, id: QualifiedId) -> RecordingDescriptor | None:
    """Return the imported recording with this id; None if there is none."""
    from aerotape.catalog.scope_layout import scope_of_archive

    if id.scope_id in (0, scope_of_archive(client.archive_id)) or id.ledger_id >> 63:
        return None
    return client.list_recording(id.ledger_id, scope_id=id.scope_id)


def read_imported(client: ArchiveClient, id: QualifiedId, args: argparse.Namespace) -> None:
    """Print the messages of an imported recording, numbered from 0 like entries."""
    with client.replay(id.ledger_id, scope_id=id.scope_id) as messages:
        for number, message in enumerate(messages):
            if args.last is not None and number > args.last:
                break
            if number >= args.first:
                payload = bytes(message.payload)
                row = EntryRow(
                    scope_id=str(id.scope_id),
                    ledger_id=str(id.ledger_id),
                    qualified_name=str(id),
                    entry_id=number,
                    payload=payload,
                )
                emit_line(row, f"{number} {payload.decode(errors='replace')}", args)
