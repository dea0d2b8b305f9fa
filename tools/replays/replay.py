"""Replay a recording: count its messages, print them, write them to a file or to a channel.

Without --to, this command receives the messages and prints their number and positions. A live
recording is followed until it stops, unless --no-follow is given. With --to, the archive replays
to the channel and the command returns at once. With the archive's directory, `aerotape cat` prints
messages without the archive; `aerotape subscribe` prints a stream that is published now.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from aerotape.errors import AerotapeError, ConfigurationError, StorageError, StorageErrors
from aerotape.tools._cli.arguments import (
    add_recording_id,
    add_scope_id,
    byte_length,
    channel,
    count,
    int32,
    int64,
)
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import Progress, emit, emit_line, note, refuse_terminal
from aerotape.tools._cli.selecting import SEEKING, TIMES, add_selection_options, selected
from aerotape.tools._cli.times import positions
from aerotape.tools.messages._printing import MessageRow, message_row
from aerotape.tools.replays._seek import find_position, own_recording

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient
    from aerotape.message import Message
    from aerotape.times import TimeRange

_SHOWN_BYTES: Final = 48


@dataclass(frozen=True, slots=True)
class ReplayedMessages:
    """The messages that were received of a replay.

    Attributes:
        recording_id: recording id.
        messages: number of messages.
        bytes: bytes of payloads.
        start_position: position at which the replay began, bytes.
        end_position: position after the last message, bytes.
    """

    recording_id: int
    messages: int
    bytes: int
    start_position: int
    end_position: int


@dataclass(frozen=True, slots=True)
class StartedReplay:
    """A replay to another channel.

    Attributes:
        replay_session_id: replay session id.
        recording_id: recording id.
        channel: channel.
        stream_id: stream id.
    """

    replay_session_id: int
    recording_id: int
    channel: str
    stream_id: int


JSON_ROWS: Final = {"": ReplayedMessages | MessageRow | StartedReplay}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_recording_id(parser)
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--position",
        metavar="P",
        type=int64,
        help="the start position, bytes (default: the recording's start)",
    )
    add_selection_options(begin, SEEKING)
    parser.add_argument(
        "--length", metavar="N", type=int64, help="the length, bytes (default: to the end)"
    )
    add_selection_options(parser, TIMES)
    parser.add_argument(
        "--archive-dir",
        metavar="DIR",
        type=Path,
        help="the archive's directory on this machine, required for times; a search by index or "
        "asqn is faster with it",
    )
    parser.add_argument(
        "--no-follow",
        dest="follow",
        action="store_false",
        help="end at the current position of a live recording",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to", metavar="CHANNEL", type=channel, help="replay to this channel")
    where.add_argument("--out", metavar="FILE", help="write the payloads to a file (-: stdout)")
    where.add_argument(
        "--print", dest="print_messages", action="store_true", help="print each message"
    )
    parser.add_argument("--stream-id", metavar="S", type=int32, help="stream for --to")
    parser.add_argument(
        "--limit-counter",
        metavar="ID",
        type=count,
        help="do not replay past the value of this counter of the media driver",
    )
    parser.add_argument(
        "--file-io-max-length",
        metavar="N",
        type=byte_length,
        help="the most the archive reads at a time, bytes",
    )
    parser.add_argument("--force", action="store_true", help="replace FILE of --out if it exists")
    parser.add_argument(
        "--framing",
        choices=("none", "length"),
        default="none",
        help="for --out; length: write the length before each payload, 4 bytes little-endian",
    )
    add_scope_id(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Replay; an incomplete replay is a failure."""
    if (args.to is None) != (args.stream_id is None):
        raise ConfigurationError("--to and --stream-id are used together: give both", "--to")
    if args.framing != "none" and args.out is None:
        raise ConfigurationError("--framing requires --out", "--framing")
    if args.force and args.out is None:
        raise ConfigurationError("--force requires --out", "--force")
    selection = selected(args, (*TIMES, *SEEKING))
    times, target = selection.times, selection.seek
    if times and args.archive_dir is None:
        raise ConfigurationError(
            "--from-time and --to-time require --archive-dir: the time index is only in the "
            "archive's directory",
            "--archive-dir",
        )
    if args.ledger_scope_id and times:
        raise ConfigurationError(
            "--ledger-scope-id cannot be used with --from-time or --to-time",
            "--ledger-scope-id",
        )
    with connect(args) as client:
        if target is not None:
            args.position = find_position(client, args, target)
        if times:
            _choose(client, args, times)
        if args.to is not None:
            return _send(client, args)
        return _receive(client, args)


