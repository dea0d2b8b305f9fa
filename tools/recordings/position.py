"""Show the start, current and stop position of a recording.

A publication whose channel has the extension_parameters starts at the stop position of the
recording, as `aerotape extend` requires.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.arguments import add_recording_id
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import ABSENT, Absent, emit


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions of a recording.

    Attributes:
        recording_id: recording id.
        start_position: start position, bytes.
        recording_position: position of the recording in progress, -1 if stopped.
        stop_position: stop position, bytes; -1 while it is recorded.
        max_recorded_position: stop position, or that of the recording in progress.
        length_bytes: bytes between start and stop position.
        segment_file_length: length of segment files, bytes.
        term_buffer_length: length of a term, bytes.
        extension_parameters: parameters of a channel that extends a stopped recording.
    """

    recording_id: int
    start_position: int
    recording_position: int
    stop_position: int
    max_recorded_position: int
    length_bytes: int
    segment_file_length: int | Absent = ABSENT
    term_buffer_length: int | Absent = ABSENT
    extension_parameters: str | Absent = ABSENT


JSON_ROWS: Final = {"": Positions}


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
    parameters: str | Absent = ABSENT
    if found is not None and not found.is_active:
        parameters = extension_channel(found, "aeron:ipc").partition("?")[2]
    emit(
        Positions(
            recording_id=args.recording_id,
            start_position=start,
            recording_position=live,
            stop_position=stop,
            max_recorded_position=recorded,
            length_bytes=recorded - start,
            segment_file_length=ABSENT if found is None else found.segment_file_length,
            term_buffer_length=ABSENT if found is None else found.term_buffer_length,
            extension_parameters=parameters,
        ),
        args,
    )
