"""Decimals, timestamps and dates of payloads have the same values on every surface."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.market_schema import MARKET_SCHEMA, MARKET_VALUES
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape

import aerotape as package
from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema_files import load_schema
from aerotape.errors import ConfigurationError
from aerotape.spark.source.options import ReadOptions
from aerotape.spark.tables.delta import DeltaRecordingTable
from aerotape.spark.tables.folder import ParquetFolder
from aerotape.spark.tables.job import convert
from aerotape.spark.tables.plan import JobOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NS = MARKET_VALUES["transactTime"]
NAMES = ("transactTime", "price", "rate", "eventTime", "tradeDate", "orderId")
FIRST = {
    "price": Decimal("-4512.250000001"),
    "rate": Decimal("0.125000000000000000"),
    "eventTime": datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
    "tradeDate": date(2023, 11, 14),
    "orderId": 2**64 - 2,
}
SECOND: dict[str, Any] = dict.fromkeys(FIRST) | {"eventTime": datetime(1970, 1, 1, tzinfo=UTC)}
EXPECTED = [FIRST, SECOND]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An archive directory with a recording of two messages, and the schema."""
    folder = tmp_path_factory.mktemp("market")
    (folder / "market.xml").write_text(MARKET_SCHEMA)
    encoder = PayloadEncoder(load_schema(folder / "market.xml"), "Refresh")
    builder = SegmentBuilder()
    nothing: dict[str, Any] = dict.fromkeys(("price", "rate", "tradeDate", "orderId"))
    nothing["rate"] = {"mantissa": None, "exponent": 0}
    for values in ({}, nothing | {"eventTime": 0}):
        builder.message(encoder.encode(MARKET_VALUES | values))
    (folder / "archive").mkdir()
    add_recording(folder / "archive", builder)
    return folder / "archive", folder / "market.xml"


