"""The Python examples of pages that need Spark, or read tables.

That of Delta in Spark is tested in `tables/test_delta_spark.py`.
"""

from __future__ import annotations

import glob
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from support import page_examples
from support.builders import built_archive
from support.builders.sbe_text import schema_text
from support.builders.segment_builder import SegmentBuilder
from support.journals.raft_recording import record_into, records
from support.jvm.java import QUICK_JVMS
from support.spark import object_store
from support.spark.table_rig import run_here

import aerotape
from aerotape import _native
from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.schema_files import load_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = schema_text(
    'package="orders" id="31" version="0"',
    types="""\
    <enum name="Side" encodingType="char">
      <validValue name="BUY">B</validValue>
      <validValue name="SELL">S</validValue>
    </enum>""",
    messages="""\
  <sbe:message name="NewOrder" id="17">
    <field name="side" id="1" type="Side"/>
    <field name="price" id="2" type="int64"/>
    <field name="quantity" id="3" type="int32"/>
  </sbe:message>""",
)
RECORDINGS, ORDERS_EACH = 4, 20
PATHS = re.compile(
    r"""(["'])(recordings|TABLE|OUT(?:/\*\.parquet)?|orders(?:\.xml|\.sbeir)?|checkpoints/orders)\1"""
)


def examples(page: str, folder: Path) -> list[str]:
    """Return the examples of a page with paths in a folder: Spark has its own working directory.

    A schema in XML says the same as the compiled one.
    """

    def path(found: re.Match[str]) -> str:
        return f"{found[1]}{folder / found[2].replace('.sbeir', '.xml')}{found[1]}"

    return [PATHS.sub(path, each) for each in page_examples.examples(page)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `orders.xml` and `recordings`, which has recordings 0 to 3 of orders."""
    (tmp_path / "orders.xml").write_text(ORDERS)
    encoder = PayloadEncoder(load_schema(tmp_path / "orders.xml"), "NewOrder")
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    for _ in range(RECORDINGS):
        builder = SegmentBuilder(checksum=lambda data: _native.checksum("crc-32c", data))
        for number in range(ORDERS_EACH):
            side = "BUY" if number % 2 else "SELL"
            builder.message(encoder.encode({"side": side, "price": number, "quantity": 1}))
        built_archive.add_recording(recordings, builder)
    return tmp_path


def test_spark(spark: SparkSession, folder: Path) -> None:
    """What is read in batches, and the stream; not those of object storage."""
    found = [
        (number, page_examples.run(example, spark=spark) if "spark." in example else {})
        for number, example in enumerate(examples("spark.md", folder))
        if "://" not in example and "readStream" not in example
    ]
    frames = {number: each for number, each in found if each}
    assert frames[0]["messages"].count() == RECORDINGS * ORDERS_EACH
    assert frames[1]["timed"].columns == ["recorded_time", "payload"]
    [typed] = [each["orders"] for each in frames.values() if "orders" in each]
    assert typed.where("side = 'BUY'").count() == RECORDINGS * ORDERS_EACH / 2


def test_a_stream(spark: SparkSession, folder: Path) -> None:
    [example] = [each for each in examples("spark.md", folder) if "readStream" in each]
    query = page_examples.run(example, spark=spark)["query"]
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert spark.read.parquet(str(folder / "orders")).count() == RECORDINGS * ORDERS_EACH


def test_without_spark(folder: Path) -> None:
    """Arrow, Polars, pandas and DuckDB; with a schema too."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    pytest.importorskip("pandas")
    names: dict[str, object] = {"polars": polars, "duckdb": duckdb}
    shown = {}
    for example in examples("spark.md", folder):
        if "spark." in example or "://" in example:
            continue
        recording = aerotape.open_directory(folder / "recordings").recording(3)
        names["batch"] = next(iter(recording.to_batches()))
        shown = page_examples.run(example, **names)
        names |= {name: shown[name] for name in ("recording", "orders") if name in shown}
    assert shown["schema"] is not None
    assert shown["orders"].num_rows == ORDERS_EACH


def test_raft_journal(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recordings").mkdir()
    record_into(tmp_path / "recordings", records(300, first_index=120_000))
    [example] = [each for each in examples("raft-journal.md", tmp_path) if "spark." in each]
    assert page_examples.run(example, spark=spark)["history"].count() == 300
    assert "member_id" in capsys.readouterr().out


def test_tables(spark: SparkSession, folder: Path) -> None:
    """Each way to read a table, but for Delta in Spark, which fetches a jar; and `foreachBatch`."""
    deltalake = pytest.importorskip("deltalake")
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    run_here("delta", folder / "recordings", folder / "TABLE")
    run_here("folder", folder / "recordings", folder / "OUT")
    names = {"deltalake": deltalake, "polars": polars, "duckdb": duckdb, "spark": spark}
    reading, _, appending, _ = examples("tables.md", folder)
    for line in reading.splitlines():
        if 'format("delta")' not in line:
            assert eval(line, dict(names)) is not None, line
    directory, table = str(folder / "recordings"), str(folder / "ORDERS")
    deltalake.write_deltalake(table, spark.read.format("aerotape").load(directory).toArrow())
    again = page_examples.run(appending, **names, TABLE=table, DIR=directory)
    for _ in range(2):  # a batch that is written again has no effect
        query = again["query"].start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    rows = deltalake.DeltaTable(table).to_pyarrow_table().num_rows
    assert rows == 2 * RECORDINGS * ORDERS_EACH


def test_iceberg(folder: Path) -> None:
    """The files of a table are those of an Iceberg table too, which another reader reads."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.catalog.sql import SqlCatalog

    run_here("folder", folder / "recordings", folder / "OUT")
    catalog = SqlCatalog("tests", uri="sqlite:///:memory:", warehouse=(folder / "ice").as_uri())
    catalog.create_namespace("tape")
    *_, example = examples("tables.md", folder)
    page_examples.run(example, catalog=catalog, glob=glob, pyarrow=pyarrow)
    scanned = catalog.load_table("tape.messages").scan().to_arrow()
    assert scanned.num_rows == RECORDINGS * ORDERS_EACH


BEGINNING = """
from pyspark.sql import SparkSession
import aerotape
SETTINGS = {
    "spark.master": "local[1]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""


def run_apart(folder: Path, script: str, **environment: str) -> str:
    """Run a script in a process with a Spark session of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", BEGINNING + script],
        cwd=folder,
        env={**os.environ, **QUICK_JVMS, "PYSPARK_PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
def test_object_storage(folder: Path) -> None:
    """With credentials in the environment; then with the address as an option."""
    pytest.importorskip("moto")
    plain, with_options = (each for each in page_examples.examples("spark.md") if "s3://" in each)
    script = f"""
spark = SparkSession.builder.config(map=SETTINGS).getOrCreate()
{plain}
print(messages.count(), sum(1 for _ in recording.messages()))
{with_options}
print(messages.count())
"""
    with object_store.serve() as store:
        url = store.upload(folder / "recordings", "archive")
        script = script.replace("s3://bucket/archive", url)
        script = script.replace("https://minio.example:9000", store.endpoint)
        printed = run_apart(folder, script, **store.environment)
    count = RECORDINGS * ORDERS_EACH
    assert printed.split() == [str(count), str(ORDERS_EACH), str(count)]
