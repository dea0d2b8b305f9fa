"""Convert recordings of an archive directory to Parquet, as a Spark job.

OUT becomes a table with a folder for each recording (recording_id=N), zstd-compressed, sorted by
position, with the recording's descriptor in each file's metadata and in _manifest.json. A
recording's files appear all at once. The directory's archive may be running: what is recorded at
the start is converted. A recording that cannot be read to its end is left out and named.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape.catalog.location import StorageOptions, parse_location
from aerotape.errors import ConfigurationError
from aerotape.spark import options as parse
from aerotape.tools.output import Progress, emit, note

if TYPE_CHECKING:
    from aerotape.spark.parquet_job import JobReport

_T = TypeVar("_T")

_EXIT_OK: Final = 0
_EXIT_FAILURE: Final = 1
_EXIT_DATA_SUSPECT: Final = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "archive_dir", type=parse_location, metavar="DIR", help="the archive directory, or its URL"
    )
    parser.add_argument("out_dir", type=Path, metavar="OUT", help="the folder of the table")
    parser.add_argument(
        "--recording-ids",
        type=_argument(parse.parse_recording_ids, "--recording-ids"),
        metavar="ID[,ID...]",
        help="only these recordings",
    )
    parser.add_argument(
        "--from-position",
        type=_argument(parse.parse_position, "--from-position"),
        metavar="P",
        help="leave out messages that begin before P",
    )
    parser.add_argument(
        "--to-position",
        type=_argument(parse.parse_position, "--to-position"),
        metavar="P",
        help="leave out messages that begin at P or later",
    )
    parser.add_argument(
        "--checksum",
        choices=["none", "crc-32", "crc-32c"],
        default="none",
        help="verify each frame against the checksum it was recorded with",
    )
    parser.add_argument(
        "--partition-bytes",
        type=_argument(parse.parse_partition_bytes, "--partition-bytes"),
        default=parse.DEFAULT_PARTITION_BYTES,
        metavar="N[k|m|g]",
        help="bytes of recording for each task and file (default: 128m)",
    )
    parser.add_argument(
        "--storage",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="how the storage of a URL is reached, e.g. endpoint_override=HOST:PORT (repeatable; "
        "keep credentials in the environment)",
    )
    parser.add_argument(
        "--master", metavar="URL", help="Spark's master (default: all cores of this machine)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace recordings that OUT already holds"
    )


def run(args: argparse.Namespace) -> int:
    """Run the job and print its report."""
    from aerotape.spark.parquet_job import convert

    # At Ctrl-C py4j hands the root logger a traceback, which else would end up on the terminal.
    logging.getLogger().addHandler(logging.NullHandler())

    options = parse.ReadOptions(
        archive_dir=str(args.archive_dir),
        recording_ids=args.recording_ids,
        from_position=args.from_position,
        to_position=args.to_position,
        checksum=args.checksum,
        partition_bytes=args.partition_bytes,
        storage=_storage(args.storage),
    )
    with Progress(None, "converting", unit="tasks") as progress:
        report = convert(
            options,
            args.out_dir,
            master=args.master,
            overwrite=args.overwrite,
            on_progress=lambda done, total: progress.update(done),
        )
    _print(report, args)
    for recording in report.recordings:
        for warning in recording.warnings:
            note(f"warning: recording {recording.recording_id}: {warning}")
        if recording.error is not None:
            note(f"aerotape parquet: left out: {recording.error}")
    return _exit_code(report)


def _storage(given: list[str]) -> StorageOptions:
    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ConfigurationError("--storage takes NAME=VALUE", "--storage")
        options[name] = value
    return StorageOptions.of(options)


def _print(report: JobReport, args: argparse.Namespace) -> None:
    rows = [dataclasses.asdict(recording) for recording in report.recordings]
    totals = {
        "out_dir": report.out_dir,
        "messages": report.total("messages"),
        "recording_bytes": report.total("recording_bytes"),
        "payload_bytes": report.total("payload_bytes"),
        "parquet_bytes": report.total("parquet_bytes"),
        "files": report.total("files"),
        "elapsed_s": report.elapsed_s,
    }
    if args.json:
        emit({**totals, "recordings": rows}, args)
        return
    if rows:
        shown = ("recording_id", "messages", "recording_bytes", "parquet_bytes", "files")
        emit(
            (
                {**{name: row[name] for name in shown}, "result": _result(row["error"])}
                for row in rows
            ),
            args,
        )
        print()
    emit(totals, args)


def _result(error: str | None) -> str:
    return "written" if error is None else "left out"


def _exit_code(report: JobReport) -> int:
    failed = [recording for recording in report.recordings if recording.error is not None]
    if failed and len(failed) == len(report.recordings):
        return _EXIT_FAILURE
    if failed or any(recording.warnings for recording in report.recordings):
        return _EXIT_DATA_SUSPECT
    return _EXIT_OK


def _argument(convert: Callable[[str, str], _T], name: str) -> Callable[[str], _T]:
    """Make argparse show what a parser of options says."""

    def parse_argument(text: str) -> _T:
        try:
            return convert(text, name)
        except ConfigurationError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{name}: ")) from None

    return parse_argument
