"""Watch an archive's recordings: a line whenever one starts, stops, is extended or deleted.

An archive signals what happens to a recording only to the client behind it. This command finds the
same for all recordings, by asking for them again and again. It ends with Ctrl-C, or after --count.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.tools._connection import (
    add_connection_options,
    ascii_text,
    connect,
    count,
    duration_ns,
    identity,
    int32,
)
from aerotape.tools.output import emit_line, note

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor


@dataclass(frozen=True)
class Happening:
    """What has happened to a recording between two looks.

    Attributes:
        signal: ``start``, ``stop``, ``extend`` or ``delete``.
        position: where it stands now, -1 where it is not known.
    """

    signal: str
    recording_id: int
    position: int
    stream_id: int
    session_id: int
    channel: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--recording", metavar="ID", type=identity, help="this recording only")
    parser.add_argument(
        "--channel", metavar="FRAGMENT", type=ascii_text, default="", help="channels with this text"
    )
    parser.add_argument("--stream-id", metavar="ID", type=int32)
    parser.add_argument("--count", metavar="N", type=count, help="end after so many lines")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=duration_ns,
        default=500_000_000,
        help="time between two looks (500ms)",
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print what happens until interrupted."""
    shown = 0
    with connect(args) as client:
        known: dict[int, RecordingDescriptor] | None = None
        while args.count is None or shown < args.count:
            now = {
                found.recording_id: found
                for found in client.list_recordings()
                if _is_wanted(found, args)
            }
            if known is not None:
                for happening in changes(known, now):
                    if args.count is None or shown < args.count:
                        _print(happening, args)
                        shown += 1
            if known is None:
                note(f"watching; {len(now)} recordings so far")
            known = now
            time.sleep(args.interval / 1e9)
    return 0


def changes(
    known: dict[int, RecordingDescriptor], now: dict[int, RecordingDescriptor]
) -> Iterator[Happening]:
    """Tell what has happened from one look at the recordings to the next, by their ids."""
    for recording_id in sorted(known.keys() | now.keys()):
        before, after = known.get(recording_id), now.get(recording_id)
        if after is None:
            assert before is not None
            yield _happening("delete", before, -1)
        elif before is None:
            yield _happening("start", after, after.start_position)
            if not after.is_active:
                yield _happening("stop", after, after.stop_position)
        elif before.is_active != after.is_active:
            if after.is_active:
                yield _happening("extend", after, before.stop_position)
            else:
                yield _happening("stop", after, after.stop_position)
        elif after.stop_position > before.stop_position:  # extended and stopped in between
            yield _happening("extend", after, before.stop_position)
            yield _happening("stop", after, after.stop_position)


def _happening(signal: str, of: RecordingDescriptor, position: int) -> Happening:
    return Happening(
        signal, of.recording_id, position, of.stream_id, of.session_id, of.stripped_channel
    )


def _is_wanted(found: RecordingDescriptor, args: argparse.Namespace) -> bool:
    return (
        args.recording in (None, found.recording_id)
        and args.stream_id in (None, found.stream_id)
        and args.channel in found.stripped_channel
    )


def _print(happening: Happening, args: argparse.Namespace) -> None:
    text = (
        f"{happening.signal:<7} recording {happening.recording_id} position {happening.position} "
        f"stream {happening.stream_id} session {happening.session_id} {happening.channel}"
    )
    emit_line(happening, text, args)
    sys.stdout.flush()
