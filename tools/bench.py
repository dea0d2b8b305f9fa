"""Measure recording, replaying, scanning, verifying and the Parquet job on this machine.

Starts a media driver, records over IPC, reads the recordings, and deletes all files at the end.
Files are created in the system's temporary directory or in --dir: on a disk, the disk is measured
too; /dev/shm is memory. Results are medians of the rounds, with the slowest and the fastest; MB/s
are 10^6 bytes of segment files, frame headers included. `make bench` in a checkout compares with
the Java archive.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aerotape.errors import ConfigurationError
from aerotape.formatting import not_installed
from aerotape.tools._bench.measurement import MESSAGE_BYTES, ROWS, Load, MeasurementRow
from aerotape.tools._cli.arguments import integer
from aerotape.tools._cli.output import Progress, emit, note

_NEEDS: Final = {
    "scan": (("pyarrow",), "arrow"),
    "parquet": (("pyspark", "pyarrow"), "spark"),
}
_DEFAULT_BYTES: Final = 256 << 20
_MIN_BYTES: Final = 1 << 20
_MAX_BYTES: Final = 1 << 40
_MAX_ROUNDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The measurements of a machine.

    Attributes:
        aerotape: version of aerotape.
        python: version of Python.
        machine: processor architecture.
        processors: number of processors.
        dir: directory of the files.
        measurements: the measurements.
    """

    aerotape: str
    python: str
    machine: str
    processors: int
    dir: Path
    measurements: Sequence[MeasurementRow]


JSON_ROWS: Final = {"": Benchmark}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "measurements",
        nargs="*",
        metavar="WHAT",
        help=f"what to measure, of {', '.join(ROWS)} (default: all that can run)",
    )
    parser.add_argument(
        "--bytes",
        dest="length",
        metavar="N",
        type=_size,
        default=_DEFAULT_BYTES,
        help="length of each recording, bytes, optionally with k, m or g (default: 256m)",
    )
    parser.add_argument(
        "--message-bytes",
        metavar="N",
        type=_message_bytes,
        default=256,
        help="length of each message, bytes (default: 256)",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=_rounds,
        default=5,
        help="rounds of each measurement, after one that does not count (default: 5); no round "
        "starts after a minute",
    )
    parser.add_argument(
        "--dir",
        metavar="D",
        type=Path,
        help="create files in this directory (default: $TMPDIR, or /tmp)",
    )


def run(args: argparse.Namespace) -> None:
    """Measure, and print a table of the results."""
    chosen = _chosen(args.measurements)
    from aerotape.tools._bench import suite
    from aerotape.tools._bench.workspace import workspace

    # At Ctrl-C py4j logs a traceback to the root logger, which would print it.
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
        emit(Benchmark(**suite.machine(), dir=where, measurements=rows), args)
    else:
        emit(rows, args)


def _chosen(asked: list[str]) -> list[str]:
    """Return the measurements given, or by default all whose requirements are installed."""
    for name in asked:
        if name not in ROWS:
            raise ConfigurationError(
                f"unknown measurement {name!r}: expected {', '.join(ROWS)}", "WHAT"
            )
        if missing := _missing(name):
            raise ConfigurationError(f"{name}: {missing}", "WHAT")
    if asked:
        return [name for name in ROWS if name in asked]
    problems = {name: _missing(name) for name in ROWS}
    for name, missing in problems.items():
        if missing:
            note(f"skipped: {name}: {missing}")
    return [name for name in ROWS if not problems[name]]


def _missing(name: str) -> str:
    modules, extra = _NEEDS.get(name, ((), ""))
    for module in modules:
        if importlib.util.find_spec(module) is None:
            return not_installed(module, extra)
    if name == "parquet" and "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        return "Spark needs a JDK 17 or later on the PATH or in JAVA_HOME"
    return ""


def _size(text: str) -> int:
    from aerotape.units import parse_size

    try:
        size = parse_size("size", text)
    except ConfigurationError:
        size = -1
    if not _MIN_BYTES <= size <= _MAX_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size from 1m to 1024g: expected digits with an optional k, m or g"
        )
    return size


def _message_bytes(text: str) -> int:
    return integer(text, *MESSAGE_BYTES)


def _rounds(text: str) -> int:
    return integer(text, 1, _MAX_ROUNDS)
