"""Show the error logs of an archive and of its media driver, each distinct error once.

With DIR, shows the log in the archive's mark file, then the log of the driver that the mark file
names. With only --aeron-dir, shows the log of that driver. Neither needs to be running.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import AeronError
from aerotape.formatting import printable
from aerotape.times import datetime_of_ms
from aerotape.tools._cli.connection import add_driver_option, driver_directory
from aerotape.tools._cli.option_names import message_of
from aerotape.tools._cli.output import emit, note

if TYPE_CHECKING:
    from aerotape.distinct_error_log import ErrorObservation


@dataclass(frozen=True, slots=True)
class LoggedError:
    """A distinct error of an error log.

    Attributes:
        source: archive or driver.
        path: the file with the log.
        count: number of observations.
        first_timestamp_ms: first observation, epoch milliseconds.
        last_timestamp_ms: last observation, epoch milliseconds.
        text: the error, which may have lines.
    """

    source: str
    path: Path
    count: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    text: str


JSON_ROWS: Final = {"": LoggedError}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "directory", metavar="DIR", type=Path, nargs="?", help="the archive directory"
    )
    add_driver_option(parser)


def run(args: argparse.Namespace) -> None:
    """Print the errors, or a note on standard error if there are none."""
    if args.directory is not None:
        show_errors(args.directory, args, aeron_dir=args.aeron_dir)
        return
    from aerotape.cnc import CncFile

    file = CncFile(driver_directory(args))
    _print(list(_rows("driver", file.path, file.errors())), args)


def show_errors(archive_dir: Path, args: argparse.Namespace, aeron_dir: str | None = None) -> None:
    """Print the errors of an archive and of its driver.

    Args:
        archive_dir: the archive directory.
        args: for `json`.
        aeron_dir: the driver's directory when it is not the one that the mark file names.

    Raises:
        MarkFileError: there is no mark file of an archive.
        AeronError: `aeron_dir` was given and has no CnC file.
    """
    from aerotape.catalog.mark.mark_file import MarkFile
    from aerotape.cnc import CncFile

    info = MarkFile.read(archive_dir)
    rows = list(_rows("archive", info.path, info.errors))
    try:
        if driver := aeron_dir or info.header.aeron_directory:
            file = CncFile(driver)
            rows += _rows("driver", file.path, file.errors())
    except AeronError as error:
        if aeron_dir is not None:
            raise
        # A driver may delete its file when it ends; the archive's errors remain.
        note(f"warning: the errors of the media driver cannot be read: {message_of(error)}")
    _print(rows, args)


def _rows(source: str, path: Path, errors: list[ErrorObservation]) -> Iterator[LoggedError]:
    for error in errors:
        yield LoggedError(
            source=source,
            path=path,
            count=error.count,
            first_timestamp_ms=error.first_timestamp_ms,
            last_timestamp_ms=error.last_timestamp_ms,
            text=error.text,
        )


def _print(rows: list[LoggedError], args: argparse.Namespace) -> None:
    if args.json:
        emit(rows, args)
    elif not rows:
        note("no errors")
    else:
        for row in rows:
            times = "once at" if row.count == 1 else f"{row.count} times, first at"
            last = "" if row.count == 1 else f", last at {_time(row.last_timestamp_ms)}"
            print(f"{row.source}: {times} {_time(row.first_timestamp_ms)}{last}:")
            # Stack traces have lines.
            for line in row.text.splitlines():
                print(f"  {printable(line.expandtabs())}")


def _time(timestamp_ms: int) -> str:
    time = datetime_of_ms(timestamp_ms)
    if time is None:
        return f"{timestamp_ms} ms"
    return f"{time:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1_000:03}Z"
