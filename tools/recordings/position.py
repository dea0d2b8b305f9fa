"""Show the start, current and stop position of a recording.

A publication whose channel has the extension_parameters starts at the stop position of the
recording, as `aerotape extend` requires.
"""

from __future__ import annotations

import argparse
from typing import Any

from aerotape.tools._cli.arguments import add_recording_id
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_recording_id(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Request and print the positions; -1 means none."""
    from aerotape.catalog.descriptor import extension_channel

    with connect(args) as client:
        start = client.start_position(args.recording_id)
        stop = client.stop_position(args.recording_id)
        live = client.recording_position(args.recording_id)
        recorded = client.max_recorded_position(args.recording_id)
        found = client.list_recording(args.recording_id)
    row: dict[str, Any] = {
        "recording_id": args.recording_id,
        "start_position": start,
        "recording_position": live,
        "stop_position": stop,
        "max_recorded_position": recorded,
        "length_bytes": recorded - start,
    }
    if found is not None:
        row["segment_file_length"] = found.segment_file_length
        row["term_buffer_length"] = found.term_buffer_length
        if not found.is_active:
            channel = extension_channel(found, "aeron:ipc")
            row["extension_parameters"] = channel.partition("?")[2]
    emit(row, args)
