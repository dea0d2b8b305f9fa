"""Queries that use a relation which other queries, or other parts of a query, use too.

Spark stores the data source and the latest plan of a relation in it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.changed_directory import purge_segments, truncate
from support.builders.segment_builder import SegmentBuilder

from aerotape.errors import AerotapeError
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyspark")

from support.spark.query_sequences import (
    NAMES,
    PUSHDOWN,
    Row,
    Rows,
    Sequence,
    add_recordings,
    database,
    rows_of,
)

from aerotape.spark.source.batch_reader import BatchReader
from aerotape.spark.source.options import ReadOptions
from aerotape.spark.source.table_schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()


@pytest.fixture(scope="module")
def archive_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("archive")
    add_recordings(directory)
    return directory


@pytest.fixture(params=[True, False], ids=["pushdown", "no pushdown"])
def session(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> Iterator[SparkSession]:
    """The session with and without filter pushdown, with a database that is empty."""
    with database(spark, tmp_path / "database", f"shared_{next(_numbers)}"):
        spark.conf.set(PUSHDOWN, str(request.param).lower())
        yield spark


@pytest.mark.parametrize("pushdown", [True, False, None])
def test_random_sequences(
    spark: SparkSession, archive_dir: Path, tmp_path: Path, seeds: range, pushdown: bool | None
) -> None:
    """Each query has the rows of `messages`, whatever was queried before, and by which part of it:
    filters of all kinds, unions, self joins, exceptAll, tables, views, caches and repetitions."""
    for seed in seeds:
        with database(spark, tmp_path / str(seed)):
            Sequence(spark, archive_dir, seed).run(12, pushdown)


def load(spark: SparkSession, archive_dir: Path, **options: Any) -> DataFrame:
    return spark.read.format("aerotape").options(**options).load(str(archive_dir))


def read(frame: DataFrame) -> Rows:
    return Counter(Row(*row) for row in frame.select(*NAMES).collect())


def test_a_filter_does_not_limit_later_queries(session: SparkSession, archive_dir: Path) -> None:
    """Of the same DataFrame, of temporary views of it, and in the same query."""
    frame = load(session, archive_dir)
    frame.createOrReplaceTempView("shared")
    every = rows_of(archive_dir)
    one = Counter({row: count for row, count in every.items() if row.recording_id == 1})
    assert read(frame.where("recording_id = 1")) == one
    assert read(frame) == every
    assert read(frame.where("position % 32 = 0")) == every
    assert read(frame.where("recording_id = 1").union(frame)) == one + every
    assert read(frame.exceptAll(frame.where("recording_id = 1"))) == every - one
    statement = (
        "SELECT (SELECT count(*) FROM shared WHERE recording_id = 1), (SELECT count(*) FROM shared)"
    )
    assert tuple(session.sql(statement).collect()[0]) == (one.total(), every.total())


def test_options_of_a_query_of_a_table_are_refused(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Spark would apply them to other uses of the table in the query; a table and a temporary view
    with the options select the same."""
    every = rows_of(archive_dir)
    only_11 = Counter({row: count for row, count in every.items() if row.stream_id == 11})
    with database(spark, tmp_path / "database"):
        spark.sql(f"CREATE TABLE tape USING aerotape OPTIONS (path '{archive_dir}')")
        spark.sql("CREATE VIEW only_11 AS SELECT * FROM tape WITH (streamId = 11)")
        for query in (
            "SELECT * FROM tape WITH (streamId = 11)",
            f"SELECT * FROM tape WITH (path = '{archive_dir}')",
            "SELECT * FROM tape WITH (streamId = 11) UNION ALL SELECT * FROM tape",
            "SELECT * FROM only_11",
        ):
            with pytest.raises(Exception, match=r"query of a table takes no .* temporary view"):
                spark.sql(query).collect()
        with pytest.raises(Exception, match="streamId: a query of a table takes no options"):
            spark.read.option("streamId", 11).table("tape").collect()
        for kind in ("TABLE tape_11", "TEMPORARY VIEW view_11"):
            given = f"(path '{archive_dir}', streamId 11)"
            spark.sql(f"CREATE {kind} USING aerotape OPTIONS {given}")
            name = kind.split()[-1]
            both = spark.sql(f"SELECT * FROM tape UNION ALL SELECT * FROM {name}")
            assert read(both) == every + only_11
            assert read(spark.table(name)) == only_11


