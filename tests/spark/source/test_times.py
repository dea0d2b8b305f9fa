"""Times as options of the data source."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.builders.timed_directory import EPOCH, Built, build, recorded_time

import aerotape
from aerotape.times import format_time

pytest.importorskip("pyspark")
from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "archive")


COLUMNS = "recording_id,position,recorded_time"


def test_recorded_times_are_the_same_in_spark_polars_and_duckdb(
    spark: SparkSession, built: Built
) -> None:
    """Of a recording with an index and one without; the default columns do not include them."""
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    add_recording(built.archive_dir, fill(SegmentBuilder(), 30))
    table = spark.read.format("aerotape").option("columns", COLUMNS).load(str(built.archive_dir))
    assert table.schema["recorded_time"].dataType.simpleString() == "timestamp"
    arrow = table.toArrow().sort_by([("recording_id", "ascending"), ("position", "ascending")])
    rows = [tuple(row.values()) for row in arrow.to_pylist()]
    points = {0: built.points, 1: []}
    assert len({time for _, _, time in rows}) > 70
    assert rows == [(id, position, recorded_time(points[id], position)) for id, position, _ in rows]
    names = COLUMNS.split(",")
    assert aerotape.scan_polars(built.archive_dir).select(names).collect().rows() == rows
    duck = []
    for recording in aerotape.open_directory(built.archive_dir).recordings():
        batches = recording.to_batches(columns=names)
        ordered = duckdb.from_arrow(batches).order("position")
        duck += ordered.project("recording_id, position, epoch_us(recorded_time)").fetchall()
    assert duck == [
        (*place, time and (time - EPOCH) // timedelta(microseconds=1)) for *place, time in rows
    ]
    default = spark.read.format("aerotape").load(str(built.archive_dir))
    assert "recorded_time" not in default.columns


def test_options_and_filters_of_times(spark: SparkSession, built: Built) -> None:
    """A filter selects rows by their times; with options for the same times segments of other times
    may be missing."""
    length = built.stream.segment_length
    moments = [recorded_time(built.points, message.position) for message in built.stream.messages]
    chosen = [n for n, m in enumerate(built.stream.messages) if length <= m.position < 2 * length]
    low, high = moments[chosen[5]], moments[chosen[-5]]
    assert low and high
    expected = [
        message.position
        for message, moment in zip(built.stream.messages, moments, strict=True)
        if moment and low <= moment < high
    ]
    assert len(expected) > 10

    def positions(**options: str) -> list[int]:
        table = spark.read.format("aerotape").option("columns", "position,recorded_time")
        rows = table.options(**options).load(str(built.archive_dir))
        is_wanted = (fn.col("recorded_time") >= fn.lit(low)) & (fn.col("recorded_time") < high)
        return sorted(row.position for row in rows.where(is_wanted).collect())

    assert positions() == expected
    for position in (0, 2 * length):
        built.stream.segment_path(built.archive_dir, position).unlink()
    assert positions(fromTime=low.isoformat(), toTime=high.isoformat()) == expected


def test_a_stream_begins_at_a_time(spark: SparkSession, built: Built, tmp_path: Path) -> None:
    begin = built.stream.messages[100].position
    stream = spark.readStream.format("aerotape").options(
        fromTime=format_time(built.time_of(begin)), columns="position,recorded_time"
    )
    query = (
        stream.load(str(built.archive_dir))
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    for row in rows:
        assert row["recorded_time"] == recorded_time(built.points, row["position"])
    found = sorted(row["position"] for row in rows)
    positions = [message.position for message in built.stream.messages]
    assert found == positions[-len(found) :]
    assert 0 <= len(found) - len(positions[100:]) <= 2
