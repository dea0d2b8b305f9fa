"""Measure this machine: recording, replaying, scanning, verifying, and the Parquet job.

Records over IPC with a media driver of its own, reads recordings that it makes, and removes all
of that again. Files are in the system's place for temporary ones or below --dir: on a disk, the
disk is measured too; /dev/shm is memory. Figures are medians of the rounds, with the slowest and
the fastest; MB/s count what is in segment files, 10^6 bytes, frame headers too. Nothing is
compared with: `make bench` in a checkout measures against the Java archive.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import shutil
from pathlib import Path
from typing import Final

from aerotape.errors import ConfigurationError
from aerotape.text import not_installed
from aerotape.tools._arguments import integer
from aerotape.tools.output import Progress, emit, note

_NAMES: Final = ("record", "replay", "scan", "verify", "parquet")
_NEEDS: Final = {
    "scan": (("pyarrow",), "arrow"),
    "parquet": (("pyspark", "pyarrow"), "spark"),
}
_DEFAULT_BYTES: Final = 256 << 20
_MIN_BYTES: Final = 1 << 20
_MAX_BYTES: Final = 1 << 40
_MESSAGE_BYTES: Final = (4, 65_472)
_MAX_ROUNDS: Final = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "measurements",
        nargs="*",
        metavar="WHAT",
        help=f"what to measure, of {', '.join(_NAMES)} (default: all that can be)",
    )
    parser.add_argument(
        "--bytes",
        dest="length",
        metavar="N",
        type=_size,
        default=_DEFAULT_BYTES,
        help="length of each recording, bytes, or with k, m or g (default: 256m)",
    )
    parser.add_argument(
        "--message-bytes",
        metavar="N",
        type=_message_bytes,
        default=256,
        help="length of each message (default: 256)",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=_rounds,
        default=5,
        help="how often each is measured, besides a first time that does not count (5); after a "
        "minute no other round begins",
    )
    parser.add_argument(
        "--dir",
        metavar="D",
        type=Path,
        help="make files below this directory (default: $TMPDIR, or /tmp)",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, and print a table of it."""
    chosen = _chosen(args.measurements)
    from aerotape.tools._bench import suite
    from aerotape.tools._bench.measurement import Load
    from aerotape.tools._bench.workspace import workspace

    # At Ctrl-C py4j hands the root logger a traceback, which else would end up on the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    load = Load(args.length, args.message_bytes, args.rounds)
    needs_driver = not suite.LIVE.isdisjoint(chosen)
    rows = []
    with (
        workspace(args.dir, suite.needed_bytes(load), needs_driver=needs_driver) as place,
        Progress(suite.row_count(chosen), "measuring", unit="rows") as progress,
    ):
        progress.update(0)
        for measurement in suite.measure(place, load, chosen):
            rows.append(measurement.row(load.message_bytes))
            progress.update(len(rows))
        where = place.folder.parent
    if args.json:
        emit({**suite.machine(), "dir": where, "measurements": rows}, args)
    else:
        emit(rows, args)
    return 0


def _chosen(asked: list[str]) -> list[str]:
    """Return what to measure: what was asked for, or all for which there is what it needs."""
    for name in asked:
        if name not in _NAMES:
            raise ConfigurationError(
                f"there is no measurement {name!r}; there are {', '.join(_NAMES)}", "WHAT"
            )
        if missing := _missing(name):
            raise ConfigurationError(f"{name}: {missing}", "WHAT")
    chosen = []
    for name in _NAMES:
        if asked:
            if name in asked:
                chosen.append(name)
        elif missing := _missing(name):
            note(f"left out: {name}: {missing}")
        else:
            chosen.append(name)
    return chosen


def _missing(name: str) -> str:
    modules, extra = _NEEDS.get(name, ((), ""))
    for module in modules:
        if importlib.util.find_spec(module) is None:
            return not_installed(module, extra)
    if name == "parquet" and "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        return "Spark needs a JDK 17 or later on the PATH or in JAVA_HOME"
    return ""


def _size(text: str) -> int:
    from aerotape.archive.config.units import parse_size

    try:
        size = parse_size("size", text)
    except ConfigurationError:
        size = -1
    if not _MIN_BYTES <= size <= _MAX_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size of 1m to 1024g: digits with an optional k, m or g"
        )
    return size


def _message_bytes(text: str) -> int:
    return integer(text, *_MESSAGE_BYTES)


def _rounds(text: str) -> int:
    return integer(text, 1, _MAX_ROUNDS)
