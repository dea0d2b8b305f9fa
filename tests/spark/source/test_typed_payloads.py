"""Typed columns of the data source "aerotape" in a real Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.orders import SCHEMA, Order, cancel, position, some_orders
from support.builders.payload_schema import BIG_ENDIAN_SCHEMA
from support.builders.segment_builder import SegmentBuilder
from support.jvm.java_payloads import encode_with_java

from aerotape.replay.offline.directory import open_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERS = some_orders(600)


@pytest.fixture(scope="module")
def archive_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of orders over several terms, and one of other messages with a few orders."""
    directory = tmp_path_factory.mktemp("orders")
    first = SegmentBuilder()
    for order in ORDERS:
        first.message(order.encode())
    add_recording(directory, first)
    second = SegmentBuilder(stream_id=1002)
    for number in range(4):
        second.message(cancel(number))
        second.message(Order(1_000 + number, price=number).encode())
    second.message(position(-3))
    add_recording(directory, second)
    return directory


@pytest.fixture(scope="module")
def xml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The schema of orders."""
    path = tmp_path_factory.mktemp("schema") / "orders.xml"
    path.write_text(SCHEMA)
    return path


def load(spark: SparkSession, archive_dir: Path, **options: Any) -> DataFrame:
    return spark.read.format("aerotape").options(**options).load(str(archive_dir))


def test_fields_are_columns(
    spark: SparkSession, archive_dir: Path, xml: Path, tmp_path: Path
) -> None:
    """The rows equal those read without Spark, in Spark's types, from several partitions; tasks do
    not need the schema file."""
    copy = tmp_path / "copy.xml"
    copy.write_text(xml.read_text())
    table = load(spark, archive_dir, schema=copy, template="Order", partitionBytes="64k")
    copy.unlink()
    assert [(f.name, f.dataType.simpleString()) for f in table.schema.fields][10:] == [
        ("orderId", "bigint"), ("side", "string"),
        ("conditions", "struct<hidden:boolean,postOnly:boolean>"),
        ("sbe_position", "bigint"), ("sbe_Length", "int"), ("price", "bigint"),
        ("fills", "array<struct<quantity:int>>"), ("note", "string"),
    ]  # fmt: skip
    ordered = table.orderBy("recording_id", "position").collect()
    rows = [row.asDict(recursive=True) for row in ordered]
    expected = [
        row
        for recording in open_directory(archive_dir).recordings()
        for row in recording.to_arrow(schema=xml, template="Order").to_pylist()
    ]
    assert len(expected) == 604
    assert rows == expected
    [row] = (
        table.where("side = 'SELL' AND price > 100 AND length > 3000")
        .selectExpr("count(*) AS n", "sum(size(fills)) AS fills")
        .collect()
    )
    chosen = [o for o in ORDERS if o.side == "SELL" and (o.price or 0) > 100 and len(o.note) > 2999]
    assert (row.n, row.fills) == (len(chosen), sum(len(order.fills) for order in chosen))


def test_columns_and_options(spark: SparkSession, archive_dir: Path, xml: Path) -> None:
    """Columns of both kinds by name, enums and sets as numbers, other messages as nulls."""
    table = load(
        spark, archive_dir, schema=xml, template="1", streamId=1002, others="NULL", enums="number",
        sets="number", columns="side,orderId,conditions,stream_id",
    )  # fmt: skip
    assert table.dtypes == [
        ("side", "smallint"), ("orderId", "bigint"), ("conditions", "smallint"),
        ("stream_id", "int"),
    ]  # fmt: skip
    rows = [tuple(row) for row in table.collect()]
    nothing = (None, None, None, 1002)
    expected = [row for n in range(4) for row in (nothing, (ord("B"), 1000 + n, 0, 1002))]
    assert rows == [*expected, nothing]


def test_a_user_schema(spark: SparkSession, archive_dir: Path, xml: Path) -> None:
    """`spark.read.schema(...)` may name typed columns, with other nullability."""
    reader = spark.read.format("aerotape").options(schema=str(xml), template="Order")
    ddl = (
        "fills array<struct<quantity:int>>, recording_id long, position long, "
        "conditions struct<hidden:boolean,postOnly:boolean>"
    )
    rows = reader.schema(ddl).load(str(archive_dir)).orderBy("recording_id", "position").collect()
    assert len(rows) == 604
    assert [row.asDict(recursive=True)["fills"] for row in rows[:600]] == [
        order.row()["fills"] for order in ORDERS
    ]
    with pytest.raises(Exception, match=r"price int is not a column .*price bigint"):
        reader.schema("price int").load(str(archive_dir)).collect()


def test_malformed_payloads(spark: SparkSession, xml: Path, tmp_path: Path) -> None:
    """Modes apply to payloads too, with and without a checksum."""
    builder = SegmentBuilder()
    for payload in (Order(1).encode(), Order(2).encode()[:-1], Order(3).encode()):
        builder.message(payload)
    add_recording(tmp_path, builder)
    bad = builder.messages[1].position

    def orders(**options: Any) -> DataFrame:
        return load(spark, tmp_path, schema=xml, template="Order", **options)

    with pytest.raises(Exception, match=rf"recording 0, position {bad}: the payload does not"):
        orders().collect()
    dropped = orders(mode="DROPMALFORMED", columns="orderId").collect()
    assert [row.orderId for row in dropped] == [1, 3]
    permissive = orders(mode="PERMISSIVE")
    assert permissive.columns[-1] == "_corrupt"
    [row] = permissive.where("_corrupt IS NOT NULL").collect()
    assert (row.position, row.orderId, row.note) == (bad, None, None)
    assert f"position {bad}" in row["_corrupt"]


def test_streaming_queries_have_typed_columns(
    spark: SparkSession, archive_dir: Path, xml: Path, tmp_path: Path
) -> None:
    """A streaming query returns the rows of a batch query."""
    pytest.importorskip("pyspark.sql.streaming.datasource")
    options = {"schema": str(xml), "template": "Order", "columns": "orderId,fills,recording_id"}
    stream = spark.readStream.format("aerotape").options(**options).load(str(archive_dir))
    query = (
        stream.writeStream.format("memory")
        .queryName("typed_orders")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    streamed = spark.table("typed_orders").orderBy("recording_id", "orderId").collect()
    batch = load(spark, archive_dir, **options).orderBy("recording_id", "orderId").collect()
    assert len(batch) == 604
    assert streamed == batch


def test_every_kind_of_field(spark: SparkSession, jars: dict[str, Path], tmp_path: Path) -> None:
    """Payloads by Java's codecs, with every construct of SBE, are the same in Spark as without it,
    with all templates or one."""
    xml = tmp_path / "garage.xml"
    xml.write_text(BIG_ENDIAN_SCHEMA)
    builder = SegmentBuilder()
    for payload in encode_with_java(xml, "CarWriter", jars["sbe-all"], tmp_path / "stubs"):
        builder.message(payload)
    add_recording(tmp_path, builder)
    recording = open_directory(tmp_path).recording(0)
    for template, count in (("Car", 2), (None, 4)):
        options = {"schema": str(xml)} | ({"template": template} if template else {})
        rows = load(spark, tmp_path, **options).orderBy("position").collect()
        expected = recording.to_arrow(schema=xml, template=template).to_pylist()
        assert len(rows) == count
        assert [plain(row.asDict(recursive=True)) for row in rows] == expected


def plain(value: Any) -> Any:
    """Convert bytearrays to bytes, at any depth."""
    match value:
        case bytearray():
            return bytes(value)
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case _:
            return value
