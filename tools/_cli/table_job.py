"""The commands that convert recordings into tables: arguments, and printing of reports."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.directory import key_name
from aerotape.catalog.location import StorageOptions, parse_location
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.selection import OPTIONS
from aerotape.spark.source import options as parse
from aerotape.tools._cli.arguments import duration_s, option
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.output import ABSENT, Absent, Progress, as_row, emit, emit_line, note
from aerotape.tools._cli.selecting import add_selection_options, selected

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording
    from aerotape.spark.tables.job import ImportedReport, JobReport, RecordingReport
    from aerotape.spark.tables.plan import JobOptions
    from aerotape.spark.tables.table import Table

_UP_TO_DATE: Final = "up to date"
_WATCH_S: Final = 10.0
_WATCH_MIN_BYTES: Final = 16 << 20
_MAX_DELAY_S: Final = 300.0
_SELECTING: Final = tuple(name for name in OPTIONS if name not in ("columns", "last"))
"""All but those that a table that grows cannot have: its columns and rows stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRecording:
    """The plan for a recording.

    Attributes:
        recording_id: recording id.
        qualified_name: qualified id of an imported recording, 32 hexadecimal digits.
        action: convert, replace, up to date, wait for more or refuse.
        ranges: positions that are converted, `from-to`.
        recording_bytes: bytes to convert.
        reason: why it is refused or replaced, null if it is not.
    """

    recording_id: int
    qualified_name: str | Absent = ABSENT
    action: str
    ranges: Sequence[str]
    recording_bytes: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class TableTotals:
    """The sums of all rounds.

    Attributes:
        out_dir: where the table is.
        messages: number of messages.
        recording_bytes: bytes of segment files converted.
        payload_bytes: bytes of payloads.
        parquet_bytes: bytes of Parquet files written.
        files: number of files written.
    """

    out_dir: str
    messages: int
    recording_bytes: int
    payload_bytes: int
    parquet_bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class TableReport(TableTotals):
    """The outcome of a conversion.

    Attributes:
        elapsed_s: time taken, seconds.
        recordings: the outcome of each recording.
    """

    elapsed_s: float
    recordings: Sequence[RecordingReport | ImportedReport]


JSON_ROWS: Final = {
    "": TableReport,
    "--dry-run": PlannedRecording,
    "--watch": (
        "aerotape.spark.tables.job:RecordingReport",
        "aerotape.spark.tables.job:ImportedReport",
        TableTotals,
    ),
}


def configure(parser: argparse.ArgumentParser, out: str, about_out: str) -> None:
    """Add the arguments of a command.

    Args:
        parser: of the command.
        out: name of the argument for the table.
        about_out: help for it.
    """
    parser.add_argument(
        "archive_dir", type=parse_location, metavar="DIR", help="the archive directory, or its URL"
    )
    parser.add_argument("out", metavar=out, help=about_out)
    # Arguments of commands whose table can replace rows.
    parser.set_defaults(overwrite=False, if_changed="refuse", effective_bytes=0)
    add_selection_options(parser, _SELECTING)
    parser.add_argument(
        "--partition-bytes",
        type=option(parse.parse_partition_bytes, "--partition-bytes"),
        metavar="N[k|m|g]",
        default=parse.DEFAULT_PARTITION_BYTES,
        help="bytes of recording per task and file, at least a term of it (default: 128m)",
    )
    parser.add_argument(
        "--by-date",
        action="store_true",
        help="partition by UTC date (date=YYYY-MM-DD)",
    )
    parser.add_argument(
        "--storage",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the storage of a URL, e.g. endpoint=https://HOST:PORT (repeatable; "
        "give credentials in the environment)",
    )
    parser.add_argument(
        "--master", metavar="URL", help="the Spark master URL (default: all cores of this machine)"
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=duration_s,
        const=_WATCH_S,
        metavar="TIME",
        help="repeat at this interval (default: 10s) until interrupted",
    )
    parser.add_argument(
        "--min-bytes",
        type=option(parse.parse_partition_bytes, "--min-bytes"),
        metavar="N[k|m|g]",
        help="skip a live recording until it has this much new data (default: 16m with --watch)",
    )
    parser.add_argument(
        "--max-delay",
        type=duration_s,
        metavar="TIME",
        help="with --watch, convert less than --min-bytes after this time (default: 300s)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be converted, and change nothing"
    )


