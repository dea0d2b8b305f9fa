"""`import`: add an exported recording to a directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from aerotape.tools._cli.arguments import identity
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit
from aerotape.tools._tool._common import changing
from aerotape.tools._tool.writing.export import recording_row


def add_commands(commands: Commands) -> None:
    """Add the command."""
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
    if args.json:
        emit({**recording_row(done), "dry_run": args.dry_run}, args)
    else:
        length = done.stop_position - done.start_position
        verb = "would become" if args.dry_run else "is"
        print(f"{args.file} {verb} recording {done.recording_id}: {length} bytes")
