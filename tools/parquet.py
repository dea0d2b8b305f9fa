"""Convert recordings of an archive directory to Parquet, as a Spark job.

OUT is a table with a partition for each recording (recording_id=N), zstd-compressed, sorted by
position, with the recording's descriptor in the metadata of each file and in _manifest.json. It is
a path, or a URL such as s3://bucket/table. Each run adds what was recorded since the last one. New
files of a recording appear atomically. The archive may be running. A recording that cannot be read
to its end is skipped and reported.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape.catalog.location import StorageOptions, parse_location
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.read_mode import check_mode, parse_mode
from aerotape.spark.source import options as parse
from aerotape.tools._cli.arguments import duration_s, int32, option
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.output import Progress, emit, emit_line, note
from aerotape.tools._cli.times import add_time_options, time_range

if TYPE_CHECKING:
    from aerotape.spark.parquet.job import JobReport, RecordingReport
    from aerotape.spark.parquet.plan import JobOptions

_T = TypeVar("_T")

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


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "archive_dir", type=parse_location, metavar="DIR", help="the archive directory, or its URL"
    )
    parser.add_argument("out", metavar="OUT", help="the table, a path or a URL")
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
        help="bytes of recording per task and file (default: 128m)",
    )
    parser.add_argument(
        "--by-date",
        action="store_true",
        help="partition each recording by UTC date (date=YYYY-MM-DD)",
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
        "--if-changed",
        choices=["refuse", "reconvert"],
        default="refuse",
        help="handling of a recording that was truncated or replaced after its conversion "
        "(default: refuse)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="convert recordings that OUT already has again, and replace them",
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
        "--channel", metavar="FRAGMENT", help="only recordings whose original channel contains this"
    )
    parser.add_argument(
        "--stream-id", type=int32, metavar="ID", help="only recordings of this stream"
    )
    parser.add_argument(
        "--from-position",
        type=option(parse.parse_position, "--from-position"),
        metavar="P",
        help="leave out messages that begin before P",
    )
    parser.add_argument(
        "--to-position",
        type=option(parse.parse_position, "--to-position"),
        metavar="P",
        help="leave out messages that begin at P or later",
    )
    add_time_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the job and print its report."""
    from aerotape.spark.parquet.job import convert
    from aerotape.spark.runtime.session import require_spark

    require_spark()
    if args.watch is None and args.max_delay is not None:
        raise ConfigurationError("--max-delay requires --watch")
    if args.watch is not None and args.dry_run:
        raise ConfigurationError("--dry-run cannot be used with --watch")
    # At Ctrl-C py4j hands the root logger a traceback, which else would end up on the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    options = _job_options(args)
    if args.dry_run:
        return _dry_run(options, args)
    if args.watch is not None:
        return _watch(options, args)
    with _progress() as on_progress:
        report = convert(
            options,
            args.out,
            master=args.master,
            on_progress=on_progress,
            whole_log=args.verbose,
        )
    _print(report, args)
    for recording in report.recordings:
        _print_problems(recording)
    failed = [recording for recording in report.recordings if recording.error is not None]
    if failed and len(failed) == len(report.recordings):
        return EXIT_FAILURE
    return _exit_code(report.recordings)


def _job_options(args: argparse.Namespace) -> JobOptions:
    from aerotape.spark.parquet.plan import JobOptions

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
        reconvert_changed=args.if_changed == "reconvert",
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


def _dry_run(options: JobOptions, args: argparse.Namespace) -> int:
    from aerotape.spark.parquet.job import plan_only
    from aerotape.spark.parquet.plan import Action

    plans = plan_only(options, args.out)
    emit(
        (
            {
                "recording_id": plan.recording.recording_id,
                "action": plan.action.value,
                "ranges": [f"{part.from_position}-{part.to_position}" for part in plan.ranges],
                "recording_bytes": plan.recording_bytes,
                "reason": plan.reason,
            }
            for plan in plans
        ),
        args,
    )
    for plan in plans:
        for warning in plan.warnings:
            note(f"warning: recording {plan.recording.recording_id}: {warning}")
    is_whole = not any(plan.action is Action.REFUSE or plan.warnings for plan in plans)
    return EXIT_OK if is_whole else EXIT_DATA_SUSPECT


def _watch(options: JobOptions, args: argparse.Namespace) -> int:
    """Convert new messages in rounds, until a signal ends it."""
    from aerotape.spark.parquet.task_runner import SparkTasks
    from aerotape.spark.parquet.watch import watch

    reported: set[tuple[int, str | None, tuple[str, ...]]] = set()

    def print_round(report: JobReport) -> None:
        for recording in report.recordings:
            if recording.result == "gone" and not recording.warnings:
                note(f"recording {recording.recording_id} is gone; the table has all of it")
            if recording.files or recording.result.startswith("converted"):
                emit_line(recording, _line(recording), args)
            problem = (recording.recording_id, recording.error, recording.warnings)
            if problem not in reported:
                reported.add(problem)
                _print_problems(recording)
        sys.stdout.flush()

    total = watch(
        options,
        args.out,
        SparkTasks(args.master, whole_log=args.verbose),
        args.watch,
        progress=_progress,
        on_round=print_round,
    )
    if args.recording_ids and total.gone.issuperset(args.recording_ids):
        note("aerotape parquet: all recordings of --recording-ids are gone")
    emit({"out_dir": args.out, **total.totals}, args)
    if not total.suspect:
        return EXIT_OK
    ids = ", ".join(str(id) for id in total.suspect)
    note(f"warning: left out or suspect, as reported before: recordings {ids}")
    return EXIT_DATA_SUSPECT


def _line(recording: RecordingReport) -> str:
    return (
        f"recording {recording.recording_id}: {recording.result} up to position "
        f"{recording.to_position}, {recording.messages:,} messages, {recording.files} files"
    )


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show tasks that are done, once it is known how many there are."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def on_progress(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(Progress(total, "converting", unit="tasks")))
            bars[0].update(done)

        yield on_progress


def _print(report: JobReport, args: argparse.Namespace) -> None:
    from aerotape.spark.parquet.watch import SUMS

    rows = [dataclasses.asdict(recording) for recording in report.recordings]
    totals = {
        "out_dir": report.out_dir,
        **{name: report.total(name) for name in SUMS},
        "elapsed_s": report.elapsed_s,
    }
    if args.json:
        emit({**totals, "recordings": rows}, args)
        return
    if rows:
        shown = ("recording_id", "messages", "recording_bytes", "parquet_bytes", "files", "result")
        emit(({name: row[name] for name in shown} for row in rows), args)
        print()
    emit(totals, args)


def _print_problems(recording: RecordingReport) -> None:
    for warning in recording.warnings:
        note(f"warning: recording {recording.recording_id}: {warning}")
    if recording.error is not None:
        note(f"aerotape parquet: left out: {recording.error}")


def _exit_code(recordings: list[RecordingReport]) -> int:
    if any(each.error is not None or each.warnings for each in recordings):
        return EXIT_DATA_SUSPECT
    return EXIT_OK
