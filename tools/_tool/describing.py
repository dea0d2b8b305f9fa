"""Commands that show what is in an archive directory: its mark file, its catalog, its errors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any

from aerotape.errors import MarkFileError, UnknownRecordingError
from aerotape.tools._cli.output import (
    RecordTemplate,
    emit,
    emit_object,
    emit_texts,
    json_text,
    note,
    section_text,
)
from aerotape.tools._tool._common import Commands, add_command, add_recording_id

if TYPE_CHECKING:
    from aerotape.catalog.file.entries import CatalogEntry
    from aerotape.catalog.file.sound_entries import SoundEntry
    from aerotape.replay.offline.directory import ArchiveDirectory

# What is told of a recording, in this order between its id and the checksum of its entry.
_CONDITION = ("state", "suspect", "damage")
_MOMENTS = ("start_timestamp_ms", "stop_timestamp_ms")
_FIGURES = (
    "start_position",
    "stop_position",
    "initial_term_id",
    "segment_file_length",
    "term_buffer_length",
    "mtu_length",
    "session_id",
    "stream_id",
)
_ORIGIN = ("stripped_channel", "original_channel", "source_identity")
_TEMPLATE_FIELDS = ("recording_id", _CONDITION, *_MOMENTS, *_FIGURES, _ORIGIN, "checksum")
_LAST_YEAR = 9999
_TIMESTAMPS = frozenset({*_MOMENTS, "activity_timestamp_ms"})


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    add_recording_id(add_command(commands, "describe", _describe, reads_urls=True))
    add_command(commands, "describe-all", _describe_all, reads_urls=True)
    add_command(commands, "count-entries", _count, reads_urls=True)
    add_command(commands, "pid", _pid)
    add_command(commands, "errors", _errors)


def _describe(args: argparse.Namespace) -> int:
    """Show the mark file, the catalog and its valid recordings, or one recording of any state."""
    from aerotape.replay.offline.directory import directory_at, open_directory

    if args.recording_id is not None:
        return _describe_one(open_directory(args.directory), args)
    return _describe_recordings(directory_at(args.directory), args, everything=False)


def _describe_all(args: argparse.Namespace) -> int:
    """Show the mark file, the catalog and its recordings, those that are not valid too."""
    from aerotape.replay.offline.directory import directory_at

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
        texts = _texts(catalog.listed_entries(), marked, everything=everything, as_json=args.json)
        if args.json:
            emit_object({"mark_file": mark_file, "catalog": summary}, "recordings", texts)
        else:
            above = [section_text("mark file", _for_people(mark_file))] if mark_file else []
            above.append(section_text("catalog", summary))
            emit_texts(chain(above, texts))
    if problem:
        note(problem)
    return 0


def _texts(
    entries: Iterable[SoundEntry | CatalogEntry],
    marked: Container[int],
    *,
    everything: bool,
    as_json: bool,
) -> Iterator[str]:
    """Make the texts of entries one by one, sections or JSON, and warn of all that are damaged."""
    from aerotape.catalog.file.entries import CatalogEntry, entry_damage
    from aerotape.catalog.layout import RecordingState, state_name

    template = RecordTemplate(_TEMPLATE_FIELDS, as_json=as_json)
    moment: Callable[[int], object] = _number if as_json else _time
    valid = int(RecordingState.VALID)

    @lru_cache(maxsize=16)
    def condition(state: int, suspect: bool) -> str:
        values = (state_name(state), suspect, "")
        return template.part(dict(zip(_CONDITION, values, strict=True)))

    @lru_cache(maxsize=1024)
    def origin(*values: str) -> str:
        return template.part(dict(zip(_ORIGIN, values, strict=True)))

    for entry in entries:
        if isinstance(entry, CatalogEntry):
            damage = entry_damage(entry)
            if damage:
                note(f"warning: {_subject(entry)} is damaged: {damage}")
            if everything or entry.state == valid:
                row = _row(entry, entry.recording_id in marked, damage, moment)
                title = f"recording {entry.recording_id}"
                yield json_text(row) if as_json else section_text(title, row)
        elif everything or entry.state == valid:
            (
                state,
                checksum,
                recording_id,
                start_ms,
                stop_ms,
                *figures,
                stripped,
                channel,
                source,
            ) = entry
            text = template.text(
                recording_id,
                condition(state, recording_id in marked),
                moment(start_ms),
                moment(stop_ms),
                *figures,
                origin(stripped, channel, source),
                checksum,
            )
            yield text if as_json else f"recording {recording_id}:\n{text}\n"


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
    from aerotape.catalog.file.entries import entry_damage

    return _row(entry, suspect, entry_damage(entry), _number)


def _row(
    entry: CatalogEntry, suspect: bool, damage: str, moment: Callable[[int], object]
) -> dict[str, Any]:
    descriptor = entry.descriptor
    return {
        "recording_id": entry.recording_id,
        **dict(zip(_CONDITION, (entry.state_name, suspect, damage), strict=True)),
        **{name: moment(getattr(descriptor, name)) for name in _MOMENTS},
        **{name: getattr(descriptor, name) for name in (*_FIGURES, *_ORIGIN)},
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
    print(section_text(title, _for_people(row)), end="")


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
    second, rest_ms = divmod(timestamp_ms, 1_000)
    begin = _second(second)
    return f"{timestamp_ms} ({begin}.{rest_ms:03}+00:00)" if begin else str(timestamp_ms)


@lru_cache(maxsize=1024)
def _second(second: int) -> str:
    """Format a second since 1970; "" when it is too late."""
    hour, rest = divmod(second, 3_600)
    begin = _hour(hour)
    return f"{begin}:{rest // 60:02}:{rest % 60:02}" if begin else ""


@lru_cache(maxsize=1024)
def _hour(hour: int) -> str:
    """Format an hour since 1970, of which many recordings have the same; "" when it is too late."""
    try:
        moment = gmtime(hour * 3_600)
    except (OverflowError, ValueError, OSError):
        return ""
    # As far as datetime goes, whose module takes long to load.
    return strftime("%Y-%m-%dT%H", moment) if moment.tm_year <= _LAST_YEAR else ""


def _pid(args: argparse.Namespace) -> int:
    """Print the process id of the archive."""
    from aerotape.catalog.mark.mark_file import MarkFile

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
    from aerotape.catalog.layout import RecordingState
    from aerotape.replay.offline.directory import directory_at

    valid = int(RecordingState.VALID)
    with directory_at(args.directory).open_catalog() as catalog:
        count = sum(1 for entry in catalog.listed_entries() if entry.state == valid)
    emit({"entries": count}, args) if args.json else print(count)
    return 0
