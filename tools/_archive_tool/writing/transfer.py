"""`export` and `import`: write a recording into one file, and add it to another directory."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.tools._archive_tool._common import add_checksum_option, add_recording_id, changing
from aerotape.tools._cli.arguments import identity
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit_line, note

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor


@dataclass(frozen=True, slots=True)
class ExportedRecording:
    """A recording in a file.

    Attributes:
        recording_id: recording id.
        start_position: start position, bytes.
        stop_position: position after its last byte.
        length: bytes of the recording.
        file: file written.
        dry_run: whether nothing was changed.
    """

    recording_id: int
    start_position: int
    stop_position: int
    length: int
    file: Path
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ImportedRecording:
    """A recording from a file.

    Attributes:
        recording_id: recording id.
        start_position: start position, bytes.
        stop_position: stop position, bytes.
        length: bytes of the recording.
        dry_run: whether nothing was changed.
    """

    recording_id: int
    start_position: int
    stop_position: int
    length: int
    dry_run: bool


JSON_ROWS: Final = {"export": ExportedRecording, "import": ImportedRecording}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    parser = add_command(commands, "export", _export, writes=True)
    add_recording_id(parser, optional=False)
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to create")
    add_checksum_option(parser, "verify the checksums of frames first: crc-32 or crc-32c")

    parser = add_command(commands, "import", _import, writes=True)
    parser.add_argument("file", metavar="FILE", type=Path, help="an exported recording")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--id",
        dest="recording_id",
        metavar="N",
        type=identity,
        help="store it under this id, which must be unused",
    )
    which.add_argument(
        "--keep-id",
        action="store_true",
        help="store it under the id it was exported with, which must be unused",
    )


def _export(args: argparse.Namespace) -> None:
    """Write a recording into one file, atomically.

    Of a live recording, the data up to its current position is exported.
    """
    from aerotape.catalog.maintenance.export_import import export_recording
    from aerotape.replay.offline.directory import open_directory

    recording = open_directory(args.directory).recording(args.recording_id)
    if recording.time_index.problem:
        note(f"warning: {recording.time_index.problem}")
    with Progress(None, "exporting", unit="MiB") as progress:
        done = export_recording(
            recording,
            args.file,
            args.checksum or "none",
            dry_run=args.dry_run,
            progress=lambda done, total: progress.update(done >> 20, total >> 20),
        )
    row = ExportedRecording(**_row(done), file=args.file, dry_run=args.dry_run)
    verb = "would be" if args.dry_run else "are"
    text = f"recording {done.recording_id}: {row.length} bytes {verb} in {args.file}"
    emit_line(row, text, args)


def _import(args: argparse.Namespace) -> None:
    """Add an exported recording to the directory, atomically."""
    from aerotape.catalog.maintenance.export_format import RecordingFileReader
    from aerotape.catalog.maintenance.export_import import import_recording

    wanted = args.recording_id
    if args.keep_id:
        with RecordingFileReader(args.file) as reader:
            wanted = reader.header.descriptor.recording_id
    with changing(args) as catalog, Progress(None, "importing", unit="MiB") as progress:
        done = import_recording(
            catalog,
            args.directory,
            args.file,
            wanted,
            dry_run=args.dry_run,
            progress=lambda done, total: progress.update(done >> 20, total >> 20),
        )
    row = ImportedRecording(**_row(done), dry_run=args.dry_run)
    verb = "would become" if args.dry_run else "is"
    text = f"{args.file} {verb} recording {done.recording_id}: {row.length} bytes"
    emit_line(row, text, args)


def _row(descriptor: RecordingDescriptor) -> dict[str, int]:
    """Return the fields that `ExportedRecording` and `ImportedRecording` share."""
    return {
        "recording_id": descriptor.recording_id,
        "start_position": descriptor.start_position,
        "stop_position": descriptor.stop_position,
        "length": descriptor.stop_position - descriptor.start_position,
    }
