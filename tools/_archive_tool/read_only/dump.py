"""`dump`: print the frames of recordings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.frame_header import BEGIN_FLAG, END_FLAG, TYPE_DATA, TYPE_PADDING, UNFRAGMENTED
from aerotape.tools._archive_tool.read_only.describe import for_people, recording_row
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit, note, print_section
from aerotape.tools._cli.selecting import TIMES, add_selection_options, selected
from aerotape.tools._cli.times import positions

if TYPE_CHECKING:
    from aerotape.catalog.maintenance.dump import Frame
    from aerotape.replay.offline.directory import Recording
    from aerotape.times import TimeRange

_LINE_LENGTH = 16


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A frame.

    Attributes:
        recording_id: recording id.
        position: its position, bytes.
        length: frame length, bytes.
        flags: its flags.
        frame_type: frame type.
        term_offset: offset in the term, bytes.
        session_id: session id of the stream.
        stream_id: stream id.
        term_id: term id.
        reserved_value: the frame's reserved value.
        payload: its payload, hexadecimal.
    """

    recording_id: int
    position: int
    length: int
    flags: int
    frame_type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int
    payload: bytes


JSON_ROWS: Final = {"dump": FrameRow}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "dump", _dump, reads_urls=True)
    parser.add_argument(
        "limit",
        metavar="FRAMES",
        type=count,
        nargs="?",
        help="the maximum number of frames of each recording",
    )
    add_selection_options(parser, TIMES)


def _dump(args: argparse.Namespace) -> int:
    """Print all recordings, of any state, with their frames; with --json, only the frames."""
    from aerotape.replay.offline.directory import open_directory

    if args.limit is not None and args.limit <= 0:
        raise ConfigurationError(
            f"the number of frames must be positive, got {args.limit}", "FRAMES"
        )
    directory = open_directory(args.directory)
    recordings = directory.recordings_of(directory.entries())
    dump = _Dump(args.limit, selected(args, TIMES).times)
    if args.json:
        emit(
            (
                _row(recording.recording_id, frame)
                for recording in recordings
                for frame in dump.frames(recording)
            ),
            args,
        )
    else:
        for recording in recordings:
            row = recording_row(recording.entry, recording.suspect_notes)
            print_section(f"recording {recording.recording_id}", for_people(row))
            for frame in dump.frames(recording):
                _print_frame(frame)
            if dump.left:
                print(f"{dump.left} bytes of recording {recording.recording_id} not shown\n")
    return EXIT_DATA_SUSPECT if dump.failed else 0


def _row(recording_id: int, frame: Frame) -> FrameRow:
    header = frame.header
    return FrameRow(
        recording_id=recording_id,
        position=frame.position,
        length=header.frame_length,
        flags=header.flags,
        frame_type=header.frame_type,
        term_offset=header.term_offset,
        session_id=header.session_id,
        stream_id=header.stream_id,
        term_id=header.term_id,
        reserved_value=header.reserved_value,
        payload=frame.payload,
    )


class _Dump:
    """Reads the frames of recordings, and skips what cannot be read.

    Attributes:
        left: bytes of the last recording after the limit.
        failed: whether a recording could not be read to its end.
    """

    def __init__(self, limit: int | None, times: TimeRange) -> None:
        self._limit = limit
        self._times = times
        self.left = 0
        self.failed = False

    def frames(self, recording: Recording) -> Iterator[Frame]:
        """Iterate the first frames of a recording; note on standard error if reading fails."""
        from aerotape.catalog.layout import RecordingState
        from aerotape.catalog.maintenance.dump import read_frames

        self.left = 0
        try:
            if recording.entry.state == RecordingState.DELETED and not recording.segment_files():
                return  # purged: no data is missing
            begin, end = None, None
            if self._times:
                begin, end = positions(recording, self._times)
            for count, frame in enumerate(read_frames(recording, begin, end)):
                if count == self._limit:
                    self.left = (end or recording.recorded_position) - frame.position
                    break
                yield frame
        except (AerotapeError, OSError) as error:
            self.failed = True
            note(f"warning: recording {recording.recording_id} cannot be read to its end: {error}")


def _print_frame(frame: Frame) -> None:
    header = frame.header
    kinds: dict[int, str] = {TYPE_PADDING: "padding", TYPE_DATA: "data"}
    kind = kinds.get(header.frame_type, f"type {header.frame_type}")
    parts: dict[int, str] = {
        UNFRAGMENTED: "",
        BEGIN_FLAG: ", first fragment",
        END_FLAG: ", last fragment",
        0: ", fragment",
    }
    part = parts[header.flags & UNFRAGMENTED]
    print(
        f"frame at position {frame.position}: {kind} of {header.frame_length} bytes{part}, "
        f"flags 0x{header.flags:02x}, session id {header.session_id}, "
        f"term id {header.term_id}, term offset {header.term_offset}, "
        f"reserved value {header.reserved_value}"
    )
    for offset in range(0, len(frame.payload), _LINE_LENGTH):
        print(_hex_line(offset, frame.payload[offset : offset + _LINE_LENGTH]))
    print()


def _hex_line(offset: int, data: bytes) -> str:
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    return f"  {offset:08x}  {data.hex(' '):<{3 * _LINE_LENGTH - 1}}  {text}"
