"""Tables, views and CREATE TABLE … AS SELECT over an archive directory, in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def archive_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings, of 30 and 20 messages, in a directory with a space in its name."""
    directory = tmp_path_factory.mktemp("sql") / "an archive"
    directory.mkdir()
    add_recording(directory, fill(SegmentBuilder(stream_id=10), 30))
    add_recording(directory, fill(SegmentBuilder(stream_id=11), 20, seed=2))
    return directory


@pytest.fixture(autouse=True)
def database(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    """A database for the test, dropped afterwards."""
    spark.sql(f"CREATE DATABASE tapes LOCATION '{tmp_path / 'tapes'}'")
    spark.sql("USE tapes")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE tapes CASCADE")


def count(spark: SparkSession, table: str) -> int:
    [row] = spark.sql(f"SELECT count(*) AS n FROM {table}").collect()
    return int(row.n)


def test_a_table_by_path(spark: SparkSession, archive_dir: Path) -> None:
    """A table with `OPTIONS (path …)` can be queried, with the columns that they name."""
    spark.sql(
        "CREATE TABLE taped USING aerotape "
        f"OPTIONS (path '{archive_dir}', columns 'payload,length')"
    )
    assert spark.table("taped").columns == ["payload", "length"]
    assert count(spark, "taped") == 50
    assert count(spark, "taped WHERE length = octet_length(payload)") == 50


def test_a_table_by_location(spark: SparkSession, archive_dir: Path) -> None:
    """`LOCATION` is a path too, with a comment, other properties and a default collation."""
    spark.sql(
        "CREATE TABLE taped USING aerotape OPTIONS (streamId 10) "
        f"LOCATION '{archive_dir}' COMMENT 'ticks' "
        "TBLPROPERTIES ('team' = 'x', 'option' = 'y') DEFAULT COLLATION UTF8_BINARY"
    )
    assert count(spark, "taped") == 30


def test_views_and_copies_of_a_table(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Views of a table and of the source can be queried and copied into tables."""
    spark.sql(f"CREATE TABLE taped USING aerotape OPTIONS (path '{archive_dir}')")
    spark.sql("CREATE VIEW ticks AS SELECT stream_id, payload FROM taped WHERE stream_id = 10")
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW direct USING aerotape OPTIONS (path '{archive_dir}')"
    )
    for number, (source, expected) in enumerate((("ticks", 30), ("taped", 50), ("direct", 50))):
        assert count(spark, source) == expected
        spark.sql(
            f"CREATE TABLE copy{number} USING parquet LOCATION '{tmp_path / str(number)}' "
            f"AS SELECT * FROM {source}"
        )
        assert count(spark, f"copy{number}") == expected


def test_a_stream_of_a_table(spark: SparkSession, archive_dir: Path, tmp_path: Path) -> None:
    """`spark.readStream.table` follows the table's directory."""
    pytest.importorskip("pyspark.sql.streaming.datasource")
    spark.sql(f"CREATE TABLE taped USING aerotape OPTIONS (path '{archive_dir}')")
    query = (
        spark.readStream.table("taped")
        .writeStream.format("memory")
        .queryName("followed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    assert spark.sql("SELECT * FROM followed").count() == 50


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TABLE taped USING aerotape OPTIONS (path '{}', stramId 10)", "stramid"),
        ("CREATE TABLE taped USING aerotape", "no archive directory"),
        (
            "CREATE TABLE taped USING aerotape OPTIONS (path '{}', `storage.secret` 'hidden')",
            "storage.secret: ",
        ),
    ],
)
def test_invalid_tables_are_refused(
    spark: SparkSession, archive_dir: Path, statement: str, reason: str
) -> None:
    """Misspelt options, a missing directory and credentials (the schema would show them) are
    refused."""
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as refused:
        spark.sql(statement.format(archive_dir))
    assert reason in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_a_table_with_a_list_of_columns(spark: SparkSession, archive_dir: Path) -> None:
    """Spark passes no options of such a table to the data source; the error has advice."""
    from pyspark.errors import AnalysisException

    spark.sql(f"CREATE TABLE taped (payload binary) USING aerotape OPTIONS (path '{archive_dir}')")
    with pytest.raises(AnalysisException, match="without a list of columns"):
        count(spark, "taped")
