"""Convert recordings of an archive directory to a folder of Parquet files, as a Spark job.

The files are zstd-compressed and sorted by recording and position. OUT is a path, or a URL such as
s3://bucket/table. Each run adds what was recorded since the last one; one job at a time may write.
The archive may be running. A recording that cannot be read to its end is skipped and reported. For
several writers, atomic commits and time travel see `aerotape table`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from aerotape.tools._cli import table_job

if TYPE_CHECKING:
    from aerotape.catalog.location import StorageOptions
    from aerotape.spark.tables.table import Table


JSON_ROWS: Final = table_job.JSON_ROWS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    table_job.configure(parser, "OUT", "the folder, a path or a URL")


def run(args: argparse.Namespace) -> int:
    """Run the job and print its report."""

    def open_table(storage: StorageOptions) -> Table:
        from aerotape.spark.tables.folder import ParquetFolder

        return ParquetFolder(args.out, storage, by_date=args.by_date)

    return table_job.run(args, open_table)