def run(args: argparse.Namespace, open_table: Callable[[StorageOptions], Table]) -> int:
    """Run the job and print its report.

    Args:
        args: those of `configure`.
        open_table: opens the table, given the options of its storage.
    """
    from aerotape.spark.runtime.session import require_spark
    from aerotape.spark.tables.job import convert

    require_spark()
    if args.watch is None and args.max_delay is not None:
        raise ConfigurationError("--max-delay requires --watch")
    if args.watch is not None and args.dry_run:
        raise ConfigurationError("--dry-run cannot be used with --watch")
    # At Ctrl-C py4j hands the root logger a traceback, which else would end up on the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    options = _job_options(args)
    table = open_table(options.read.storage)
    if args.dry_run:
        return _dry_run(options, table, args)
    with _announced_stop():
        if args.watch is not None:
            return _watch(options, table, args)
        with _progress() as on_progress:
            report = convert(
                options,
                table,
                master=args.master,
                on_progress=on_progress,
                whole_log=args.verbose,
            )
    _note_partition_bytes(report.term_length, options, args)
    _print(report, args)
    _note_nothing(report.recordings, args)
    for recording in report.recordings:
        _print_problems(recording)
    is_whole = not any(each.error is not None or each.warnings for each in report.recordings)
    return EXIT_OK if is_whole else EXIT_DATA_SUSPECT


