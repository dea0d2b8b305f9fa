"""The data source "aerotape" in a real Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

import aerotape.spark
from aerotape import _native
from aerotape.replay.offline.directory import open_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def crc32c(data: bytes) -> int:
    return _native.checksum("crc-32c", data)


@pytest.fixture(scope="module")
def archive_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recordings with checksums: one from 0, one from within a term, one empty."""
    directory = tmp_path_factory.mktemp("archive")
    add_recording(directory, fill(SegmentBuilder(checksum=crc32c, stream_id=10), 300))
    second = SegmentBuilder(checksum=crc32c, stream_id=11, start_position=98_304)
    add_recording(directory, fill(second, 300, seed=2))
    add_recording(directory, SegmentBuilder(stream_id=12))
    return directory


def load(spark: SparkSession, archive_dir: Path, **options: Any) -> DataFrame:
    return spark.read.format("aerotape").options(**options).load(str(archive_dir))


def test_every_message_is_one_row(spark: SparkSession, archive_dir: Path) -> None:
    """All columns of all messages, each exactly once, from many partitions, checksums verified;
    PySpark found the source by itself."""
    from pyspark.sql.functions import spark_partition_id

    table = load(spark, archive_dir, partitionBytes="256k", checksum="crc-32c")
    rows = [row.asDict() for row in table.withColumn("partition", spark_partition_id()).collect()]
    assert len({row.pop("partition") for row in rows}) == 4
    rows.sort(key=lambda row: (row["recording_id"], row["position"]))
    expected = [
        {**message._asdict(), "length": message.length}
        for recording in open_directory(archive_dir).recordings()
        for message in recording.messages()
    ]
    assert len(rows) == 600
    assert rows == [{**row, "payload": bytearray(row["payload"])} for row in expected]
    assert [(f.name, f.dataType.simpleString(), f.nullable) for f in table.schema.fields] == [
        ("recording_id", "bigint", False), ("position", "bigint", False),
        ("end_position", "bigint", False), ("stream_id", "int", False),
        ("session_id", "int", False), ("term_id", "int", False),
        ("term_offset", "int", False), ("flags", "int", False),
        ("reserved_value", "bigint", False), ("length", "int", False),
        ("payload", "binary", False),
    ]  # fmt: skip


def test_polars_and_duckdb_have_the_rows_of_spark(spark: SparkSession, archive_dir: Path) -> None:
    """The same values in the same columns, with a filter and without."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    frame = aerotape.scan_polars(archive_dir).drop("recorded_time")
    batches = open_directory(archive_dir).recording(1).to_batches()
    everything = load(spark, archive_dir)
    second = everything.where("recording_id = 1 AND position < 200000")
    for rows, found in (
        (everything, frame.collect().to_dicts()),
        (
            second,
            frame.filter((polars.col("recording_id") == 1) & (polars.col("position") < 200_000))
            .collect()
            .to_dicts(),
        ),
        (
            second,
            duckdb.from_arrow(batches).filter("position < 200000").to_arrow_table().to_pylist(),
        ),
    ):
        expected = [row.asDict() for row in rows.orderBy("recording_id", "position").collect()]
        assert [{**row, "payload": bytearray(row["payload"])} for row in found] == expected
        assert expected


def test_options_choose_recordings_positions_and_columns(
    spark: SparkSession, archive_dir: Path
) -> None:
    """Options select recordings, positions and columns."""
    messages = list(open_directory(archive_dir).recording(1).messages())
    table = load(
        spark, archive_dir, streamId=11, channel="prices", columns="length,position",
        fromPosition=messages[100].position, toPosition=messages[200].position,
    )  # fmt: skip
    assert table.columns == ["length", "position"]
    rows = [(row.length, row.position) for row in table.collect()]
    assert rows == [(m.length, m.position) for m in messages[100:200]]


def test_nothing_to_read_is_an_empty_table(spark: SparkSession, archive_dir: Path) -> None:
    """A filter without recordings, or an empty recording, is no error."""
    assert load(spark, archive_dir, streamId=99).collect() == []
    assert load(spark, archive_dir, recordingIds="2").collect() == []


def test_a_live_recording_is_read_as_it_was_when_planned(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A live recording is read up to what is on disk when the query is planned."""
    builder = fill(SegmentBuilder(), 50)
    add_recording(tmp_path, builder, live=True)
    assert load(spark, tmp_path).count() == 50
    fill(builder, 25, seed=3).write(tmp_path)
    assert load(spark, tmp_path).count() == 75


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"recordingId": "1"}, "do you mean recordingIds"),
        ({"recordingIds": "77"}, "77"),
        ({"recordingIds": "x"}, "instance: aerotape.errors.ConfigurationError: recordingIds: 'x'"),
        ({"columns": "colour"}, "unknown column 'colour'"),
        ({"template": "Car"}, "give schema too"),
    ],
)
def test_option_errors_are_in_the_exception(
    spark: SparkSession, archive_dir: Path, options: dict[str, str], complaint: str
) -> None:
    """With the setting of our sessions, only Spark's heading is before the error."""
    name = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"
    spark.conf.set(name, "true")
    try:
        with pytest.raises(Exception, match=complaint) as raised:
            load(spark, archive_dir, **options).count()
    finally:
        spark.conf.unset(name)
    assert "Traceback" not in str(raised.value)


def test_unsupported_uses_are_errors(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Several directories, a directory without a catalog, and writing."""
    with pytest.raises(Exception, match=r"load\(\) takes one archive directory, not several"):
        spark.read.format("aerotape").load([str(archive_dir), str(archive_dir)])
    with pytest.raises(Exception, match="CatalogError: no such") as raised:
        load(spark, tmp_path / "none").count()
    assert str(raised.value).count("  File ") <= 2
    with pytest.raises(Exception, match="the data source is read-only"):
        load(spark, archive_dir).write.format("aerotape").mode("append").save(str(tmp_path / "t"))


def test_damaged_frames_are_treated_by_the_mode(spark: SparkSession, tmp_path: Path) -> None:
    """With a checksum, a flipped bit fails the query, or its message is left out, or is a row with
    the error and no payload."""
    builder = fill(SegmentBuilder(checksum=crc32c), 100)
    add_recording(tmp_path, builder)
    victim = next(m for m in builder.messages[40:] if m.payload)
    path = builder.segment_path(tmp_path, victim.position)
    data = bytearray(path.read_bytes())
    data[victim.position - builder.segment_base(victim.position) + 32] ^= 1
    path.write_bytes(data)
    assert load(spark, tmp_path).count() == 100
    with pytest.raises(Exception, match=rf"recording 0: .*{path}.*position {victim.position}"):
        load(spark, tmp_path, checksum="crc-32c").count()
    dropped = load(spark, tmp_path, checksum="crc-32c", mode="dropMalformed")
    assert [row.position for row in dropped.orderBy("position").collect()] == [
        m.position for m in builder.messages if m is not victim
    ]
    permissive = load(spark, tmp_path, checksum="crc-32c", mode="PERMISSIVE")
    assert permissive.columns[-1] == "_corrupt"
    assert permissive.count() == 100
    [row] = permissive.where("_corrupt IS NOT NULL").collect()
    assert (row.position, row.payload, row.length) == (victim.position, None, len(victim.payload))
    assert f"{path}, offset" in row["_corrupt"]
    reader = spark.read.format("aerotape").schema("_corrupt string, position long")
    table = reader.options(checksum="crc-32c", mode="PERMISSIVE").load(str(tmp_path))
    assert table.where("_corrupt IS NOT NULL").select("position").collect() == [(victim.position,)]
