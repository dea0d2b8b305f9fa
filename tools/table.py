"""Convert recordings of an archive directory to a Delta table, as a Spark job.

Spark tasks write the files and delta-rs commits them; needs the extras `spark` and `delta`.
TABLE is a path, or a URL such as s3://bucket/table. Each run adds what was recorded since the last
one, in commits that readers see as a whole; several jobs may write. The archive may be running. A
recording that cannot be read to its end is skipped and reported.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError
from aerotape.tools._cli import table_job
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.output import note

if TYPE_CHECKING:
    from aerotape.catalog.location import StorageOptions
    from aerotape.spark.tables.delta import DeltaRecordingTable


JSON_ROWS: Final = table_job.JSON_ROWS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    table_job.configure(parser, "TABLE", "the Delta table, a path or a URL")
    parser.add_argument(
        "--if-changed",
        choices=["refuse", "replace"],
        default="refuse",
        help="handling of a recording that was truncated or replaced since (default: refuse)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="convert again what the table already has"
    )
    parser.add_argument(
        "--compact", action="store_true", help="afterwards, merge small files into larger ones"
    )
    parser.add_argument(
        "--vacuum",
        type=count,
        metavar="HOURS",
        help="afterwards, delete files that no commit has, or had in the last HOURS hours",
    )


def run(args: argparse.Namespace) -> int:
    """Run the job, then maintain the table if asked to."""
    if args.dry_run and (args.compact or args.vacuum is not None):
        raise ConfigurationError("--dry-run cannot be used with --compact or --vacuum")
    opened: list[DeltaRecordingTable] = []

    def open_table(storage: StorageOptions) -> DeltaRecordingTable:
        from aerotape.spark.tables.delta import DeltaRecordingTable

        opened.append(DeltaRecordingTable(args.out, storage, by_date=args.by_date))
        return opened[0]

    code = table_job.run(args, open_table)
    if args.dry_run:
        return code
    [table] = opened
    if args.compact:
        figures = table.compact()
        note(f"compacted: {figures['numFilesRemoved']} files became {figures['numFilesAdded']}")
    if args.vacuum is not None:
        note(f"vacuumed: {len(table.vacuum(args.vacuum))} files deleted")
    return code
