"""Print the messages of a recording, from the files of an archive directory.

Needs no archive; it may be running. Where a file is missing or damaged, the messages up to there
are printed, and the exit code is 3. A message belongs to the position where it begins.

    aerotape cat /var/lib/aeron-archive 7 --limit 10
    aerotape cat s3://bucket/archive 7 --schema orders.xml --template NewOrder
    aerotape cat /var/lib/aeron-archive 7 --last 50 --follow
    aerotape cat /var/lib/aeron-archive 7 --since 10m --json
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from aerotape.catalog.location import parse_location
from aerotape.errors import SegmentError
from aerotape.times import TimeRange
from aerotape.tools._cli.arguments import add_recording_id, count, identity
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.output import note
from aerotape.tools._cli.times import add_time_options, note_time_index, time_range
from aerotape.tools.messages._printing import MessageRow, Printer, add_printing_options, flush

if TYPE_CHECKING:
    from aerotape.message import Message

_POLL_S: Final = 0.2


JSON_ROWS: Final = {"": MessageRow}


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
    add_time_options(parser)
    parser.add_argument(
        "--last",
        type=count,
        metavar="N",
        help="only the newest messages of these, so many, of all templates; with --follow, 0 for "
        "only those to come",
    )
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
    finally:
        printer.report()
    return printer.exit_code


def _messages(args: argparse.Namespace) -> Iterator[Message]:
    from aerotape.replay.offline.directory import open_directory

    position, times, last = args.from_position, time_range(args), args.last
    is_first = True
    while True:
        # Opened again to see it grow.
        recording = open_directory(args.archive_dir).recording(args.recording_id)
        if is_first:
            note_time_index(recording, times)
        messages = recording.messages(
            position,
            args.to_position,
            args.checksum,
            from_time=times.from_ns,
            to_time=times.to_ns,
            last=last or (1 if last == 0 else None),
        )
        for message in messages:
            if last != 0:
                yield message
            position = message.end_position
        is_complete = (
            not recording.descriptor.is_active
            or (args.to_position is not None and recording.recorded_position >= args.to_position)
            or (times.to_ns is not None and time.time_ns() >= times.to_ns)
        )
        if is_complete or not args.follow:
            return
        last, is_first = None, False
        if position is not None:
            times = TimeRange(None, times.to_ns)
        flush()
        time.sleep(_POLL_S)
