"""Commands that show what is in an archive directory: its mark file, its catalog, its errors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from aerotape.errors import MarkFileError, UnknownRecordingError
from aerotape.tools._offline._common import Commands, add_command, add_recording_id
from aerotape.tools.output import emit, emit_sections, note

if TYPE_CHECKING:
    from aerotape.catalog.directory import ArchiveDirectory
    from aerotape.catalog.entries import CatalogEntry

_TIMESTAMPS = frozenset({"start_timestamp_ms", "stop_timestamp_ms", "activity_timestamp_ms"})


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    add_recording_id(add_command(commands, "describe", _describe, reads_urls=True))
    add_command(commands, "describe-all", _describe_all, reads_urls=True)
    add_command(commands, "count-entries", _count, reads_urls=True)
    add_command(commands, "pid", _pid)
    add_command(commands, "errors", _errors)


def _describe(args: argparse.Namespace) -> int:
    """Show the mark file, the catalog and its valid recordings, or one recording of any state."""
    from aerotape.catalog.directory import directory_at, open_directory

    if args.recording_id is not None:
        return _describe_one(open_directory(args.directory), args)
    return _describe_recordings(directory_at(args.directory), args, everything=False)


def _describe_all(args: argparse.Namespace) -> int:
    """Show the mark file, the catalog and its recordings, those that are not valid too."""
    from aerotape.catalog.directory import directory_at

    return _describe_recordings(directory_at(args.directory), args, everything=True)


def _describe_recordings(
    directory: ArchiveDirectory, args: argparse.Namespace, *, everything: bool
) -> int:
    from aerotape.collection import collection_paused

    # Of ten thousand recordings there is much, and nothing of it is garbage before the end.
    with collection_paused():
        return _show_recordings(directory, args, everything=everything)


def _show_recordings(
    directory: ArchiveDirectory, args: argparse.Namespace, *, everything: bool
) -> int:
    from aerotape.catalog.layout import version_string

    with directory.open_catalog() as catalog:
        summary = {
            "version": version_string(catalog.version),
            "capacity_bytes": catalog.capacity_bytes,
            "alignment_bytes": catalog.alignment,
            "next_recording_id": catalog.next_recording_id,
            "recordings": len(catalog),
        }
        marked = directory.suspect_notes()
        mark_file: dict[str, Any] | None = None
        problem = ""
        try:
            mark_file = _mark_file_row(directory)
        except MarkFileError as error:
            # The catalog alone is worth showing: a copy of a directory may come without the file.
            problem = f"warning: {error}"
        moment = _number if args.json else _time
        rows = _rows(catalog.entries(), marked, moment, everything=everything)
        if args.json:
            emit({"mark_file": mark_file, "catalog": summary, "recordings": list(rows)}, args)
        else:
            above = [("mark file", _for_people(mark_file))] if mark_file is not None else []
            above.append(("catalog", summary))
            recordings = ((f"recording {row['recording_id']}", row) for row in rows)
            emit_sections(chain(above, recordings))
    if problem:
        note(problem)
    return 0


def _rows(
    entries: Iterable[CatalogEntry],
    marked: Container[int],
    moment: Callable[[int], object],
    *,
    everything: bool,
) -> Iterator[dict[str, Any]]:
    """Make the rows of entries one by one, and warn of all that are damaged."""
    from aerotape.catalog.entries import entry_damage
    from aerotape.catalog.layout import RecordingState

    valid = int(RecordingState.VALID)
    for entry in entries:
        damage = entry_damage(entry)
        if damage:
            note(f"warning: {_subject(entry)} is damaged: {damage}")
        if everything or entry.state == valid:
            yield _row(entry, entry.recording_id in marked, damage, moment)


def _subject(entry: CatalogEntry) -> str:
    name = f"recording {entry.recording_id}" if entry.recording_id >= 0 else "an entry"
    return f"{name} at offset {entry.offset} of the catalog"


def _describe_one(directory: ArchiveDirectory, args: argparse.Namespace) -> int:
    for entry in directory.entries():
        if entry.recording_id == args.recording_id:
            marked = entry.recording_id in directory.suspect_notes()
            emit(recording_row(entry, marked), args)
            return 0
    raise UnknownRecordingError(
        f"no recording with id {args.recording_id} in archive directory {directory.path}",
        args.recording_id,
    )


def recording_row(entry: CatalogEntry, suspect: bool) -> dict[str, Any]:
    """Return all that the catalog has of a recording."""
    from aerotape.catalog.entries import entry_damage

    return _row(entry, suspect, entry_damage(entry), _number)


def _row(
    entry: CatalogEntry, suspect: bool, damage: str, moment: Callable[[int], object]
) -> dict[str, Any]:
    descriptor = entry.descriptor
    return {
        "recording_id": entry.recording_id,
        "state": entry.state_name,
        "suspect": suspect,
        "damage": damage,
        "start_timestamp_ms": moment(descriptor.start_timestamp_ms),
        "stop_timestamp_ms": moment(descriptor.stop_timestamp_ms),
        "start_position": descriptor.start_position,
        "stop_position": descriptor.stop_position,
        "initial_term_id": descriptor.initial_term_id,
        "segment_file_length": descriptor.segment_file_length,
        "term_buffer_length": descriptor.term_buffer_length,
        "mtu_length": descriptor.mtu_length,
        "session_id": descriptor.session_id,
        "stream_id": descriptor.stream_id,
        "stripped_channel": descriptor.stripped_channel,
        "original_channel": descriptor.original_channel,
        "source_identity": descriptor.source_identity,
        "checksum": entry.checksum,
    }


def _mark_file_row(directory: ArchiveDirectory) -> dict[str, Any]:
    from aerotape.catalog.layout import version_string

    info = directory.mark_file()
    header = info.header
    return {
        "path": str(info.path),
        "active": info.is_active(),
        "version": version_string(header.version),
        "pid": header.pid,
        "archive_id": header.archive_id,
        "start_timestamp_ms": header.start_timestamp_ms,
        "activity_timestamp_ms": header.activity_timestamp_ms,
        "control_channel": header.control_channel,
        "control_stream_id": header.control_stream_id,
        "local_control_channel": header.local_control_channel,
        "local_control_stream_id": header.local_control_stream_id,
        "events_channel": header.events_channel,
        "events_stream_id": header.events_stream_id,
        "aeron_directory": header.aeron_directory,
        "errors": len(info.errors),
    }


def print_section(title: str, row: Mapping[str, Any]) -> None:
    """Print a record under a title, for people."""
    emit_sections([(title, _for_people(row))])


def _for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its timestamps as times."""
    shown = dict(row)
    for name in _TIMESTAMPS:
        if name in shown:
            shown[name] = _time(shown[name])
    return shown