def test_streaming_queries_of_one_dataframe(
    spark: SparkSession, archive_dir: Path, tmp_path: Path
) -> None:
    """Queries one after the other, and two uses in one query, of a DataFrame have all rows that
    they select; those of a table take options of streams, and no others."""
    pytest.importorskip("pyspark.sql.streaming.datasource")
    every = rows_of(archive_dir)
    one = Counter({row: count for row, count in every.items() if row.recording_id == 1})
    stream = spark.readStream.format("aerotape").load(str(archive_dir))
    with database(spark, tmp_path / "database"):
        spark.conf.set(PUSHDOWN, "true")
        spark.sql(f"CREATE TABLE tape USING aerotape OPTIONS (path '{archive_dir}')")
        table = spark.readStream.option("maxMessagesPerTrigger", 50).table("tape")
        for number, (frame, expected) in enumerate(
            [
                (stream.where("recording_id = 1"), one),
                (stream, every),
                (stream.where("recording_id = 1").union(stream), one + every),
                (table, every),
            ]
        ):
            follow(frame, tmp_path / str(number))
            assert read(spark.read.parquet(str(tmp_path / str(number) / "out"))) == expected
        with pytest.raises(Exception, match="streamId: a query of a table takes no options"):
            follow(spark.readStream.option("streamId", 11).table("tape"), tmp_path / "refused")


def follow(frame: DataFrame, folder: Path) -> None:
    """Write a stream up to its present end to Parquet files in the folder `out`.

    A busy machine may not start a Python worker in the 10 s that Spark waits: the query resumes.
    """
    for attempts_left in reversed(range(20)):
        query = (
            frame.select(*NAMES)
            .writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except Exception as error:
            if "failed to connect back" not in str(error) or not attempts_left:
                raise
        else:
            return


def test_a_relation_is_queried_while_its_archive_records(
    session: SparkSession, tmp_path: Path
) -> None:
    """A DataFrame that is loaded again, a table and its views have what is recorded when they are
    queried; one that was queried before has that or what was recorded at an earlier query, of
    all recordings, and the same in all parts of a query."""
    directory = tmp_path / "archive"
    directory.mkdir()
    builder = fill(SegmentBuilder(), 20)
    add_recording(directory, builder, live=True)
    session.sql(f"CREATE TABLE tape USING aerotape OPTIONS (path '{directory}')")
    session.sql("CREATE VIEW stored AS SELECT * FROM tape")
    frame = load(session, directory)
    frame.createOrReplaceTempView("named")
    states = [rows_of(directory)]
    for seed in (2, 3):
        assert read(frame) in states
        fill(builder, 20, seed=seed).write(directory)
        add_recording(directory, fill(SegmentBuilder(), 5, seed=seed))
        states.append(rows_of(directory))
        assert read(load(session, directory)) == states[-1]
        assert read(session.sql("SELECT * FROM tape WHERE position >= 0")) == states[-1]
        assert read(session.sql("SELECT * FROM stored")) == states[-1]
        for shared in (frame, session.table("named"), frame.where("recording_id >= 0"), frame):
            assert read(shared) in states
            twice = read(shared.where("position >= 0").union(shared))
            assert twice in [state + state for state in states]


@pytest.mark.parametrize("change", [truncate, purge_segments])
def test_a_plan_of_messages_that_are_gone(tmp_path: Path, change: Any) -> None:
    """It fails: what a relation has planned is not read without the messages deleted since."""
    builder = fill(SegmentBuilder(), 120)
    add_recording(tmp_path, builder)
    options = ReadOptions(archive_dir=str(tmp_path))
    reader = BatchReader(options, table_schema(options))
    [partition] = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(partition)) == 120
    change(tmp_path, builder, 40 if change is truncate else builder.segment_base(builder.position))
    with pytest.raises(AerotapeError, match="recording 0"):
        list(reader.read(partition))
    [partition] = reader.partitions()
    left = sum(1 for _ in open_directory(tmp_path).recording(0).messages())
    assert 0 < sum(batch.num_rows for batch in reader.read(partition)) == left < 120
