"""The data source and the Parquet job over a directory in object storage."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.orders import SCHEMA, some_orders
from support.builders.segment_builder import SegmentBuilder
from support.spark import object_store
from support.spark.object_store import ObjectStore

from aerotape.catalog.location import StorageOptions
from aerotape.codecs.sbe_tool import run_sbe_tool
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyspark")
pytest.importorskip("moto")

from pyarrow import fs
from support.spark.stream_query import Query

from aerotape.spark.source.options import ReadOptions
from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.folder import ParquetFolder
from aerotape.spark.tables.job import convert
from aerotape.spark.tables.plan import JobOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store.serve() as running:
        yield running


@pytest.fixture(scope="module")
def archive_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings, one with a stop position and one without."""
    directory = tmp_path_factory.mktemp("archive")
    add_recording(directory, fill(SegmentBuilder(), 300))
    add_recording(directory, fill(SegmentBuilder(start_position=98_304), 300, seed=2), live=True)
    return directory


@pytest.fixture(scope="module")
def url(store: ObjectStore, archive_dir: Path) -> str:
    return store.upload(archive_dir, "archive")


def rows(table: DataFrame) -> list[dict[str, Any]]:
    found = [row.asDict() for row in table.collect()]
    return sorted(found, key=lambda row: (row["recording_id"], row["position"]))


def test_the_schema_may_be_in_object_storage(
    spark: SparkSession, store: ObjectStore, jars: dict[str, Path], tmp_path: Path
) -> None:
    """A schema may be at a URL, accessed with the directory's options; a missing one is an
    error."""
    builder = SegmentBuilder()
    for order in some_orders(20):
        builder.message(order.encode())
    add_recording(tmp_path, builder)
    (tmp_path / "orders.xml").write_text(SCHEMA)
    run_sbe_tool(tmp_path / "orders.xml", jars["sbe-all"], tmp_path)
    url = store.upload(tmp_path, "orders")
    expected = [order.row()["note"] for order in some_orders(20)]

    reader = spark.read.format("aerotape").options(**store.spark_options, template="Order")
    table = reader.option("schema", f"{url}/orders.sbeir").load(url).orderBy("position")
    assert [row.note for row in table.collect()] == expected
    recording = open_directory(url, store.options).recording(0)
    typed = recording.to_arrow(schema=f"{url}/orders.xml", template="Order", columns=["note"])
    assert typed.to_pydict() == {"note": expected}
    with pytest.raises(Exception, match=r"SBE schema s3://tapes/orders/none\.xml: no such file"):
        reader.option("schema", f"{url}/none.xml").load(url)


def test_the_same_rows_as_from_a_folder(
    spark: SparkSession, store: ObjectStore, url: str, archive_dir: Path
) -> None:
    """All columns of all messages from many partitions; the plan shows no secret."""
    reader = spark.read.format("aerotape").option("partitionBytes", "128k")
    table = reader.options(**store.spark_options).load(url)
    assert rows(table) == rows(reader.load(str(archive_dir)))
    plan = table._jdf.queryExecution().toString()
    assert "aerotape" in plan
    assert store.options["secret_access_key"] not in plan
    assert store.options["access_key_id"] not in plan


def test_only_touched_segments_are_read(
    spark: SparkSession, store: ObjectStore, url: str, archive_dir: Path
) -> None:
    """For positions in one segment file no other file is requested."""
    messages = list(open_directory(archive_dir).recording(0).messages())
    second = [m.position for m in messages if 131_072 <= m.position < 2 * 131_072]
    source = spark.read.format("aerotape").options(**store.spark_options)
    store.requests.clear()
    narrowed = source.options(recordingIds=0, fromPosition=second[0], toPosition=second[-1] + 1)
    assert narrowed.load(url).count() == len(second)
    assert {r.key.rpartition("/")[2] for r in store.gets()} == {"0-131072.rec"}


