"""Show the counters of a media driver and of all archives and clients on it.

Reads the driver's CnC file without connecting, so it also works after the driver has died.
Archives use the type ids 100 to 113; `--type` selects one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aerotape.clock import epoch_ms
from aerotape.errors import AeronError
from aerotape.tools._cli.arguments import duration_s, int32
from aerotape.tools._cli.connection import add_driver_option, driver_directory
from aerotape.tools._cli.escaping import write_styled
from aerotape.tools._cli.output import ABSENT, Absent, emit, emit_line, note

if TYPE_CHECKING:
    from aerotape.cnc import CncFile, CounterRecord

_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class CounterRow:
    """A counter.

    Attributes:
        counter_id: counter id.
        type_id: type id of the counter.
        value: value.
        label: label.
        registration_id: registration id.
        owner_id: client id of the owner, 0: the media driver.
        reference_id: registration id of the resource that it is about, 0 if unknown.
        key: its key, hexadecimal.
        archive_id: archive id, as are the fields below only of counters whose keys have them.
        control_session_id: control session id.
        recording_id: recording id.
        session_id: session id of the stream.
        bound_ns: bound of the counted syncs: they took no longer, and longer than the next lower
            bound, nanoseconds.
    """

    counter_id: int
    type_id: int
    value: int
    label: str
    registration_id: int
    owner_id: int
    reference_id: int
    key: bytes
    archive_id: int | Absent = ABSENT
    control_session_id: int | Absent = ABSENT
    recording_id: int | Absent = ABSENT
    session_id: int | Absent = ABSENT
    bound_ns: int | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters at a time.

    Attributes:
        timestamp_ms: time, epoch milliseconds.
        counters: the counters.
    """

    timestamp_ms: int
    counters: Sequence[CounterRow]


JSON_ROWS: Final = {"": CounterRow, "--watch": Counters}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--type", dest="type_id", metavar="ID", type=int32, help="only counters of this type"
    )
    parser.add_argument("--watch", action="store_true", help="repeat until interrupted")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=duration_s,
        default=1.0,
        help="the interval of --watch: 1, 500ms (default: 1s)",
    )
    add_driver_option(parser)


def run(args: argparse.Namespace) -> None:
    """Print the counters, once or repeatedly."""
    from aerotape.cnc import CncFile

    directory = driver_directory(args)
    file = CncFile(directory)
    if not args.watch:
        found = file.counters(args.type_id)
        emit(map(_row if args.json else _for_people, found), args, shortened="label")
        _note_if_dead(file)
        return
    while True:
        _show(file, args)
        _note_if_dead(file)
        time.sleep(args.interval)
        # A restarted driver has a new file.
        file = CncFile(directory)


def _show(file: CncFile, args: argparse.Namespace) -> None:
    found = file.counters(args.type_id)
    if args.json:
        emit_line(Counters(epoch_ms(), [_row(each) for each in found]), "", args)
    else:
        if sys.stdout.isatty():
            write_styled(_CLEAR_SCREEN, sys.stdout)
        print(time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime()), f"driver pid {file.pid}")
        emit(map(_for_people, found), args, shortened="label")
    sys.stdout.flush()


def _for_people(counter: CounterRecord) -> dict[str, Any]:
    return {
        "id": counter.counter_id,
        "type": counter.type_id,
        "value": counter.value,
        "label": counter.label,
    }


def _row(counter: CounterRecord) -> CounterRow:
    from aerotape.counter_keys import key_fields

    return CounterRow(
        counter_id=counter.counter_id,
        type_id=counter.type_id,
        value=counter.value,
        label=counter.label,
        registration_id=counter.registration_id,
        owner_id=counter.owner_id,
        reference_id=counter.reference_id,
        key=counter.key.rstrip(b"\0"),
        **key_fields(counter.type_id, counter.key),
    )


def _note_if_dead(file: CncFile) -> None:
    try:
        heartbeat_ms = file.heartbeat_timestamp_ms
        if file.is_active():
            return
    except AeronError:
        return  # the file is gone: its last counters were shown
    if heartbeat_ms < 0:
        note(f"the driver of {file.path} has ended (pid {file.pid})")
    else:
        age_s = time.time() - heartbeat_ms / 1_000
        note(f"no heartbeat of the driver of {file.path} for {age_s:.0f} s (pid {file.pid})")
