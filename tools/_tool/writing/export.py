"""`export`: write a recording into one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit, note
from aerotape.tools._tool._common import add_checksum_option, add_recording_id

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "export", _export, writes=True)
    add_recording_id(parser, optional=False)
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to create")
    add_checksum_option(parser, "verify the checksums of frames first: crc-32 or crc-32c")


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
    if args.json:
        emit({**recording_row(done), "file": args.file, "dry_run": args.dry_run}, args)
    else:
        length = done.stop_position - done.start_position
        verb = "would be" if args.dry_run else "are"
        print(f"recording {done.recording_id}: {length} bytes {verb} in {args.file}")


def recording_row(descriptor: RecordingDescriptor) -> dict[str, Any]:
    """Return what is shown of a recording that was exported or imported."""
    return {
        "recording_id": descriptor.recording_id,
        "start_position": descriptor.start_position,
        "stop_position": descriptor.stop_position,
        "length": descriptor.stop_position - descriptor.start_position,
    }