def test_in_python(archive: tuple[Path, Path]) -> None:
    """Arrow, Polars and DuckDB have all nanoseconds and uint64."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    directory, schema = archive
    options: dict[str, Any] = {"schema": schema, "template": "Refresh"}
    rows = package.open_directory(directory).recording(0).to_arrow(columns=NAMES, **options)
    frame = package.scan_polars(directory, **options).select(NAMES).collect()
    assert rows.column("transactTime").cast("int64").to_pylist() == [NS, NS]
    assert frame["transactTime"].to_physical().to_list() == [NS, NS]
    assert frame.schema["orderId"] == polars.UInt64
    kept = list(FIRST)
    assert rows.select(kept).to_pylist() == frame.select(kept).to_dicts() == EXPECTED
    found = duckdb.sql("SELECT epoch_ns(transactTime), price, rate, tradeDate, orderId FROM rows")
    assert found.fetchall() == [
        (NS, *(row[name] for name in ("price", "rate", "tradeDate", "orderId"))) for row in EXPECTED
    ]


def test_in_the_shell(archive: tuple[Path, Path]) -> None:
    """`cat` and `sql`, and --types of both."""
    pytest.importorskip("duckdb")
    directory, schema = archive
    typed = ("--schema", schema, "--template", "Refresh")
    printed = [json.loads(line) for line in aerotape("cat", directory, 0, *typed).out.splitlines()]
    assert [[row[name] for name in NAMES] for row in printed] == [
        ["2023-11-14T22:13:20.123456789Z", "-4512.250000001", "0.125000000000000000",
         "2023-11-14T22:13:20.123456Z", "2023-11-14", 2**64 - 2],
        ["2023-11-14T22:13:20.123456789Z", None, None, "1970-01-01T00:00:00.000000Z", None, None],
    ]  # fmt: skip
    wire = aerotape("cat", directory, 0, *typed, "--types", "wire", "--limit", "1").out
    row = json.loads(wire)
    assert (row["transactTime"], row["price"]) == (NS, {"mantissa": -4512250000001, "exponent": -9})
    query = f"select {', '.join(NAMES)} from messages(0) where price < 0"
    [row] = json.loads(aerotape("sql", directory, query, "--json", *typed).out)
    assert list(row.values()) == [
        "2023-11-14 22:13:20.123456789+00", "-4512.250000001", "0.125000000000000000",
        "2023-11-14 22:13:20.123456+00", "2023-11-14", 2**64 - 2,
    ]  # fmt: skip
    query = "select price.mantissa as m, typeof(orderId) as t from messages(0) limit 1"
    [row] = json.loads(aerotape("sql", directory, query, "--json", *typed, "--types", "wire").out)
    assert row == {"m": -4512250000001, "t": "DECIMAL(20,0)"}


def rows_of(frame: DataFrame, kept: tuple[str, ...] = tuple(FIRST)) -> list[dict[str, Any]]:
    """Return rows in UTC, in the order of positions."""
    rows = [row.asDict() for row in frame.orderBy("position").select(*kept).collect()]
    for row in rows:
        row["eventTime"] = row["eventTime"].astimezone(UTC)
    return rows


def test_in_spark(spark: SparkSession, archive: tuple[Path, Path]) -> None:
    """Nanoseconds remain the number that they are, uint64 is a decimal; `types` is an option."""
    directory, schema = archive
    reader = spark.read.format("aerotape").options(schema=str(schema), template="Refresh")
    frame = reader.load(str(directory))
    types = dict(frame.dtypes)
    assert [types[name] for name in NAMES] == [
        "decimal(20,0)", "decimal(19,9)", "decimal(38,18)", "timestamp", "date", "decimal(20,0)",
    ]  # fmt: skip
    assert rows_of(frame) == EXPECTED
    assert frame.where("price < -4512.25 and eventTime > timestamp '2023-01-01'").count() == 1
    assert [int(row[0]) for row in frame.select("transactTime").collect()] == [NS, NS]
    wire = dict(reader.option("types", "wire").load(str(directory)).dtypes)
    assert wire["price"] == "struct<mantissa:bigint,exponent:tinyint>"
    assert (wire["eventTime"], wire["tradeDate"]) == ("bigint", "int")
    with pytest.raises(Exception, match="types: 'number' is not one of semantic, wire"):
        reader.option("types", "number").load(str(directory))


def _folder(place: Path) -> ParquetFolder:
    return ParquetFolder(place)


def _delta(place: Path) -> DeltaRecordingTable:
    pytest.importorskip("deltalake")
    return DeltaRecordingTable(place)


Table = Callable[[Path], ParquetFolder | DeltaRecordingTable]


@pytest.mark.parametrize("table", [_folder, _delta])
def test_in_tables(
    spark: SparkSession, archive: tuple[Path, Path], tmp_path: Path, table: Table
) -> None:
    """Files have the types, and one table has one form: another one is refused with a reason."""
    duckdb = pytest.importorskip("duckdb")
    directory, schema = archive
    given = {"path": str(directory), "schema": str(schema), "template": "Refresh"}

    def job(**options: str) -> JobOptions:
        return JobOptions(read=ReadOptions.parse(given | options))

    convert(job(), table(tmp_path / "new"))
    frame = spark.read.parquet(*map(str, (tmp_path / "new").glob("*.parquet")))
    assert rows_of(frame) == EXPECTED
    files = f"{tmp_path}/new/*.parquet"
    found = duckdb.sql(f"SELECT price, tradeDate, orderId FROM '{files}' ORDER BY position")
    assert found.fetchall() == [
        (row["price"], row["tradeDate"], row["orderId"]) for row in EXPECTED
    ]
    convert(job(), table(tmp_path / "new"))
    convert(job(types="wire"), table(tmp_path / "old"))
    convert(job(types="wire"), table(tmp_path / "old"))
    for place, options in (("new", {"types": "wire"}), ("old", {})):
        with pytest.raises(ConfigurationError, match=r"eventTime.*price.*--types.*wire"):
            convert(job(**options), table(tmp_path / place))


def test_one_schema_for_all(archive: tuple[Path, Path]) -> None:
    """A schema that was read passes its types on."""
    directory, schema = archive
    wire = PayloadSchema.from_file(schema, "Refresh", types="wire")
    recording = package.open_directory(directory).recording(0)
    [first, _] = recording.to_arrow(schema=wire, columns=["price"]).to_pylist()
    assert first == {"price": {"mantissa": -4512250000001, "exponent": -9}}
    frame = package.scan_polars(directory, schema=wire).select("eventTime").collect()
    assert frame["eventTime"].to_list()[1] == 0
