"""Delta tables of recordings, read and changed by Spark through delta-spark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder

pytest.importorskip("deltalake")
pytest.importorskip("pyspark")

import pyarrow
from pyarrow import parquet
from support.spark.delta_spark import DeltaSpark, DeltaSparkHand, example
from support.spark.table_history import History
from support.spark.table_rig import expected_rows, run_here

STEPS = 6

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        not version("pyspark").startswith("4.2."), reason="the delta-spark jar is for Spark 4.2"
    ),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSpark]:
    """A session with delta-spark."""
    with DeltaSpark(tmp_path_factory.mktemp("spark")) as session:
        yield session


def test_delta_spark_reads_the_rows(
    session: DeltaSpark, archive_dir: Path, tmp_path: Path
) -> None:
    """Tables that two jobs have written are loaded, and selected from by a name."""
    add_recording(archive_dir, fill(SegmentBuilder(), 300))
    add_recording(archive_dir, fill(SegmentBuilder(), 20, seed=1))
    _convert(archive_dir, tmp_path)
    add_recording(archive_dir, fill(SegmentBuilder(), 30, seed=2))
    _convert(archive_dir, tmp_path)
    expected = expected_rows(archive_dir)
    of_one_recording = [row for row in expected if row["recording_id"] == 1]
    found = tmp_path / "found.parquet"
    for name in ("whole", "by_date"):
        session.sql(f"SELECT * FROM delta.`{tmp_path}/{name}`", found)
        assert _rows(found) == expected
        session.sql(f"CREATE TABLE {name} USING delta LOCATION '{tmp_path}/{name}'")
        session.sql(f"SELECT * FROM {name} WHERE recording_id = 1", found)
        assert _rows(found) == of_one_recording


def test_the_statement_of_the_page(
    session: DeltaSpark, archive_dir: Path, tmp_path: Path
) -> None:
    """The session is that of its example."""
    add_recording(archive_dir, fill(SegmentBuilder(), 80))
    _convert(archive_dir, tmp_path)
    _, statement = example()
    session.sql(statement.replace("/path/of/TABLE", str(tmp_path / "whole")))
    session.sql("SELECT * FROM messages", found := tmp_path / "found.parquet")
    assert _rows(found) == expected_rows(archive_dir)


def test_random_histories_with_delta_spark(
    session: DeltaSpark, tmp_path: Path, seeds: range
) -> None:
    """As with delta-rs (`test_delta_histories`); after each step delta-rs reads the table."""
    for seed in seeds:
        folder = tmp_path / str(seed)
        (folder / "archive").mkdir(parents=True)
        out = folder / "table"
        history = History(folder / "archive", out, seed, DeltaSparkHand(session, out))
        history.add()
        history.convert()
        for action in (history.optimize, history.delete, history.restore):
            history.grow()
            history.convert()
            action()
        for _ in range(STEPS):
            history.step()
        history.convert()
        session.sql(f"SELECT * FROM delta.`{out}`", folder / "found.parquet")
        found = {
            (row["recording_id"], row["position"]): row["payload"]
            for row in _rows(folder / "found.parquet")
        }
        assert found == history.now.rows


def _convert(archive_dir: Path, tmp_path: Path) -> None:
    run_here("delta", archive_dir, tmp_path / "whole")
    run_here("delta", archive_dir, tmp_path / "by_date", by_date=True)


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows, sorted by recording and position, without the date."""
    table: pyarrow.Table = parquet.read_table(path)
    rows: list[dict[str, Any]] = table.sort_by(
        [("recording_id", "ascending"), ("position", "ascending")]
    ).to_pylist()
    for row in rows:
        row.pop("date", None)
    return rows