@contextmanager
def _announced_stop() -> Iterator[None]:
    """Report at once that a signal ends the job: Spark may take many seconds to do so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}

    def stop(number: int, frame: FrameType | None) -> None:
        note("stopping")
        handler = before[signal.Signals(number)]
        signal.signal(number, handler)
        handler(number, frame)

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _job_options(args: argparse.Namespace) -> JobOptions:
    from aerotape.spark.tables.plan import JobOptions

    min_bytes = args.min_bytes
    if min_bytes is None:
        min_bytes = 0 if args.watch is None else _WATCH_MIN_BYTES
    return JobOptions(
        read=_read_options(args),
        overwrite=args.overwrite,
        replace_changed=args.if_changed == "replace",
        by_date=args.by_date,
        min_bytes=min_bytes,
        max_delay_s=_MAX_DELAY_S if args.max_delay is None else args.max_delay,
    )


def _read_options(args: argparse.Namespace) -> parse.ReadOptions:
    storage = {}
    for text in args.storage:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ConfigurationError("--storage: expected NAME=VALUE", "--storage")
        storage[name] = value
    return parse.ReadOptions.of_selection(
        selected(args, _SELECTING),
        str(args.archive_dir),
        StorageOptions.of(storage),
        args.partition_bytes,
    )


def _dry_run(options: JobOptions, table: Table, args: argparse.Namespace) -> int:
    from aerotape.spark.tables.job import plan_only
    from aerotape.spark.tables.plan import Action, longest_term

    plans = plan_only(options, table)
    _note_partition_bytes(longest_term(plans), options, args)
    rows = [
        PlannedRecording(
            **_id_row(plan.recording),
            action=plan.action.value,
            ranges=[f"{part.from_position}-{part.to_position}" for part in plan.ranges],
            recording_bytes=plan.recording_bytes,
            reason=plan.reason,
        )
        for plan in plans
    ]
    _print_rows(list(map(as_row, rows)), "action", args)
    _note_nothing(rows, args)
    for plan in plans:
        for warning in plan.warnings:
            note(f"warning: recording {key_name(plan.key)}: {warning}")
    is_whole = not any(plan.action is Action.REFUSE or plan.warnings for plan in plans)
    return EXIT_OK if is_whole else EXIT_DATA_SUSPECT


def _note_nothing(selected: Sequence[object], args: argparse.Namespace) -> None:
    if not selected:
        note(f"no recording of {args.archive_dir} is selected")


def _note_partition_bytes(term_length: int, options: JobOptions, args: argparse.Namespace) -> None:
    """Warn of a value that has the effect of a larger one, once."""
    given = options.read.partition_bytes
    if max(given, args.effective_bytes) < term_length:
        note(
            f"warning: --partition-bytes {given} has the effect of {term_length}: recordings are "
            "cut at terms, and that is their term length"
        )
        args.effective_bytes = term_length


def _id_row(recording: Recording) -> dict[str, Any]:
    row: dict[str, Any] = {"recording_id": recording.recording_id}
    if recording.imported_from is not None:
        row["qualified_name"] = str(recording.qualified_id)
    return row


def _watch(options: JobOptions, table: Table, args: argparse.Namespace) -> int:
    """Convert new messages in rounds, until a signal ends it."""
    from aerotape.spark.tables.task_runner import SparkTasks
    from aerotape.spark.tables.watch import watch

    reported: set[tuple[int, str | None, tuple[str, ...]]] = set()

    def print_round(report: JobReport) -> None:
        _note_partition_bytes(report.term_length, options, args)
        for recording in report.recordings:
            if recording.result == "gone" and not recording.warnings:
                note(f"recording {key_name(recording.key)} is gone; the table has all of it")
            if recording.messages or recording.result in ("converted", "replaced"):
                text = (
                    f"recording {key_name(recording.key)}: {recording.result} up to position "
                    f"{recording.to_position}, {recording.messages:,} messages"
                )
                emit_line(recording, text, args)
            problem = (recording.key, recording.error, recording.warnings)
            if problem not in reported:
                reported.add(problem)
                _print_problems(recording)
        sys.stdout.flush()

    total = watch(
        options,
        table,
        SparkTasks(args.master, whole_log=args.verbose),
        args.watch,
        progress=_progress,
        on_round=print_round,
    )
    if total.gone.issuperset(options.read.recording_ids or [None]):
        note("all recordings of --recording-ids are gone")
    emit(TableTotals(args.out, **total.totals), args)
    if not total.suspect:
        return EXIT_OK
    ids = ", ".join(key_name(key) for key in total.suspect)
    note(f"warning: left out or suspect, as reported before: recordings {ids}")
    return EXIT_DATA_SUSPECT


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    with Progress(None, "converting", unit="tasks") as bar:
        yield bar.update


def _print(report: JobReport, args: argparse.Namespace) -> None:
    from aerotape.spark.tables.watch import SUMS

    rows = [as_row(recording) for recording in report.recordings]
    sums = {name: report.total(name) for name in SUMS}
    if args.json:
        emit(
            TableReport(
                report.table, **sums, elapsed_s=report.elapsed_s, recordings=report.recordings
            ),
            args,
        )
        return
    shown = ["recording_id", "messages", "recording_bytes", "result"]
    if args.scope_ids is not None:
        shown.insert(1, "qualified_name")
    _print_rows([{name: row.get(name) for name in shown} for row in rows], "result", args)
    if rows:
        print()
    emit({"out_dir": report.table, **sums, "elapsed_s": report.elapsed_s}, args)


def _print_rows(rows: list[dict[str, Any]], result: str, args: argparse.Namespace) -> None:
    """Print rows; for people those of recordings that are up to date as one line, unless -v."""
    is_whole = args.json or args.verbose
    shown = [row for row in rows if is_whole or row[result] != _UP_TO_DATE]
    emit(shown, args)
    if hidden := len(rows) - len(shown):
        print(f"recordings {_UP_TO_DATE}: {hidden:,} (-v lists them)")


def _print_problems(recording: RecordingReport) -> None:
    for warning in recording.warnings:
        note(f"warning: recording {key_name(recording.key)}: {warning}")
    if recording.error is not None:
        note(f"left out: {recording.error}")
