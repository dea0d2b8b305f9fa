"""Find the last recording of a channel, stream and session."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.errors import AerotapeError
from aerotape.tools._cli.arguments import FRAGMENT_HELP, ascii_text, identity, int32
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class FoundRecording:
    """The recording that was found.

    Attributes:
        recording_id: recording id.
    """

    recording_id: int


JSON_ROWS: Final = {"": FoundRecording}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "channel",
        metavar="FRAGMENT",
        type=ascii_text,
        help=FRAGMENT_HELP,
    )
    parser.add_argument("stream_id", metavar="STREAM_ID", type=int32, help="the stream id")
    parser.add_argument(
        "session_id",
        metavar="SESSION_ID",
        type=int32,
        help="the session id, as shown by `aerotape list --json`",
    )
    parser.add_argument(
        "--from",
        dest="from_id",
        metavar="ID",
        type=identity,
        default=0,
        help="the lowest recording id (default: 0)",
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Print the recording id; no match is a failure."""
    with connect(args) as client:
        found = client.find_last_matching_recording(
            args.from_id, args.channel, args.stream_id, args.session_id
        )
    if found < 0:
        raise AerotapeError(
            f"no recording of {args.channel!r} stream {args.stream_id} session {args.session_id}"
        )
    emit(FoundRecording(recording_id=found), args)
