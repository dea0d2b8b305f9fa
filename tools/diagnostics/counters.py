"""Show the counters of a media driver and of all archives and clients on it.

Reads the driver's CnC file without connecting, so it also works after the driver has died.
Archives use the type ids 100 to 113; `--type` selects one.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from aerotape.clock import epoch_ms
from aerotape.errors import AeronError
from aerotape.tools._cli.arguments import duration_s, int32
from aerotape.tools._cli.connection import add_driver_option, driver_directory
from aerotape.tools._cli.escaping import write_styled
from aerotape.tools._cli.output import emit, emit_line, note

if TYPE_CHECKING:
    from aerotape.cnc import CncFile, CounterRecord

_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


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
        rows = (_row(counter, args.json) for counter in file.counters(args.type_id))
        emit(rows, args, shortened="label")
        _note_if_dead(file)
        return
    while True:
        _show(file, args)
        _note_if_dead(file)
        time.sleep(args.interval)
        # A restarted driver has a new file.
        file = CncFile(directory)


def _show(file: CncFile, args: argparse.Namespace) -> None:
    rows = [_row(counter, args.json) for counter in file.counters(args.type_id)]
    if args.json:
        emit_line({"timestamp_ms": epoch_ms(), "counters": rows}, "", args)
    else:
        if sys.stdout.isatty():
            write_styled(_CLEAR_SCREEN, sys.stdout)
        print(time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime()), f"driver pid {file.pid}")
        emit(rows, args, shortened="label")
    sys.stdout.flush()


def _row(counter: CounterRecord, for_machine: bool) -> dict[str, Any]:
    if not for_machine:
        return {
            "id": counter.counter_id,
            "type": counter.type_id,
            "value": counter.value,
            "label": counter.label,
        }
    from aerotape.counter_keys import key_fields

    return {
        "counter_id": counter.counter_id,
        "type_id": counter.type_id,
        "value": counter.value,
        "label": counter.label,
        "registration_id": counter.registration_id,
        "owner_id": counter.owner_id,
        "reference_id": counter.reference_id,
        "key": counter.key.rstrip(b"\0"),
        **key_fields(counter.type_id, counter.key),
    }


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
