"""A streaming query that writes to a Delta table, as docs/tables.md shows it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import deltalake
import pyarrow
from support.spark.table_rig import expected_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Killed(Exception):
    """A query ends after a commit, before Spark notes it."""


def test_a_repeated_batch_is_in_the_table_once(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Each batch is committed and its query then fails, so that Spark repeats it."""
    table_dir, checkpoint = tmp_path / "delta", tmp_path / "checkpoint"
    add_recording(archive_dir, fill(SegmentBuilder(), 40), live=True)
    source = spark.readStream.format("aerotape").option("maxBytesPerTrigger", "64k")
    failures = itertools.count()
    appended = []

    def append(batch: DataFrame, batch_id: int) -> None:
        arrow = batch.toArrow()
        if not deltalake.DeltaTable.is_deltatable(str(table_dir)):
            deltalake.DeltaTable.create(table_dir, deltalake.Schema.from_arrow(arrow.schema))
        table = deltalake.DeltaTable(table_dir)
        version = table.transaction_version("orders")
        if (-1 if version is None else version) < batch_id:
            done = deltalake.CommitProperties(
                app_transactions=[deltalake.Transaction("orders", batch_id)]
            )
            deltalake.write_deltalake(table, arrow, mode="append", commit_properties=done)
            appended.append(batch_id)
            next(failures)
            raise Killed

    for _ in range(20):
        query = (
            source.load(str(archive_dir))
            .writeStream.foreachBatch(append)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
            break
        except Exception as error:
            assert "Killed" in str(error)
    assert len(appended) > 1
    assert appended == sorted(set(appended))
    rows: list[dict[str, Any]] = (
        pyarrow.table(deltalake.DeltaTable(table_dir).to_pyarrow_table())
        .sort_by("position")
        .to_pylist()
    )
    expected = expected_rows(archive_dir)
    for row in expected:
        del row["recorded_time"]  # selected by name only
    assert rows == expected
