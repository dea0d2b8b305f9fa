"""Delete a stopped recording with all its segment files."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.arguments import add_recording_id
from aerotape.tools._cli.confirm import add_confirmation_option, confirm, end_of_stopped
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class PurgedRecording:
    """A recording that was deleted.

    Attributes:
        recording_id: recording id.
        segment_files_deleted: number of segment files deleted.
    """

    recording_id: int
    segment_files_deleted: int


JSON_ROWS: Final = {"": PurgedRecording}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_recording_id(parser)
    add_confirmation_option(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Confirm, purge and print the number of deleted segment files."""
    with connect(args) as client:
        if not args.yes:  # otherwise the archive's error is enough
            end_of_stopped(client, args.recording_id)
        confirm(args, f"delete recording {args.recording_id} with all its segment files")
        deleted = client.purge_recording(args.recording_id)
    emit(PurgedRecording(recording_id=args.recording_id, segment_files_deleted=deleted), args)