def test_a_stream_follows_copies(store: ObjectStore, tmp_path: Path) -> None:
    """A streaming query returns each message once as more of a recording is uploaded, and does not
    fetch files that it has read."""
    builder = fill(SegmentBuilder(), 120)
    add_recording(tmp_path, builder, live=True)
    url = store.upload(tmp_path, "growing")
    query = Query(url, **store.spark_options, maxBytesPerTrigger="100k")
    found = query.run()
    assert len(query.batches) > 1
    assert builder.segment_base(builder.position) > 0
    for seed in (5, 6):
        fill(builder, 120, seed=seed).write(tmp_path)
        store.upload(tmp_path, "growing")
        query.restart()
        store.requests.clear()
        found += query.run()
    assert "0-0.rec" not in {r.key.rpartition("/")[2] for r in store.gets()}
    assert query.batch() is None
    assert found == open_directory(tmp_path).recording(0).to_arrow().to_pylist()


def test_wrong_credentials_fail_the_query(
    spark: SparkSession, store: ObjectStore, url: str
) -> None:
    """The error names the object and advises to check credentials, without the secret."""
    wrong = {**store.spark_options, "storage.secret_access_key": "not-the-right-secret"}
    with store.strict():
        assert spark.read.format("aerotape").options(**store.spark_options).load(url).count() == 600
        with pytest.raises(Exception, match=f"cannot read {url}.*credentials") as raised:
            spark.read.format("aerotape").options(**wrong).load(url).count()
    assert "not-the-right-secret" not in str(raised.value)


def test_the_parquet_job_reads_and_writes_object_storage(
    spark: SparkSession, store: ObjectStore, url: str, archive_dir: Path
) -> None:
    """Tasks read from and write to the store; a second job finds all up to date, and no temporary
    files remain."""
    from pyarrow import dataset

    storage = StorageOptions.of(store.options)
    options = JobOptions(
        read=ReadOptions(archive_dir=url, partition_bytes=1 << 18, storage=storage)
    )
    out = f"{url}-table"
    report = convert(options, ParquetFolder(out, storage))
    assert [(r.messages, r.error) for r in report.recordings] == [(300, None), (300, None)]
    path = out.removeprefix("s3://")
    found = store.file_system
    folder = dataset.dataset(path, filesystem=found, format="parquet", partitioning="hive")
    rows = folder.to_table().sort_by([("recording_id", "ascending"), ("position", "ascending")])
    expected = [
        (id, message.position, message.payload)
        for id in (0, 1)
        for message in open_directory(archive_dir).recording(id).messages()
    ]
    columns = [rows[name].to_pylist() for name in ("recording_id", "position", "payload")]
    assert list(zip(*columns, strict=True)) == expected
    infos = found.get_file_info(fs.FileSelector(path, recursive=True))
    names = [info.path for info in infos if info.is_file]
    assert [name for name in names if "_staged" in name] == []
    store.requests.clear()
    again = convert(options, ParquetFolder(out, storage))
    assert [r.result for r in again.recordings] == ["up to date"] * 2
    # Only a small part is read for the comparison.
    stopped = [get.length for get in store.gets() if "/0-" in get.key]
    assert 1 <= len(stopped) <= 4
    assert max(stopped) <= 16 << 10


def test_a_delta_table_in_object_storage(
    spark: SparkSession, store: ObjectStore, url: str, archive_dir: Path
) -> None:
    """Storage options reach delta-rs; jobs add each message once, and a replacement removes rows;
    an option that it does not have is refused."""
    from deltalake import DeltaTable

    storage = StorageOptions.of(store.options)
    out = f"{url}-delta"
    options = JobOptions(read=ReadOptions(archive_dir=url, storage=storage))
    for overwrite, result in ((False, "converted"), (False, "up to date"), (True, "replaced")):
        table = DeltaRecordingTable(out, storage)
        report = convert(dataclasses.replace(options, overwrite=overwrite), table)
        assert [each.result for each in report.recordings] == [result] * 2
        read = DeltaTable(out, storage_options=table.storage_options)
        assert read.to_pyarrow_table().num_rows == 600
    with pytest.raises(ConfigurationError, match="role_arn: is assumed with a web identity"):
        DeltaRecordingTable(out, StorageOptions.of({**store.options, "role_arn": "arn"}))
