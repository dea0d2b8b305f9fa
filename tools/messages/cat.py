"""Print the messages of a recording, from the files of an archive directory.

Needs no archive; it may be running. Without its directory, `aerotape replay` prints what the
archive replays; `aerotape subscribe` prints a stream that is published now. Where a file is missing
or damaged, the messages up to there are printed, and the exit code is 3. A message belongs to the
position where it begins.

    aerotape cat /var/lib/aeron-archive 7 --first 10
    aerotape cat s3://bucket/archive 7 --schema orders.xml --template NewOrder
    aerotape cat /var/lib/aeron-archive 7 --last 50 --follow
    aerotape cat /var/lib/aeron-archive 7 --since 10m --json
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aerotape.catalog.location import parse_location
from aerotape.errors import SegmentError
from aerotape.tools._cli.arguments import add_recording_id, count
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.output import note
from aerotape.tools._cli.selecting import (
    OF_MESSAGES,
    OF_SCHEMAS,
    add_selection_options,
    selected,
)
from aerotape.tools._cli.times import note_time_index, time_text
from aerotape.tools.messages._printing import MessageRow, Printer, add_printing_options, flush

if TYPE_CHECKING:
    from aerotape.message import Message
    from aerotape.replay.offline.selection import Selection

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
    add_selection_options(
        parser, OF_MESSAGES, {"last": "; with --follow, 0 for only those to come"}
    )
    parser.add_argument(
        "--limit", type=count, metavar="N", help="end after this number of printed messages"
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="continue with messages as they are recorded, until the recording stops",
    )
    add_printing_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the messages; damage ends the output."""
    selection = selected(args, (*OF_MESSAGES, *OF_SCHEMAS))
    printer = Printer(args, selection)
    read = printed = 0
    messages = _messages(args, selection)
    try:
        while args.limit is None or printed < args.limit:
            message = next(messages, None)
            if message is None:
                break
            read += 1
            printed += printer.print(message)
    except SegmentError as error:
        sys.stdout.flush()
        note(f"aerotape cat: {error}")
        return EXIT_DATA_SUSPECT
    finally:
        printer.report()
    if not printed and 0 not in (selection.last, selection.first, args.limit):
        _note_nothing(args, read, printer.exit_code)
    return printer.exit_code


def _note_nothing(args: argparse.Namespace, read: int, exit_code: int) -> None:
    """Note on standard error why nothing was printed, unless each message was reported."""
    from aerotape.replay.offline.directory import open_directory

    if read and exit_code == EXIT_OK:
        what = "a message of the schema" if args.template is None else f"a {args.template}"
        note(f"nothing was printed: none of {read:,} messages is {what}")
    elif not read:
        recording = open_directory(args.archive_dir).recording(args.recording_id)
        of = recording.descriptor
        until = "" if of.is_active else f" to {time_text(of.stop_timestamp_ms)}"
        note(
            f"nothing was printed: no message of recording {args.recording_id} is selected; it has "
            f"positions {recording.start_position} to {recording.recorded_position}, recorded "
            f"from {time_text(of.start_timestamp_ms)}{until}"
        )


def _messages(args: argparse.Namespace, selection: Selection) -> Iterator[Message]:
    from aerotape.replay.offline.directory import open_directory
    from aerotape.replay.offline.reader import selected_messages

    is_shown = selection.last != 0
    if not is_shown:
        selection = replace(selection, last=1)  # the place from which messages are followed
    left, is_first = selection.first, True
    while True:
        # Opened again to see it grow.
        recording = open_directory(args.archive_dir).recording(args.recording_id)
        if is_first:
            note_time_index(recording, selection.times)
        position = None
        for message in selected_messages(recording, selection):
            if is_shown:
                yield message
            position = message.end_position
            left = None if left is None else left - 1
        end, times = selection.to_position, selection.times
        is_complete = (
            left == 0
            or not recording.descriptor.is_active
            or (end is not None and recording.recorded_position >= end)
            or (times.to_ns is not None and time.time_ns() >= times.to_ns)
        )
        if is_complete or not args.follow:
            return
        is_first, is_shown = False, True
        selection = replace(selection, last=None, first=left)
        if position is not None:
            selection = replace(
                selection, from_position=position, from_time=None, from_index=None, from_asqn=None
            )
        flush()
        time.sleep(_POLL_S)
