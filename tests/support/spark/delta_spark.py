"""A Spark session with delta-spark, in a process of its own: its extensions are fixed at its start.

The session is that of the example in docs/tables.md, with jars that are there already.

    python -m support.spark.delta_spark JARS

Each line of its input is a JSON list of a statement of SQL and the Parquet file for its rows, or
null; each line of its output is an error, or empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aerotape.context import Closing
from support import page_examples
from support.jvm.java import DELTA_SPARK, DELTA_STORAGE, find_jar
from support.processes import ROOT

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Files that the latest version does not have may be deleted at once.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def example() -> tuple[str, str]:
    """Return the start of the session of the example, and the statement that it runs then."""
    [found] = [
        each for each in page_examples.examples("tables.md") if "configure_spark_with_delta" in each
    ]
    beginning, statement = found.split("spark.sql(")
    return beginning, statement.strip().strip('")')


class DeltaSpark(Closing):
    """Runs SQL."""

    def __init__(self, folder: Path) -> None:
        """Start the session in a folder, for its warehouse and its log."""
        jars = f"{find_jar(DELTA_SPARK)},{find_jar(DELTA_STORAGE)}"
        self._log = folder / "spark.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.spark.delta_spark", jars],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
            )

    def sql(self, statement: str, rows: Path | None = None) -> None:
        """Run a statement; write its rows to a Parquet file if one is given."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(
            json.dumps([statement, None if rows is None else str(rows)]),
            file=self._process.stdin,
            flush=True,
        )
        answer = self._process.stdout.readline()
        assert answer == '""\n', f"{statement}: {answer or self._log.read_text()}"

    def close(self) -> None:
        """End the session."""
        self._process.communicate()


class DeltaSparkHand:
    """delta-spark as the program that changes a table (`support.spark.table_history.Hand`)."""

    def __init__(self, session: DeltaSpark, out: Path) -> None:
        self._sql, self._table = session.sql, f"delta.`{out}`"

    def delete(self, predicate: str) -> None:
        self._sql(f"DELETE FROM {self._table} WHERE {predicate}")

    def restore(self, version: int) -> None:
        self._sql(f"RESTORE TABLE {self._table} TO VERSION AS OF {version}")

    def optimize(self) -> None:
        self._sql(f"OPTIMIZE {self._table}")

    def vacuum(self) -> None:
        self._sql(f"VACUUM {self._table} RETAIN 0 HOURS")

    def add_constraint(self) -> None:
        self._sql(f"ALTER TABLE {self._table} ADD CONSTRAINT from_zero CHECK (position >= 0)")

    def drop_constraint(self) -> None:
        self._sql(f"ALTER TABLE {self._table} DROP CONSTRAINT from_zero")


def main(jars: str) -> None:
    from pyarrow import parquet
    from pyspark.sql import SparkSession

    answers = sys.stdout
    sys.stdout = sys.stderr

    def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
        return builder.master("local[1]").config(map={"spark.jars": jars, **SETTINGS})

    delta: Any = SimpleNamespace(configure_spark_with_delta_pip=configure)
    beginning, _ = example()
    names = page_examples.run(beginning, SparkSession=SparkSession, delta=delta)
    spark: SparkSession = names["spark"]
    for line in sys.stdin:
        statement, path = json.loads(line)
        error = ""
        try:
            frame = spark.sql(statement)
            if path is not None:
                parquet.write_table(frame.toArrow(), path)
        except Exception as raised:
            error = str(raised)
        print(json.dumps(error), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
