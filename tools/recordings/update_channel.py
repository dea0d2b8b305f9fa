"""Change the channel in the descriptor of a recording; its data stays unchanged."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.errors import UnknownRecordingError
from aerotape.tools._cli.arguments import add_recording_id, channel
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class UpdatedChannel:
    """The channel of a recording.

    Attributes:
        recording_id: recording id.
        stripped_channel: channel without parameters that do not identify it.
        original_channel: channel as it was given.
    """

    recording_id: int
    stripped_channel: str
    original_channel: str


JSON_ROWS: Final = {"": UpdatedChannel}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_recording_id(parser)
    parser.add_argument("channel", metavar="CHANNEL", type=channel, help="an Aeron channel URI")
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Send the request and print the channel in the descriptor."""
    with connect(args) as client:
        client.update_channel(args.recording_id, args.channel)
        found = client.list_recording(args.recording_id)
    if found is None:
        raise UnknownRecordingError(
            f"recording {args.recording_id} was deleted meanwhile", args.recording_id
        )
    emit(
        UpdatedChannel(
            recording_id=found.recording_id,
            stripped_channel=found.stripped_channel,
            original_channel=found.original_channel,
        ),
        args,
    )
