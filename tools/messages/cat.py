"""Print the messages of a recording, from the files of an archive directory.

Needs no archive; it may be running. Where a file is missing or damaged, the messages up to there
are printed, and the exit code is 3. A message belongs to the position where it begins.

    aerotape cat /var/lib/aeron-archive 7 --limit 10
    aerotape cat s3://bucket/archive 7 --schema orders.xml --template NewOrder
    aerotape cat /var/lib/aeron-archive 7 --follow --json
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from aerotape.catalog.location import parse_location
from aerotape.errors import SegmentError
from aerotape.tools._cli.arguments import add_recording_id, count, identity
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.output import note
from aerotape.tools.messages._printing import Printer, add_printing_options, flush

if TYPE_CHECKING:
    from aerotape.message import Message

_POLL_S: Final = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "archive_dir",
        type=parse_location,
        metavar="DIR",
        help="the archive directory, or the URL of a copy",
    )
    add_recording_id(parser)
    parser.add_argument("--from-position", type=identity, metavar="P", help="the first position")
    parser.add_argument("--to-position", type=identity, metavar="P", help="the end position")
    parser.add_argument(
        "--limit", type=count, metavar="N", help="end after this number of printed messages"
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="continue with messages as they are recorded, until the recording stops",
    )
    parser.add_argument(
        "--checksum",
        choices=("none", "crc-32", "crc-32c"),
        default="none",
        help="verify each frame against the checksum it was recorded with",
    )
    add_printing_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the messages; damage ends the output."""
    printer = Printer(args)
    printed = 0
    messages = _messages(args)
    try:
        while args.limit is None or printed < args.limit:
            message = next(messages, None)
            if message is None:
                break
            printed += printer.print(message)
    except SegmentError as error:
        sys.stdout.flush()
        note(f"aerotape cat: {error}")
        return EXIT_DATA_SUSPECT
    return printer.exit_code


def _messages(args: argparse.Namespace) -> Iterator[Message]:
    from aerotape.replay.offline.directory import open_directory

    position = args.from_position
    while True:
        # Opened again to see it grow.
        recording = open_directory(args.archive_dir).recording(args.recording_id)
        for message in recording.messages(position, args.to_position, args.checksum):
            yield message
            position = message.end_position
        is_complete = not recording.descriptor.is_active or (
            args.to_position is not None and recording.recorded_position >= args.to_position
        )
        if is_complete or not args.follow:
            return
        flush()
        time.sleep(_POLL_S)
