"""Extend a stopped recording: continue recording at its stop position.

The publication must start at the stop position of the recording: `aerotape position` prints the
parameters that its channel must have.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.arguments import add_recording_id, add_stream
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit
from aerotape.tools.recordings.record import add_recording_options


@dataclass(frozen=True, slots=True)
class ExtendedRecording:
    """A recording that continues.

    Attributes:
        subscription_id: recording subscription id.
        recording_id: recording id.
        channel: channel.
        stream_id: stream id.
        source: local or remote.
        auto_stop: whether it stops with the stream.
    """

    subscription_id: int
    recording_id: int
    channel: str
    stream_id: int
    source: str
    auto_stop: bool


JSON_ROWS: Final = {"": ExtendedRecording}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_recording_id(parser)
    add_stream(parser)
    add_recording_options(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Send the request and print the subscription id."""
    with connect(args) as client:
        subscription_id = client.extend_recording(
            args.recording_id, args.channel, args.stream_id, args.source, auto_stop=args.auto_stop
        )
    emit(
        ExtendedRecording(
            subscription_id=subscription_id,
            recording_id=args.recording_id,
            channel=args.channel,
            stream_id=args.stream_id,
            source=args.source,
            auto_stop=args.auto_stop,
        ),
        args,
    )
