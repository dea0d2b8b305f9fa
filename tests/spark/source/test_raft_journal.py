"""Raft journals in a real Spark session: batch queries, SQL, seeking, streams."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.daemon.command_line import aerotape
from support.journals.raft_recording import records
from support.journals.written_journal import write_journal
from support.jvm.java import ROOT
from support.spark.streaming_job import start_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "term": "bigint",
    "index": "bigint",
    "asqn": "bigint",
    "type": "string",
    "lowest_asqn": "bigint",
    "highest_asqn": "bigint",
    "checksum_ok": "boolean",
    "members": "array<struct<member_id:string,type:string,updated:bigint>>",
    "data": "binary",
}
COUNT = 1500


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with records of all types."""
    directory = tmp_path_factory.mktemp("source") / "journal"
    write_journal(directory, found=records(COUNT))
    return directory


@pytest.fixture(scope="module")
def archive(journal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive directory into which it was imported."""
    directory = tmp_path_factory.mktemp("archive")
    small = ("--term-length", "64k", "--segment-length", "128k")
    aerotape("journal", "import", journal, "--to", directory, *small)
    return directory


def load(spark: SparkSession, archive: Path, **options: Any) -> DataFrame:
    options = {"payload": "raft-journal", "partitionBytes": "128k"} | options
    return spark.read.format("aerotape").options(**options).load(str(archive))


def listed(journal: Path) -> list[dict[str, Any]]:
    """The records as `journal list` prints them, with what Spark shows of them."""
    rows = []
    for line in aerotape("journal", "list", journal, "--json").out.splitlines():
        row = json.loads(line)
        row["members"] = row.get("members")
        rows.append({name: row[name] for name in COLUMNS if name in row})
    return rows


@pytest.mark.spark
def test_rows_are_those_of_the_list_command(
    spark: SparkSession, journal: Path, archive: Path
) -> None:
    """Rows from several partitions equal the list of the journal's records."""
    table = load(spark, archive, columns=",".join(COLUMNS))
    assert {f.name: f.dataType.simpleString() for f in table.schema.fields} == COLUMNS
    assert table.rdd.getNumPartitions() > 3
    rows = [row.asDict(recursive=True) for row in table.orderBy("index").collect()]
    data = {row["index"]: row.pop("data") for row in rows}
    assert all(row.pop("checksum_ok") for row in rows)
    assert rows == listed(journal)
    applications = {row["index"] for row in rows if row["type"] == "APPLICATION"}
    assert {index for index, each in data.items() if each is not None} == applications


@pytest.mark.spark
def test_sql(spark: SparkSession, journal: Path, archive: Path) -> None:
    """Columns can be grouped, filtered and exploded."""
    load(spark, archive).createOrReplaceTempView("history")
    expected = listed(journal)
    [row] = spark.sql(
        "SELECT count(*) AS n, max(highest_asqn) AS top, count(DISTINCT term) AS terms "
        "FROM history WHERE type = 'APPLICATION' AND index > 700"
    ).collect()
    chosen = [each for each in expected if each["type"] == "APPLICATION" and each["index"] > 700]
    assert (row.n, row.top) == (len(chosen), chosen[-1]["highest_asqn"])
    assert row.terms == len({each["term"] for each in chosen})
    members = spark.sql(
        "SELECT index, m.member_id, m.type FROM history LATERAL VIEW explode(members) AS m"
    ).collect()
    assert sorted((m["index"], m.member_id, m.type) for m in members) == sorted(
        (each["index"], member["member_id"], member["type"])
        for each in expected
        for member in each["members"] or []
    )


@pytest.mark.spark
def test_queries_of_the_documentation(spark: SparkSession, journal: Path, archive: Path) -> None:
    """They run; the first has a row for each term."""
    text = (ROOT / "docs" / "raft-journal.md").read_text()
    terms, members = re.findall(r'spark\.sql\("""\n(.*?)"""\)', text, re.DOTALL)
    load(spark, archive).createOrReplaceTempView("history")
    found = spark.sql(terms).collect()
    applications = [each for each in listed(journal) if each["type"] == "APPLICATION"]
    assert [row.term for row in found] == sorted({each["term"] for each in applications})
    assert found[-1]["position"] == applications[-1]["highest_asqn"]
    assert spark.sql(members).count() > 0


@pytest.mark.spark
def test_seeking(spark: SparkSession, journal: Path, archive: Path) -> None:
    """A query begins at an index or an asqn."""
    rows = load(spark, archive, fromIndex=1200, columns="index").orderBy("index").collect()
    assert [row["index"] for row in rows] == list(range(1200, COUNT + 1))
    some = [each for each in listed(journal) if each["asqn"] >= 0][700]
    for asqn in (some["lowest_asqn"], some["highest_asqn"]):
        found = load(spark, archive, fromAsqn=asqn, columns="index").orderBy("index").first()
        assert found is not None and found["index"] == some["index"]


@pytest.mark.spark
def test_a_stream_has_the_same_rows(spark: SparkSession, archive: Path, tmp_path: Path) -> None:
    """A streaming query begins at an index, too."""
    query = start_query(
        spark,
        archive,
        tmp_path / "out",
        tmp_path / "checkpoint",
        payload="raft-journal",
        fromIndex=900,
        columns="index,type,members",
        maxBytesPerTrigger="200k",
    )
    query.processAllAvailable()
    query.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("index").collect()
    batch = load(spark, archive, fromIndex=900, columns="index,type,members").orderBy("index")
    assert rows == batch.collect() and len(rows) == COUNT - 899
