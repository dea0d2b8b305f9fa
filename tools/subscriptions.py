"""List what the archive records or waits to record: its recording subscriptions."""

from __future__ import annotations

import argparse

from aerotape.tools._connection import add_connection_options, ascii_text, connect, count, int32
from aerotape.tools.output import emit


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--channel",
        metavar="FRAGMENT",
        type=ascii_text,
        default="",
        help="channels that hold this text, like endpoint=HOST:PORT",
    )
    parser.add_argument("--stream-id", metavar="ID", type=int32)
    parser.add_argument("--count", metavar="N", type=count, help="at most so many")
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Ask the archive and print a row a subscription."""
    with connect(args) as client:
        emit(
            (
                {
                    "subscription_id": found.subscription_id,
                    "stream_id": found.stream_id,
                    "channel": found.stripped_channel,
                }
                for found in client.list_recording_subscriptions(
                    args.channel, args.stream_id, count=args.count
                )
            ),
            args,
        )
    return 0
