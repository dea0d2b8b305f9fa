"""Streaming queries in a real Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.daemon import archives
from support.daemon.recording import start_recording, wait_until
from support.model.messages import message
from support.spark.streaming_job import start_query

import aerotape
from aerotape.catalog.file.catalog import Catalog
from aerotape.replay.offline.directory import open_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CRC_32C = {"aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c"}


def written(spark: SparkSession, out: Path) -> list[dict[str, Any]]:
    """Return the rows that a query has written, in order."""
    table = spark.read.parquet(str(out)).orderBy("recording_id", "position")
    return [row.asDict() for row in table.collect()]


def recorded(archive_dir: Path) -> list[dict[str, Any]]:
    """Return all rows recorded now, without Spark."""
    return [
        row
        for recording in open_directory(archive_dir).recordings()
        for row in recording.to_arrow(checksum="crc-32c").to_pylist()
    ]


@pytest.mark.parametrize("kind", archives.KINDS)
def test_live_recordings_are_followed(
    spark: SparkSession, kind: archives.Kind, tmp_path: Path, aeron_dir: Path
) -> None:
    """Rows recorded between triggers, in later recordings, and after restarts of the archive and
    the query are returned once, as by a batch query."""
    launch = archives.ARCHIVES[kind]
    archive_dir, out, checkpoint = tmp_path / "archive", tmp_path / "out", tmp_path / "checkpoint"

    def connect() -> aerotape.ArchiveClient:
        return aerotape.connect(
            aeron_dir=aeron_dir, control_request_channel=archive.control_channel
        )

    def send(made: Any, count: int) -> None:
        made.send(message(made.stream_id, len(made.sent) + i, 0, 6000) for i in range(count))
        position = made.sent[-1][1]
        wait_until(
            lambda: client.recording_position(made.recording_id) == position, "the recording"
        )

    with launch(archive_dir, aeron_dir, properties=CRC_32C) as archive, connect() as client:
        first = start_recording(client, count=60)
        query = start_query(spark, archive_dir, out, checkpoint, checksum="crc-32c")
        query.processAllAvailable()
        assert len(written(spark, out)) == 60
        send(first, 30)
        second = start_recording(client, count=20)
        query.processAllAvailable()
        rows = written(spark, out)
        assert rows == recorded(archive_dir)
        assert [bytes(row["payload"]) for row in rows] == [
            payload for made in (first, second) for payload, _, _ in made.sent
        ]
        assert query.lastProgress is not None
        assert f'"position": {first.end}' in query.lastProgress["sources"][0]["latestOffset"]
        send(second, 10)
        query.stop()
        send(first, 10)

    with launch(archive_dir, aeron_dir, properties=CRC_32C) as archive, connect() as client:
        third = start_recording(client, count=15)
        query = start_query(
            spark, archive_dir, out, checkpoint, checksum="crc-32c", maxBytesPerTrigger="16k"
        )
        query.processAllAvailable()
        assert len(query.recentProgress) > 3
        query.stop()
        send(third, 5)
        query = start_query(
            spark, archive_dir, out, checkpoint, checksum="crc-32c", available_now=True
        )
        query.awaitTermination()
        rows = written(spark, out)
        assert len(rows) == 150
        assert rows == recorded(archive_dir)


def test_errors_reach_the_user(spark: SparkSession, tmp_path: Path) -> None:
    """The query's exception has the error of a data loss or an option."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    builder = fill(SegmentBuilder(segment_length=65_536), 60)
    add_recording(archive_dir, builder)
    places = archive_dir, tmp_path / "out", tmp_path / "checkpoint"
    with pytest.raises(Exception, match="toPosition: a stream has no end"):
        start_query(spark, *places, toPosition=64).awaitTermination()
    query = start_query(spark, *places, available_now=True)
    query.awaitTermination()
    with Catalog.open(archive_dir) as catalog:
        catalog.set_stop_position(0, 65_536)
    with pytest.raises(Exception, match="recording 0 was truncated: it ends at position 65536"):
        start_query(spark, *places, available_now=True).awaitTermination()
    start_query(spark, *places, available_now=True, failOnDataLoss=False).awaitTermination()
    assert len(written(spark, places[1])) == 60
    with pytest.raises(Exception, match=r"failOnDataLoss: this option is for spark.readStream"):
        spark.read.format("aerotape").option("failOnDataLoss", False).load(str(archive_dir)).count()
