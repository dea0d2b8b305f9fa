"""Start recording a channel and stream.

The archive continues to record after the command has ended. `aerotape stop` stops it, given the
same channel and stream id, or the subscription id that is printed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.arguments import add_stream
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """A channel and stream that is recorded.

    Attributes:
        subscription_id: recording subscription id.
        channel: channel.
        stream_id: stream id.
        source: local or remote.
        auto_stop: whether it stops with the stream.
    """

    subscription_id: int
    channel: str
    stream_id: int
    source: str
    auto_stop: bool


JSON_ROWS: Final = {"": RecordedStream}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_stream(parser)
    add_recording_options(parser)
    add_connection_options(parser)


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a recording."""
    parser.add_argument(
        "--source",
        choices=("local", "remote"),
        default="local",
        help="local (the default): the publishers use the archive's media driver",
    )
    parser.add_argument(
        "--auto-stop", action="store_true", help="stop recording when the first image ends"
    )


def run(args: argparse.Namespace) -> None:
    """Send the request and print the subscription id."""
    with connect(args) as client:
        subscription_id = client.start_recording(
            args.channel, args.stream_id, args.source, auto_stop=args.auto_stop
        )
    emit(
        RecordedStream(
            subscription_id=subscription_id,
            channel=args.channel,
            stream_id=args.stream_id,
            source=args.source,
            auto_stop=args.auto_stop,
        ),
        args,
    )