def _choose(client: ArchiveClient, args: argparse.Namespace, times: TimeRange) -> None:
    """Replace the times by positions."""
    recording_id, recording = args.recording_id, own_recording(client, args)
    begin, end = positions(recording, times)
    begin = max(begin, args.position or 0)
    # Without --to-time, a live recording is followed as usual.
    is_bounded = times.to_ns is not None
    if begin >= end and (is_bounded or not recording.descriptor.is_active):
        raise AerotapeError(
            f"no data of recording {recording_id} in the requested range was recorded in that time"
        )
    args.position = begin
    if is_bounded:
        args.length = end - begin if args.length is None else min(args.length, end - begin)


def _send(client: ArchiveClient, args: argparse.Namespace) -> int:
    length = args.length
    if length is None and not args.follow and not args.ledger_scope_id:
        start = args.position
        start = client.start_position(args.recording_id) if start is None else start
        length = client.max_recorded_position(args.recording_id) - start
    replay_session_id = client.start_replay(
        args.recording_id,
        args.to,
        args.stream_id,
        position=args.position,
        length=length,
        limit_counter_id=args.limit_counter,
        file_io_max_length=args.file_io_max_length,
        scope_id=args.ledger_scope_id,
    )
    emit(
        StartedReplay(
            replay_session_id=replay_session_id,
            recording_id=args.recording_id,
            channel=args.to,
            stream_id=args.stream_id,
        ),
        args,
    )
    return 0


def _receive(client: ArchiveClient, args: argparse.Namespace) -> int:
    count = length = 0
    with ExitStack() as resources:
        # First, so that no file is overwritten for a recording that does not exist.
        replay = resources.enter_context(
            client.replay(
                args.recording_id,
                args.position,
                args.length,
                follow=args.follow,
                limit_counter_id=args.limit_counter,
                file_io_max_length=args.file_io_max_length,
                scope_id=args.ledger_scope_id,
            )
        )
        consume = _consumer(args, resources)
        progress = resources.enter_context(
            Progress(replay.expected_length, f"replaying recording {args.recording_id}")
        )
        for message in replay:
            consume(message)
            count += 1
            length += len(message.payload)
            progress.update(message.end_position - replay.start_position)
            if replay.expected_length is None:  # following: show it at once
                sys.stdout.flush()
        end = replay.position
    if not count and end > replay.start_position:
        note(
            f"no whole message between positions {replay.start_position} and"
            f" {end}: use another position or a greater length"
        )
    if not args.print_messages and args.out != "-":
        emit(
            ReplayedMessages(args.recording_id, count, length, replay.start_position, end), args
        )
    return 0


def _consumer(args: argparse.Namespace, resources: ExitStack) -> Callable[[Message], None]:
    if args.print_messages:
        return lambda message: _print(message, args)
    if args.out is None:
        return lambda message: None
    stream: IO[bytes] = sys.stdout.buffer
    if args.out == "-":
        refuse_terminal("--out -", "use --print")
    else:
        # The caller's stack closes it.
        stream = resources.enter_context(_output_file(Path(args.out), args.force))

    def write(message: Message) -> None:
        if args.framing == "length":
            stream.write(len(message.payload).to_bytes(4, "little"))
        stream.write(message.payload)

    return write


@contextmanager
def _output_file(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """Open the file of --out; errors until it is closed name it."""
    # A pipe or a device is written to as it is.
    is_special = path.exists() and not path.is_file()
    try:
        file = path.open("wb" if force or is_special else "xb")
    except FileExistsError as error:
        raise StorageError(
            f"{path} exists already: name another file, or replace it with --force", path
        ) from error
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", path) from error
    with StorageErrors(f"cannot write {path}", path), file:
        yield file


def _print(message: Message, args: argparse.Namespace) -> None:
    text = f"{message.position:>12} {len(message.payload):>8}  {_preview(message)}"
    emit_line(message_row(message, message.payload), text, args)


def _preview(message: Message) -> str:
    shown = message.payload[:_SHOWN_BYTES]
    more = "…" if len(message.payload) > len(shown) else ""
    if shown.isascii() and shown.decode("ascii").isprintable():
        return shown.decode("ascii") + more
    return shown.hex() + more
