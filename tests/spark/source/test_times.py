"""Times as options of the data source and of the Parquet job."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.builders.timed_directory import EPOCH, SECOND, Built, build, recorded_time

import aerotape
from aerotape.errors import ConfigurationError
from aerotape.spark.source.options import ReadOptions
from aerotape.times import TimeRange, format_time
from aerotape.tools._cli.main import main

pytest.importorskip("pyspark")
from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "archive")


def test_options_name_times() -> None:
    options = ReadOptions.parse(
        {"path": "/a", "fromtime": "2026-03-01T09:30Z", "toTime": "1772357401000"}
    )
    assert options.times == TimeRange(1_772_357_400 * SECOND, 1_772_357_401 * SECOND)
    with pytest.raises(ConfigurationError, match="fromTime: '2026-03-01T09:30' has no time zone"):
        ReadOptions.parse({"path": "/a", "fromTime": "2026-03-01T09:30"})
    with pytest.raises(ConfigurationError, match="goes backwards"):
        ReadOptions.parse({"path": "/a", "fromTime": "2s", "toTime": "1s"})


def test_segments_of_other_times_are_not_opened(spark: SparkSession, built: Built) -> None:
    """The files may even be missing; positions narrow the range further."""
    length = built.stream.segment_length
    messages = built.stream.messages
    chosen = [n for n, m in enumerate(messages) if length <= m.position < 2 * length][5:40]
    for position in (0, 2 * length):
        built.stream.segment_path(built.archive_dir, position).unlink()
    options = {
        "fromTime": format_time(built.time_of(messages[chosen[0]].position)),
        "toTime": f"{built.time_of(messages[chosen[-1]].position) + 1}ns",
    }
    table = spark.read.format("aerotape").options(**options).load(str(built.archive_dir))
    found = sorted(row.position for row in table.select("position").collect())
    wanted = [messages[n].position for n in chosen]
    assert set(wanted) <= set(found)
    assert len(found) <= len(wanted) + 4
    narrowed = spark.read.format("aerotape").options(**options, toPosition=wanted[10])
    rows = narrowed.load(str(built.archive_dir)).collect()
    assert sorted(row.position for row in rows) == [p for p in found if p < wanted[10]]


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


def test_the_parquet_job_accepts_times(built: Built, capsys: pytest.CaptureFixture[str]) -> None:
    message = built.stream.messages[100]
    argument = f"--from-time={format_time(built.time_of(message.position))}"
    out = str(built.archive_dir.parent / "table")
    assert main(["parquet", str(built.archive_dir), out, argument, "--dry-run", "--json"]) == 0
    [plan] = json.loads(capsys.readouterr().out)
    [(begin, end)] = [map(int, text.split("-")) for text in plan["ranges"]]
    assert built.stream.messages[97].position <= begin <= message.position
    assert end == built.stream.position