def _number(timestamp_ms: int) -> int:
    return timestamp_ms


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    hour, rest_ms = divmod(timestamp_ms, 3_600_000)
    begin = _hour(hour)
    if not begin:
        return str(timestamp_ms)
    minute, rest_ms = divmod(rest_ms, 60_000)
    second, rest_ms = divmod(rest_ms, 1_000)
    return f"{timestamp_ms} ({begin}:{minute:02}:{second:02}.{rest_ms:03}+00:00)"


@lru_cache(maxsize=1024)
def _hour(hour: int) -> str:
    """Format an hour since 1970, of which many recordings have the same; "" when it is too late."""
    try:
        return datetime.fromtimestamp(hour * 3_600, UTC).isoformat(timespec="hours")[:13]
    except (OverflowError, ValueError, OSError):
        return ""


def _pid(args: argparse.Namespace) -> int:
    """Print the process id of the archive."""
    from aerotape.catalog.mark_file import MarkFile

    pid = MarkFile.read(args.directory).header.pid
    emit({"pid": pid}, args) if args.json else print(pid)
    return 0


def _errors(args: argparse.Namespace) -> int:
    """Show the error logs of the archive and of its media driver."""
    from aerotape.tools.errors import show_errors

    show_errors(args.directory, args)
    return 0


def _count(args: argparse.Namespace) -> int:
    """Print the number of valid recordings."""
    from aerotape.catalog.directory import open_directory
    from aerotape.catalog.layout import RecordingState

    entries = open_directory(args.directory).entries()
    count = sum(1 for entry in entries if entry.state == RecordingState.VALID)
    emit({"entries": count}, args) if args.json else print(count)
    return 0
