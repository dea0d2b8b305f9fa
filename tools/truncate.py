"""Cut a stopped recording off at a position; what is behind it is lost."""

from __future__ import annotations

import argparse

from aerotape.tools._cli.arguments import add_recording_id, identity
from aerotape.tools._cli.confirm import add_confirmation_option, confirm, end_of_stopped
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_recording_id(parser)
    parser.add_argument(
        "position", metavar="POSITION", type=identity, help="the new end, bytes: where a frame is"
    )
    add_confirmation_option(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Ask, truncate and print how many segment files went."""
    with connect(args) as client:
        lost = max(end_of_stopped(client, args.recording_id) - args.position, 0)
        if lost:  # else there is nothing to be sorry for, or the archive refuses
            confirm(
                args,
                f"cut recording {args.recording_id} off at position {args.position}: "
                f"the {lost} bytes behind are lost",
            )
        deleted = client.truncate_recording(args.recording_id, args.position)
        position = client.stop_position(args.recording_id)
    emit(
        {
            "recording_id": args.recording_id,
            "stop_position": position,
            "bytes_removed": lost,
            "segment_files_deleted": deleted,
        },
        args,
    )
    return 0
