"""Delta tables of recordings, read by Spark through delta-spark."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.jvm.java import DELTA_SPARK, DELTA_STORAGE, find_jar

pytest.importorskip("deltalake")
pytest.importorskip("pyspark")

import pyarrow
from pyarrow import parquet
from support.spark.table_rig import expected_rows, run_here

# In a process of its own, because a session has its extensions from its start.
SCRIPT = """
import sys
from pyarrow import parquet
from pyspark.sql import SparkSession

settings = {
    "spark.jars": sys.argv[1],
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
for name in ("whole", "by_date"):
    loaded = spark.read.format("delta").load(name)
    parquet.write_table(loaded.toArrow(), f"{name}-loaded.parquet")
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{sys.argv[2]}/{name}'")
    selected = spark.sql(f"SELECT * FROM {name} WHERE recording_id = 1")
    parquet.write_table(selected.toArrow(), f"{name}-selected.parquet")
"""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        not version("pyspark").startswith("4.2."), reason="the delta-spark jar is for Spark 4.2"
    ),
]


def test_delta_spark_reads_the_rows(archive_dir: Path, tmp_path: Path) -> None:
    """Tables that two jobs have written are loaded, and selected from by a name."""
    add_recording(archive_dir, fill(SegmentBuilder(), 300))
    add_recording(archive_dir, fill(SegmentBuilder(), 20, seed=1))
    _convert(archive_dir, tmp_path)
    add_recording(archive_dir, fill(SegmentBuilder(), 30, seed=2))
    _convert(archive_dir, tmp_path)
    jars = f"{find_jar(DELTA_SPARK)},{find_jar(DELTA_STORAGE)}"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, jars, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = expected_rows(archive_dir)
    of_one_recording = [row for row in expected if row["recording_id"] == 1]
    for name in ("whole", "by_date"):
        assert _rows(tmp_path / f"{name}-loaded.parquet") == expected
        assert _rows(tmp_path / f"{name}-selected.parquet") == of_one_recording


def _convert(archive_dir: Path, tmp_path: Path) -> None:
    run_here("delta", archive_dir, tmp_path / "whole")
    run_here("delta", archive_dir, tmp_path / "by_date", by_date=True)


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows, sorted by recording and position, without the date."""
    table: pyarrow.Table = parquet.read_table(path)
    rows: list[dict[str, Any]] = table.sort_by(
        [("recording_id", "ascending"), ("position", "ascending")]
    ).to_pylist()
    for row in rows:
        row.pop("date", None)
    return rows
