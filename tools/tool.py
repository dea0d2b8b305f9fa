"""Look into an archive directory and check it, offline; commands as of Aeron's ArchiveTool.

commands:
  describe [RECORDING_ID]   the mark file, the catalog and its valid recordings, or one recording
  describe-all              the same with the recordings that are no longer valid
  verify [RECORDING_ID] [-a] [-checksum X]
                            check descriptors and the last segment file of each recording, with -a
                            all of them; with -checksum, the checksum of descriptors and frames
  count-entries             the number of valid recordings
  pid                       the process id of the archive
  errors                    the error logs of the archive and of its media driver

Nothing is ever written to the directory, and its archive may be running. The exit code of verify
is 3 when data is lost or suspect.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aerotape.errors import ConfigurationError, MarkFileError, StorageError, UnknownRecordingError

if TYPE_CHECKING:
    from aerotape.catalog.directory import ArchiveDirectory
    from aerotape.catalog.entries import CatalogEntry
    from aerotape.catalog.layout import ChecksumName

_COMMANDS = ("describe", "describe-all", "verify", "count-entries", "pid", "errors")
_TAKING_ID = ("describe", "verify")
_EXIT_DATA_SUSPECT = 3
# Names by which ArchiveTool knows checksums, besides ours.
_CHECKSUM_CLASSES = {
    "io.aeron.archive.checksum.crc32": "crc-32",
    "io.aeron.archive.checksum.crc32c": "crc-32c",
    "crc32": "crc-32",
    "crc32c": "crc-32c",
    "crc-32": "crc-32",
    "crc-32c": "crc-32c",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the archive directory")
    parser.add_argument("action", metavar="COMMAND", choices=_COMMANDS, help="see above")
    parser.add_argument(
        "recording_id", metavar="RECORDING_ID", type=int, nargs="?", help="one recording only"
    )
    parser.add_argument(
        "-a", dest="all_segments", action="store_true", help="verify: check all segment files"
    )
    parser.add_argument(
        "-checksum",
        "--checksum",
        metavar="X",
        help="verify: crc-32 or crc-32c, or the Java class's name",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command on the directory."""
    from aerotape.catalog.directory import open_directory

    if args.recording_id is not None and args.action not in _TAKING_ID:
        raise ConfigurationError(f"{args.action} takes no recording id", "RECORDING_ID")
    if args.action != "verify" and (args.all_segments or args.checksum):
        raise ConfigurationError(f"-a and -checksum do not go with {args.action}", "-a")
    checksum = _checksum(args.checksum)
    if not args.directory.is_dir():
        reason = "not a directory" if args.directory.exists() else "no such directory"
        raise StorageError(f"{reason}: {args.directory}", args.directory)
    if args.action in ("pid", "errors"):
        return _show_mark_file(args)
    directory = open_directory(args.directory)
    if args.action == "verify":
        return _verify(directory, args, checksum)
    if args.action == "count-entries":
        return _count(directory, args)
    if args.recording_id is not None:
        return _describe_one(directory, args)
    return _describe(directory, args)


def _checksum(name: str | None) -> ChecksumName:
    if name is None:
        return "none"
    known = _CHECKSUM_CLASSES.get(name.strip().lower())
    if known == "crc-32":
        return "crc-32"
    if known == "crc-32c":
        return "crc-32c"
    raise ConfigurationError(f"unknown checksum {name!r}: use crc-32 or crc-32c", "-checksum")


def _describe(directory: ArchiveDirectory, args: argparse.Namespace) -> int:
    from aerotape.catalog.catalog import Catalog
    from aerotape.catalog.entries import entry_damage
    from aerotape.catalog.layout import RecordingState, version_string
    from aerotape.tools.output import emit, note

    with Catalog.open(directory.path, read_only=True) as catalog:
        summary = {
            "version": version_string(catalog.version),
            "capacity_bytes": catalog.capacity_bytes,
            "alignment_bytes": catalog.alignment,
            "next_recording_id": catalog.next_recording_id,
            "recordings": len(catalog),
        }
        entries = list(catalog.entries())
    marked = directory.suspect_notes()
    everything = args.action == "describe-all"
    for entry in entries:
        if damage := entry_damage(entry):
            note(f"warning: {_subject(entry)} is damaged: {damage}")
    rows = [
        _recording_row(entry, entry.recording_id in marked)
        for entry in entries
        if everything or entry.state == RecordingState.VALID
    ]
    try:
        mark_file: dict[str, Any] | None = _mark_file_row(directory)
    except MarkFileError as error:
        # The catalog alone is worth showing: a copy of a directory may come without the file.
        mark_file = None
        note(f"warning: {error}")
    if args.json:
        emit({"mark_file": mark_file, "catalog": summary, "recordings": rows}, args)
        return 0
    if mark_file is not None:
        _print_section("mark file", mark_file, args)
    _print_section("catalog", summary, args)
    for row in rows:
        _print_section(f"recording {row['recording_id']}", row, args)
    return 0


