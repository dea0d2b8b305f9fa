"""Times as options of the data source and of the Parquet job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.timed_directory import SECOND, Built, build

from aerotape.errors import ConfigurationError
from aerotape.spark.source.options import ReadOptions
from aerotape.times import TimeRange, format_time
from aerotape.tools._cli.main import main

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


def test_a_stream_begins_at_a_time(spark: SparkSession, built: Built, tmp_path: Path) -> None:
    begin = built.stream.messages[100].position
    stream = spark.readStream.format("aerotape").option(
        "fromTime", format_time(built.time_of(begin))
    )
    query = (
        stream.load(str(built.archive_dir))
        .select("position")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = sorted(row.position for row in spark.read.parquet(str(tmp_path / "out")).collect())
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
