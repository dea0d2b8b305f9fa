"""Stop recording, by channel and stream, by recording subscription or by recording."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.tools._cli.arguments import channel, identity, int32, int64
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import ABSENT, Absent, emit


@dataclass(frozen=True, slots=True)
class Stopped:
    """The channel, subscription or recording that was stopped.

    Attributes:
        stopped: channel, subscription or recording.
        subscription_id: recording subscription id.
        recording_id: recording id.
        channel: channel.
        stream_id: stream id.
    """

    stopped: str
    subscription_id: int | Absent = ABSENT
    recording_id: int | Absent = ABSENT
    channel: str | Absent = ABSENT
    stream_id: int | Absent = ABSENT


JSON_ROWS: Final = {"": Stopped}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "channel", metavar="CHANNEL", type=channel, nargs="?", help="the channel given to `record`"
    )
    parser.add_argument(
        "stream_id", metavar="STREAM_ID", nargs="?", type=int32, help="the stream id"
    )
    parser.add_argument(
        "--subscription", metavar="ID", type=int64, help="the subscription id that `record` printed"
    )
    parser.add_argument(
        "--recording", metavar="ID", type=identity, help="the id of a live recording"
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Send the request; if there is nothing to stop, that is a failure."""
    by_channel = args.channel is not None
    ways = (by_channel, args.subscription is not None, args.recording is not None)
    if sum(ways) != 1 or by_channel != (args.stream_id is not None):
        raise ConfigurationError("give either CHANNEL STREAM_ID, --subscription or --recording")
    with connect(args) as client:
        if by_channel:
            client.stop_recording(args.channel, args.stream_id)
            emit(Stopped("channel", channel=args.channel, stream_id=args.stream_id), args)
        elif args.subscription is not None:
            client.stop_recording_subscription(args.subscription)
            emit(Stopped("subscription", subscription_id=args.subscription), args)
        else:
            if not client.stop_recording_by_identity(args.recording):
                raise AerotapeError(f"recording {args.recording} is not live: nothing to stop")
            emit(Stopped("recording", recording_id=args.recording), args)
