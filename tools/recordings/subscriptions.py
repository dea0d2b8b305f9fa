"""List the recording subscriptions: the channels and streams that the archive records."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.arguments import add_stream_filter, count
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class RecordingSubscription:
    """A recording subscription.

    Attributes:
        subscription_id: recording subscription id.
        stream_id: stream id.
        channel: channel.
    """

    subscription_id: int
    stream_id: int
    channel: str


JSON_ROWS: Final = {"": RecordingSubscription}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_stream_filter(parser)
    parser.add_argument(
        "--count", metavar="N", type=count, help="the maximum number of subscriptions"
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Request the subscriptions and print a row for each."""
    with connect(args) as client:
        emit(
            (
                RecordingSubscription(
                    subscription_id=found.subscription_id,
                    stream_id=found.stream_id,
                    channel=found.stripped_channel,
                )
                for found in client.list_recording_subscriptions(
                    args.channel or "", args.stream_id, count=args.count
                )
            ),
            args,
            none="no recording subscriptions",
            shortened="channel",
        )