def _subject(entry: CatalogEntry) -> str:
    name = f"recording {entry.recording_id}" if entry.recording_id >= 0 else "an entry"
    return f"{name} at offset {entry.offset} of the catalog"


def _describe_one(directory: ArchiveDirectory, args: argparse.Namespace) -> int:
    from aerotape.tools.output import emit

    for entry in directory.entries():
        if entry.recording_id == args.recording_id:
            marked = entry.recording_id in directory.suspect_notes()
            emit(_recording_row(entry, marked), args)
            return 0
    raise UnknownRecordingError(
        f"no recording with id {args.recording_id} in archive directory {directory.path}",
        args.recording_id,
    )


def _recording_row(entry: CatalogEntry, suspect: bool) -> dict[str, Any]:
    from aerotape.catalog.entries import entry_damage
    from aerotape.catalog.layout import RecordingState

    descriptor = entry.descriptor
    known = entry.state in {state.value for state in RecordingState}
    return {
        "recording_id": entry.recording_id,
        "state": RecordingState(entry.state).name if known else str(entry.state),
        "suspect": suspect,
        "damage": entry_damage(entry),
        "start_timestamp_ms": descriptor.start_timestamp_ms,
        "stop_timestamp_ms": descriptor.stop_timestamp_ms,
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


def _print_section(title: str, row: dict[str, Any], args: argparse.Namespace) -> None:
    from aerotape.tools.output import emit

    print(f"{title}:")
    shown = dict(row)
    for name, value in row.items():
        if name.endswith("_timestamp_ms"):
            shown[name] = _time(value)
    emit(shown, args)
    print()


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return f"{timestamp_ms} ({moment.isoformat(timespec='milliseconds')})"


def _show_mark_file(args: argparse.Namespace) -> int:
    from aerotape.catalog.mark_file import MarkFile
    from aerotape.tools.errors import show_errors
    from aerotape.tools.output import emit

    if args.action == "errors":
        show_errors(args.directory, args)
        return 0
    info = MarkFile.read(args.directory)
    if args.json:
        emit({"pid": info.header.pid}, args)
    else:
        print(info.header.pid)
    return 0


def _count(directory: ArchiveDirectory, args: argparse.Namespace) -> int:
    from aerotape.catalog.layout import RecordingState
    from aerotape.tools.output import emit

    count = sum(1 for entry in directory.entries() if entry.state == RecordingState.VALID)
    if args.json:
        emit({"entries": count}, args)
    else:
        print(count)
    return 0


def _verify(directory: ArchiveDirectory, args: argparse.Namespace, checksum: ChecksumName) -> int:
    from aerotape.catalog.verify import verify
    from aerotape.text import printable
    from aerotape.tools.output import Progress, emit

    total = 1 if args.recording_id is not None else sum(1 for _ in directory.entries())
    with Progress(total, "verifying", unit="recordings") as progress:
        checks = verify(
            directory,
            args.recording_id,
            all_segments=args.all_segments,
            checksum=checksum,
            progress=progress.update,
        )
    if args.json:
        emit(({"ok": check.ok, **_fields(check)} for check in checks), args)
    else:
        for check in checks:
            state = " (no stop position)" if check.active else ""
            summary = (
                f"recording {check.recording_id}: {'OK' if check.ok else 'FAILED'}{state}, "
                f"positions {check.start_position} to {check.stop_position}, "
                f"{check.segments} segment files, {check.frames} frames"
            )
            if checksum != "none":
                summary += f", {check.checksums} checksums right"
            print(summary)
            for problem in check.problems:
                place = f" ({problem.path})" if problem.path else ""
                print(printable(f"  {problem.detail}{place}"))
    return 0 if all(check.ok for check in checks) else _EXIT_DATA_SUSPECT


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
