"""The commands that convert recordings into tables: arguments, and printing of reports."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aerotape.catalog.directory import key_name
from aerotape.catalog.location import StorageOptions, parse_location
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.read_mode import check_mode, parse_mode
from aerotape.spark.source import options as parse
from aerotape.tools._cli.arguments import duration_s, int32, option
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.output import Progress, emit, emit_line, note
from aerotape.tools._cli.times import add_time_options, time_range

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording
    from aerotape.spark.tables.job import JobReport, RecordingReport
    from aerotape.spark.tables.plan import JobOptions
    from aerotape.spark.tables.table import Table

_T = TypeVar("_T")

_UP_TO_DATE: Final = "up to date"
_WATCH_S: Final = 10.0
_WATCH_MIN_BYTES: Final = 16 << 20
_MAX_DELAY_S: Final = 300.0
_ABOUT_PAYLOADS: Final = {
    "schema": "an SBE schema, XML or .sbeir: the payloads' fields become columns",
    "template": "name or id of the one message of the schema to convert (default: all)",
    "others": "messages of other templates: drop (the default) or null",
    "enums": "columns of enums: name (the default) or number",
    "sets": "columns of sets: struct (the default) or number",
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
    parser.set_defaults(overwrite=False, if_changed="refuse")
    _configure_choice(parser)
    parser.add_argument(
        "--checksum",
        choices=["none", "crc-32", "crc-32c"],
        default="none",
        help="verify each frame against the checksum it was recorded with",
    )
    parser.add_argument(
        "--mode",
        type=option(parse_mode, "--mode"),
        default="FAILFAST",
        help="handling of damaged messages and malformed payloads: FAILFAST (the default), "
        "DROPMALFORMED or PERMISSIVE, as in the data source",
    )
    for name, help_text in _ABOUT_PAYLOADS.items():
        parser.add_argument(f"--{name}", help=help_text)
    parser.add_argument(
        "--partition-bytes",
        type=option(parse.parse_partition_bytes, "--partition-bytes"),
        default=parse.DEFAULT_PARTITION_BYTES,
        metavar="N[k|m|g]",
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
        help="an option of the storage of a URL, e.g. endpoint_override=HOST:PORT (repeatable; "
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


def _configure_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--recording-ids",
        type=option(parse.parse_recording_ids, "--recording-ids"),
        metavar="ID[,ID...]",
        help="only these recordings",
    )
    parser.add_argument(
        "--scope-ids",
        type=option(parse.parse_scope_ids, "--scope-ids"),
        metavar="N[,N...]|all",
        help="recordings of these scopes, imported ones too, with the columns scope_id and "
        "qualified_name (default: the archive's own, without these columns)",
    )
    parser.add_argument(
        "--channel", metavar="FRAGMENT", help="only recordings whose original channel contains this"
    )
    parser.add_argument(
        "--stream-id", type=int32, metavar="ID", help="only recordings of this stream"
    )
    parser.add_argument(
        "--from-position",
        type=option(parse.integer, "--from-position"),
        metavar="P",
        help="leave out messages that begin before P",
    )
    parser.add_argument(
        "--to-position",
        type=option(parse.integer, "--to-position"),
        metavar="P",
        help="leave out messages that begin at P or later",
    )
    add_time_options(parser)


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
    _note_partition_bytes(report.term_length, args)
    _print(report, args)
    for recording in report.recordings:
        _print_problems(recording)
    is_whole = not any(each.error is not None or each.warnings for each in report.recordings)
    return EXIT_OK if is_whole else EXIT_DATA_SUSPECT


def _job_options(args: argparse.Namespace) -> JobOptions:
    from aerotape.spark.tables.plan import JobOptions

    about_payloads = {name: getattr(args, name) for name in _ABOUT_PAYLOADS}
    storage = _storage(args.storage)
    payloads = parse.parse_payloads(
        {k: v for k, v in about_payloads.items() if v is not None}, storage
    )
    check_mode(args.mode, args.checksum, "--mode", decodes=payloads is not None)
    min_bytes = args.min_bytes
    if min_bytes is None:
        min_bytes = 0 if args.watch is None else _WATCH_MIN_BYTES
    return JobOptions(
        read=parse.ReadOptions(
            archive_dir=str(args.archive_dir),
            recording_ids=args.recording_ids,
            scope_ids=args.scope_ids,
            channel=args.channel,
            stream_id=args.stream_id,
            from_position=args.from_position,
            to_position=args.to_position,
            times=time_range(args),
            checksum=args.checksum,
            mode=args.mode,
            payloads=payloads,
            partition_bytes=args.partition_bytes,
            storage=storage,
        ),
        overwrite=args.overwrite,
        replace_changed=args.if_changed == "replace",
        by_date=args.by_date,
        min_bytes=min_bytes,
        max_delay_s=_MAX_DELAY_S if args.max_delay is None else args.max_delay,
    )


def _storage(given: list[str]) -> StorageOptions:
    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ConfigurationError("--storage: expected NAME=VALUE", "--storage")
        options[name] = value
    return StorageOptions.of(options)


def _dry_run(options: JobOptions, table: Table, args: argparse.Namespace) -> int:
    from aerotape.spark.tables.job import plan_only
    from aerotape.spark.tables.plan import Action, longest_term

    plans = plan_only(options, table)
    _note_partition_bytes(longest_term(plans), args)
    rows = [
        {
            **_id_row(plan.recording),
            "action": plan.action.value,
            "ranges": [f"{part.from_position}-{part.to_position}" for part in plan.ranges],
            "recording_bytes": plan.recording_bytes,
            "reason": plan.reason,
        }
        for plan in plans
    ]
    _print_rows(rows, "action", args)
    for plan in plans:
        for warning in plan.warnings:
            note(f"warning: recording {key_name(plan.key)}: {warning}")
    is_whole = not any(plan.action is Action.REFUSE or plan.warnings for plan in plans)
    return EXIT_OK if is_whole else EXIT_DATA_SUSPECT


def _note_partition_bytes(term_length: int, args: argparse.Namespace) -> None:
    """Warn once of a value that has the effect of a larger one."""
    if args.partition_bytes < term_length:
        note(
            f"warning: --partition-bytes {args.partition_bytes} has the effect of {term_length}: "
            "recordings are cut at terms, and that is their term length"
        )
        args.partition_bytes = term_length


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
        _note_partition_bytes(report.term_length, args)
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
    if args.recording_ids and total.gone.issuperset(args.recording_ids):
        note("all recordings of --recording-ids are gone")
    emit({"out_dir": args.out, **total.totals}, args)
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

    rows = [dataclasses.asdict(recording) for recording in report.recordings]
    totals = {
        "out_dir": report.table,
        **{name: report.total(name) for name in SUMS},
        "elapsed_s": report.elapsed_s,
    }
    if args.json:
        emit({**totals, "recordings": rows}, args)
        return
    shown = ["recording_id", "messages", "recording_bytes", "result"]
    if args.scope_ids is not None:
        shown.insert(1, "qualified_name")
    _print_rows([{name: row.get(name) for name in shown} for row in rows], "result", args)
    if rows:
        print()
    emit(totals, args)


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
