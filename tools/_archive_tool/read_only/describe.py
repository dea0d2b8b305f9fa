"""`describe` and `describe-all`: show an archive directory's mark file, catalog and recordings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import MarkFileError
from aerotape.times import datetime_of_ms
from aerotape.tools._archive_tool._common import add_recording_id, note_text
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import as_row, emit, note, print_section

if TYPE_CHECKING:
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.file.entries import CatalogEntry
    from aerotape.catalog.recovery.suspect_marks import SuspectNote
    from aerotape.replay.offline.directory import ArchiveDirectory

_TIMESTAMPS: Final = ("start_timestamp_ms", "stop_timestamp_ms", "activity_timestamp_ms")


@dataclass(frozen=True)
class EntryState:
    """The state of an entry in the catalog.

    Attributes:
        recording_id: recording id.
        state: VALID, INVALID or DELETED.
        suspect: whether it is marked as suspect, and the damage was not accepted.
        damage: why the entry is damaged, or what was repaired; empty if nothing is known.
    """

    recording_id: int
    state: str
    suspect: bool
    damage: str


@dataclass(frozen=True, kw_only=True)
class RecordingRow(RecordingDescriptor, EntryState):
    """A recording in the catalog.

    Attributes:
        checksum: checksum of the entry, 0 without one.
    """

    checksum: int


@dataclass(frozen=True, slots=True)
class CatalogSummary:
    """The catalog.

    Attributes:
        version: version.
        capacity_bytes: capacity of the catalog, bytes.
        alignment_bytes: alignment of entries, bytes.
        next_recording_id: id of the next recording.
        recordings: number of recordings.
    """

    version: str
    capacity_bytes: int
    alignment_bytes: int
    next_recording_id: int
    recordings: int


@dataclass(frozen=True, slots=True)
class MarkFileRow:
    """The mark file.

    Attributes:
        path: file.
        active: whether an archive is using the directory.
        version: version.
        pid: process id.
        archive_id: archive id.
        start_timestamp_ms: when the archive started, epoch milliseconds.
        activity_timestamp_ms: last sign of life, epoch milliseconds; -1 after a stop.
        control_channel: control channel.
        control_stream_id: control stream id.
        local_control_channel: local control channel.
        local_control_stream_id: local control stream id.
        events_channel: channel of recording events.
        events_stream_id: stream id of recording events.
        aeron_directory: the media driver's directory.
        errors: number of distinct errors in the error log.
    """

    path: str
    active: bool
    version: str
    pid: int
    archive_id: int
    start_timestamp_ms: int
    activity_timestamp_ms: int
    control_channel: str
    control_stream_id: int
    local_control_channel: str
    local_control_stream_id: int
    events_channel: str
    events_stream_id: int
    aeron_directory: str
    errors: int


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """An archive directory.

    Attributes:
        mark_file: the mark file, null without one.
        catalog: the catalog.
        recordings: its recordings, valid ones unless all were asked for.
    """

    mark_file: MarkFileRow | None
    catalog: CatalogSummary
    recordings: Sequence[RecordingRow]


JSON_ROWS: Final = {"describe": DirectoryRow | RecordingRow, "describe-all": DirectoryRow}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    add_recording_id(add_command(commands, "describe", _describe, reads_urls=True))
    add_command(commands, "describe-all", _describe_all, reads_urls=True)


def _describe(args: argparse.Namespace) -> int:
    """Show the mark file, the catalog and its valid recordings, or one recording of any state."""
    from aerotape.replay.offline.directory import directory_at, open_directory

    if args.recording_id is not None:
        return _describe_one(open_directory(args.directory), args)
    return _describe_recordings(directory_at(args.directory), args, everything=False)


def _describe_all(args: argparse.Namespace) -> int:
    """Show the mark file, the catalog and all its recordings, invalid and deleted ones too."""
    from aerotape.replay.offline.directory import directory_at

    return _describe_recordings(directory_at(args.directory), args, everything=True)


def _describe_one(directory: ArchiveDirectory, args: argparse.Namespace) -> int:
    from aerotape.catalog.file.entries import unknown_recording

    for entry in directory.entries():
        if entry.recording_id == args.recording_id:
            notes = directory.suspect_notes().get(entry.recording_id, [])
            emit(recording_row(entry, notes), args)
            return 0
    raise unknown_recording(args.recording_id, (), directory.path)


def _describe_recordings(
    directory: ArchiveDirectory, args: argparse.Namespace, *, everything: bool
) -> int:
    from aerotape.catalog.layout import version_string

    with directory.open_catalog() as catalog:
        summary = CatalogSummary(
            version=version_string(catalog.version),
            capacity_bytes=catalog.capacity_bytes,
            alignment_bytes=catalog.alignment,
            next_recording_id=catalog.next_recording_id,
            recordings=len(catalog),
        )
        mark_file: MarkFileRow | None = None
        try:
            mark_file = _mark_file_row(directory)
        except MarkFileError as error:
            # The catalog alone is useful: a copy of a directory may lack the mark file.
            note(f"warning: {error}")
        rows = _recording_rows(directory, catalog, everything=everything)
        if args.json:
            emit(DirectoryRow(mark_file, summary, list(rows)), args)
            return 0
        if mark_file:
            print_section("mark file", for_people(mark_file))
        print_section("catalog", as_row(summary))
        for row in rows:
            print_section(f"recording {row.recording_id}", for_people(row))
    return 0


def _recording_rows(
    directory: ArchiveDirectory, catalog: Catalog, *, everything: bool
) -> Iterator[RecordingRow]:
    """Iterate the recordings to show; warn about each damaged entry, shown or not."""
    from aerotape.catalog.file.entries import entry_damage
    from aerotape.catalog.layout import RecordingState

    notes = directory.suspect_notes()
    for entry in catalog.entries():
        row = recording_row(entry, notes.get(entry.recording_id, []))
        if damage := entry_damage(entry):
            name = f"recording {entry.recording_id}" if entry.recording_id >= 0 else "an entry"
            place = f"offset {entry.offset} of the catalog"
            note(f"warning: {name} at {place} is damaged: {damage}")
        if everything or entry.state == RecordingState.VALID:
            yield row


def recording_row(entry: CatalogEntry, notes: Sequence[SuspectNote]) -> RecordingRow:
    """Return all that the catalog has of a recording, and why it was marked as suspect."""
    from aerotape.catalog.file.entries import entry_damage
    from aerotape.catalog.recovery.suspect_marks import is_suspect

    damages = [entry_damage(entry), *map(note_text, notes)]
    _, *fields = RecordingDescriptor.__slots__
    return RecordingRow(
        recording_id=entry.recording_id,
        state=entry.state_name,
        suspect=is_suspect(notes),
        damage="; ".join(filter(None, damages)),
        **{name: getattr(entry.descriptor, name) for name in fields},
        checksum=entry.checksum,
    )


def _mark_file_row(directory: ArchiveDirectory) -> MarkFileRow:
    from aerotape.catalog.layout import version_string

    info = directory.mark_file()
    header = info.header
    return MarkFileRow(
        path=str(info.path),
        active=info.is_active(),
        version=version_string(header.version),
        pid=header.pid,
        archive_id=header.archive_id,
        start_timestamp_ms=header.start_timestamp_ms,
        activity_timestamp_ms=header.activity_timestamp_ms,
        control_channel=header.control_channel,
        control_stream_id=header.control_stream_id,
        local_control_channel=header.local_control_channel,
        local_control_stream_id=header.local_control_stream_id,
        events_channel=header.events_channel,
        events_stream_id=header.events_stream_id,
        aeron_directory=header.aeron_directory,
        errors=len(info.errors),
    )


def for_people(record: RecordingRow | MarkFileRow) -> dict[str, Any]:
    """Return a record with the times in UTC of its timestamps."""
    row = as_row(record)
    return {name: _time(row[name]) if name in _TIMESTAMPS else row[name] for name in row}


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    time = datetime_of_ms(timestamp_ms)
    if time is None:
        return str(timestamp_ms)
    return f"{timestamp_ms} ({time.isoformat(timespec='milliseconds')})"
