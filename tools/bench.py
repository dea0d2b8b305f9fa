"""Measure recording, replaying and scanning on this machine.

Starts a media driver and an archive, records over IPC, replays the recording, reads it into Arrow,
and deletes all files at the end. Files are created in the system's temporary directory or in --dir:
on a disk, the disk is measured too; /dev/shm is memory. Results are medians of the rounds, with the
slowest and the fastest; MB/s are 10^6 bytes of segment files, frame headers included. `make bench`
in a checkout compares with the Java archive.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

from aerotape import __version__
from aerotape.errors import ConfigurationError, StorageError, StorageErrors
from aerotape.formatting import not_installed
from aerotape.tools._cli.arguments import integer
from aerotape.tools._cli.output import Progress, emit, note

_MEASUREMENTS: Final = ("record", "replay", "scan")
_TIME_LIMIT_S: Final = 60.0
_IN_MEMORY: Final = Path("/dev/shm")
_LOG_BUFFERS: Final = 256 << 20  # of a few streams, with the media driver's files
_SEGMENT_FILE: Final = 128 << 20
_MESSAGE_BYTES: Final = (1, 65_472)
_DEFAULT_BYTES: Final = 256 << 20
_MIN_BYTES: Final = 1 << 20
_MAX_BYTES: Final = 1 << 40
_MAX_ROUNDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement.

    Attributes:
        what: what was measured.
        message_bytes: length of messages, bytes.
        rounds: number of rounds.
        messages_per_s: messages per second.
        mb_per_s: MB per second, median.
        slowest_mb_per_s: slowest round, MB per second.
        fastest_mb_per_s: fastest round, MB per second.
    """

    what: str
    message_bytes: int
    rounds: int
    messages_per_s: int
    mb_per_s: float
    slowest_mb_per_s: float
    fastest_mb_per_s: float


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
    measurements: Sequence[Measurement]


JSON_ROWS: Final = {"": Benchmark}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "measurements",
        nargs="*",
        metavar="WHAT",
        help=f"what to measure, of {', '.join(_MEASUREMENTS)} (default: all that can run)",
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
    from aerotape.tools._live_archive import LiveArchive

    rows = []
    parent = Path(gettempdir()) if args.dir is None else args.dir
    with (
        # A recording, and the last one while it is deleted.
        _directories(parent, 2 * args.length + _SEGMENT_FILE) as (folder, aeron_dir),
        Progress(len(chosen), "measuring", unit="rows") as progress,
        LiveArchive(folder / "archive", aeron_dir, args.length, args.message_bytes) as archive,
    ):
        progress.update(0)
        for name in chosen:
            seconds = rounds_of(getattr(archive, name), args.rounds)
            length = archive.recorded_length
            rows.append(measurement(name, archive.messages, length, seconds, args.message_bytes))
            progress.update(len(rows))
    if args.json:
        machine, processors = platform.machine(), len(os.sched_getaffinity(0))
        version = platform.python_version()
        emit(Benchmark(__version__, version, machine, processors, parent, rows), args)
    else:
        emit(rows, args)


def measurement(
    what: str, messages: int, length: int, seconds: Sequence[float], message_bytes: int
) -> Measurement:
    """Return the median, the slowest and the fastest of rounds.

    Args:
        what: the name of the measurement.
        messages: number of messages in a round.
        length: bytes of segment files in a round.
        seconds: the duration of each round.
        message_bytes: length of each message, bytes.
    """
    median = statistics.median(seconds)
    return Measurement(
        what=what,
        message_bytes=message_bytes,
        rounds=len(seconds),
        messages_per_s=round(messages / median),
        mb_per_s=round(length / median / 1e6, 1),
        slowest_mb_per_s=round(length / max(seconds) / 1e6, 1),
        fastest_mb_per_s=round(length / min(seconds) / 1e6, 1),
    )


def rounds_of(
    once: Callable[[], float], rounds: int, time_limit_s: float = _TIME_LIMIT_S
) -> list[float]:
    """Return the durations of rounds, after a first round that does not count.

    Args:
        once: does a round and returns its duration, seconds.
        rounds: number of rounds, at least one.
        time_limit_s: no round starts after this time, the first round included.
    """
    begin = time.monotonic()
    once()
    seconds = [once()]
    while len(seconds) < rounds and time.monotonic() - begin < time_limit_s:
        seconds.append(once())
    return seconds


def _chosen(asked: list[str]) -> list[str]:
    """Return the measurements given, or by default all whose requirements are installed."""
    for name in asked:
        if name not in _MEASUREMENTS:
            raise ConfigurationError(
                f"unknown measurement {name!r}: expected {', '.join(_MEASUREMENTS)}", "WHAT"
            )
    missing = ""
    if importlib.util.find_spec("pyarrow") is None:
        missing = f"scan: {not_installed('pyarrow', 'arrow')}"
    if missing and "scan" in asked:
        raise ConfigurationError(missing, "WHAT")
    if missing and not asked:
        note(f"skipped: {missing}")
    return [
        name
        for name in _MEASUREMENTS
        if (name in asked if asked else name != "scan" or not missing)
    ]


@contextmanager
def _directories(parent: Path, length: int) -> Iterator[tuple[Path, Path]]:
    """Create directories, and delete them with their content at the end.

    Args:
        parent: the parent directory.
        length: bytes that must be free.

    Yields:
        A directory for an archive, and one for a media driver, which does not exist yet.

    Raises:
        StorageError: there is no such directory, or not enough space.
    """
    from aerotape.catalog.location import why_no_directory

    if (fault := why_no_directory(parent)) is not None:
        raise StorageError(fault, parent)
    aeron_parent = parent
    # Log buffers are shared memory; on a full tmpfs a write to them ends the process.
    if os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free >= _LOG_BUFFERS:
        aeron_parent = _IN_MEMORY
    if parent.stat().st_dev == aeron_parent.stat().st_dev:
        length += _LOG_BUFFERS
    free = shutil.disk_usage(parent).free
    if free < length:
        raise StorageError(
            f"not enough space in {parent}: {length >> 20:,} MiB required, {free >> 20:,} MiB "
            "free; give another directory with --dir, or a smaller --bytes",
            parent,
        )
    prefix = f"aerotape-bench-{os.getpid()}-"
    with StorageErrors(f"cannot write in {parent}", parent):
        folders = [TemporaryDirectory(prefix=prefix, dir=each) for each in (parent, aeron_parent)]
    with folders[0] as folder, folders[1] as driver:
        yield Path(folder), Path(driver) / "aeron"


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
    return integer(text, *_MESSAGE_BYTES)


def _rounds(text: str) -> int:
    return integer(text, 1, _MAX_ROUNDS)
