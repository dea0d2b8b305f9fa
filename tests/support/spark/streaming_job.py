"""A streaming query in a separate driver process, to be killed.

Run as ``python -m support.spark.streaming_job ARCHIVE_DIR OUT CHECKPOINT``. It writes a line on
stdout for each completed batch, and runs until it is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.context import Closing
from support.jvm.java import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start_query(
    spark: SparkSession,
    archive_dir: Path,
    out: Path,
    checkpoint: Path,
    *,
    available_now: bool = False,
    **options: object,
) -> StreamingQuery:
    """Start a query that writes all columns of an archive directory to Parquet files."""
    table = spark.readStream.format("aerotape").options(**options).load(str(archive_dir))  # type: ignore[arg-type]
    writer = table.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(availableNow=True) if available_now else writer
    return writer.start(str(out))


def wait_for_batches(query: StreamingQuery, count: int) -> None:
    """Wait until a query has completed this number of batches, or has failed."""
    while query.isActive and len(query.recentProgress) < count:
        time.sleep(0.02)


def run_batches(
    spark: SparkSession, archive_dir: Path, out: Path, checkpoint: Path, count: int
) -> StreamingQuery:
    """Start a query and wait until it has completed this number of small batches.

    A query that fails is started again for three minutes: Spark's pool may hand it workers that
    were killed, and Spark gives a new one 10 s to import PySpark from its zip file, which is not
    enough on a machine with other work. The last query has failed too if that does not help.
    """
    end_s = time.monotonic() + 180
    while True:
        query = start_query(spark, archive_dir, out, checkpoint, maxMessagesPerTrigger=40)
        wait_for_batches(query, count)
        if query.isActive or time.monotonic() > end_s:
            return query


class StreamingJob(Closing):
    """The process."""

    def __init__(self, archive_dir: Path, out: Path, checkpoint: Path) -> None:
        command = [sys.executable, "-m", "support.spark.streaming_job"]
        self._process = subprocess.Popen(
            [*command, str(archive_dir), str(out), str(checkpoint)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        )

    def wait_for_batches(self, count: int) -> None:
        """Wait until it has completed this number of batches."""
        assert self._process.stdout is not None
        for _ in range(count):
            assert self._process.stdout.readline(), f"exit code {self._process.wait()}"

    def kill(self) -> None:
        """End driver and JVM with SIGKILL. Idempotent."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def close(self) -> None:
        """End it as `kill` does. Idempotent."""
        self.kill()


def main() -> None:
    """Run the query until killed."""
    from pyspark.sql import SparkSession

    from aerotape.spark.runtime.session import job_context

    archive_dir, out, checkpoint = map(Path, sys.argv[1:])
    with job_context("local[2]", "to be killed"):
        spark = SparkSession.builder.getOrCreate()
        query = run_batches(spark, archive_dir, out, checkpoint, 1)
        seen = 0
        while query.isActive:
            wait_for_batches(query, seen + 1)
            for _ in query.recentProgress[seen:]:
                print("batch", flush=True)
                seen += 1


if __name__ == "__main__":
    main()
