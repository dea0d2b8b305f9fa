"""Truncate a stopped recording at a position; the data after it is deleted."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.arguments import add_recording_id, identity
from aerotape.tools._cli.confirm import add_confirmation_option, confirm, end_of_stopped
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class TruncatedRecording:
    """A recording that was truncated.

    Attributes:
        recording_id: recording id.
        stop_position: stop position, bytes.
        bytes_removed: bytes removed.
        segment_files_deleted: number of segment files deleted.
    """

    recording_id: int
    stop_position: int
    bytes_removed: int
    segment_files_deleted: int


JSON_ROWS: Final = {"": TruncatedRecording}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_recording_id(parser)
    parser.add_argument(
        "position",
        metavar="POSITION",
        type=identity,
        help="the new stop position, bytes: the start of a frame",
    )
    add_confirmation_option(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Confirm, truncate and print the number of deleted segment files."""
    with connect(args) as client:
        lost = max(end_of_stopped(client, args.recording_id) - args.position, 0)
        if lost:  # otherwise there is nothing to lose, or the archive refuses
            confirm(
                args,
                f"truncate recording {args.recording_id} at position {args.position} "
                f"and delete the {lost} bytes after it",
            )
        deleted = client.truncate_recording(args.recording_id, args.position)
        position = client.stop_position(args.recording_id)
    emit(
        TruncatedRecording(
            recording_id=args.recording_id,
            stop_position=position,
            bytes_removed=lost,
            segment_files_deleted=deleted,
        ),
        args,
    )
