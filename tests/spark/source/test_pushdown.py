"""Filter pushdown: which recordings and segment files are opened."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BuiltMessage, SegmentBuilder

import aerotape.spark
from aerotape.replay.offline.columns.raft import RaftColumns
from aerotape.replay.offline.seek import SeekTarget
from aerotape.spark.source.options import ReadOptions

pytest.importorskip("pyspark")
from pyspark.sql.types import StructType

try:
    from pyspark.sql.datasource import (
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        LessThan,
        LessThanOrEqual,
        Not,
    )
except ImportError:
    pytest.skip("this PySpark pushes no filters down", allow_module_level=True)

from aerotape.spark.source.batch_reader import FilteringReader
from aerotape.spark.source.pushdown import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.parametrize(
    ("filters", "positions"),
    [
        ([GreaterThanOrEqual(("position",), 64), LessThan(("position",), 128)], (64, 128)),
        ([GreaterThan(("position",), 64), LessThanOrEqual(("position",), 128)], (65, 129)),
        ([EqualTo(("position",), 96)], (96, 97)),
        ([GreaterThan(("position",), -5)], (0, (1 << 63) - 1)),
        ([EqualTo(("position",), 96), LessThan(("position",), 96)], None),
        ([LessThan(("position",), 0)], None),
        ([In(("position",), ())], None),
    ],
)
def test_ranges_of_positions_are_pushed_down(
    filters: list[Filter], positions: tuple[int, int] | None
) -> None:
    """Bounds become a half-open range, and no filter remains for Spark."""
    selection, left_to_spark = Selection().narrow(filters)
    options = selection.positions(ReadOptions(archive_dir="/a"))
    assert (options and (options.from_position, options.to_position)) == positions
    assert left_to_spark == []


@pytest.mark.parametrize(
    ("filter", "positions"),
    [
        (In(("position",), (320, 64)), (64, 321)),
        (LessThanOrEqual(("end_position",), 640), (0, 640)),
        (LessThan(("end_position",), 640), (0, 639)),
        (EqualTo(("end_position",), 640), (0, 640)),
        (GreaterThan(("end_position",), 640), (0, (1 << 63) - 1)),
    ],
)
def test_inexact_filters_are_left_to_spark_too(filter: Filter, positions: tuple[int, int]) -> None:
    """Lists of positions, and end positions, limit the range; Spark selects the rows."""
    selection, left_to_spark = Selection().narrow([filter])
    options = selection.positions(ReadOptions(archive_dir="/a"))
    assert options is not None
    assert (options.from_position, options.to_position) == positions
    assert left_to_spark == [filter]


@pytest.mark.parametrize(
    ("filter", "index"),
    [
        (GreaterThanOrEqual(("index",), 70), 70),
        (GreaterThan(("index",), 70), 71),
        (EqualTo(("index",), 70), 70),
        (In(("index",), (90, 80)), 80),
        (LessThan(("index",), 70), None),
        (GreaterThan(("index",), -7), None),
    ],
)
def test_a_lowest_index_is_sought(filter: Filter, index: int | None) -> None:
    """Where rows are records of raft journals; Spark selects the rows."""
    selection, left_to_spark = Selection().narrow([filter])
    assert left_to_spark == [filter]
    options = selection.positions(ReadOptions(archive_dir="/a", payloads=RaftColumns()))
    assert options is not None
    assert options.seek == (None if index is None else SeekTarget(index=index))
    for other in (
        ReadOptions(archive_dir="/a"),
        ReadOptions(archive_dir="/a", payloads=RaftColumns(), mode="DROPMALFORMED"),
        ReadOptions(archive_dir="/a", payloads=RaftColumns(), seek=SeekTarget(asqn=1)),
    ):
        narrowed = selection.positions(other)
        assert narrowed is not None and narrowed.seek == other.seek


def test_a_session_of_aerotape_pushes_filters_down(spark: SparkSession) -> None:
    """`aerotape.spark.session` sets what the data source needs, also in an existing session."""
    name = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(name) or "false"
    try:
        assert aerotape.spark.session() is spark
        assert spark.conf.get(name) == "true"
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize(
    "filter",
    [
        Not(EqualTo(("recording_id",), 1)),
        IsNotNull(("position",)),
        EqualTo(("recording_id",), None),
        In(("stream_id",), (1, None)),
        EqualTo(("length",), 10),
        EqualTo(("position", "inner"), 10),
    ],
)
def test_other_filters_are_left_to_spark(filter: Filter) -> None:
    """A filter of another kind, column or value changes nothing and is returned."""
    assert Selection().narrow([filter]) == (Selection(), [filter])


@pytest.mark.parametrize(
    ("filter", "column"),
    [
        (Not(EqualTo(("recording_id",), 1)), "recording_id"),
        (Not(In(("position",), (0, 64))), "position"),
        (EqualTo(("position",), 64), ""),
        (In(("position",), (0, 64)), ""),
        (IsNotNull(("position",)), ""),
        (Not(EqualTo(("length",), 1)), ""),
    ],
)
def test_filters_that_limit_nothing_are_warned_about(filter: Filter, column: str) -> None:
    """Those on recording id and position, because other ones on these do limit what is read."""
    reader = FilteringReader(ReadOptions(archive_dir="/a"), StructType())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reader.pushFilters([filter])
    expected = f"a filter on {column} does not limit what aerotape reads: {filter}"
    assert [str(each.message).partition(";")[0] for each in caught] == [expected] * bool(column)


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[BuiltMessage]]]:
    """Three recordings of several segments each, the streams 10, 11 and 12."""
    directory = tmp_path_factory.mktemp("archive")
    builders = [fill(SegmentBuilder(stream_id=10 + id), 300, seed=id) for id in range(3)]
    for builder in builders:
        add_recording(directory, builder)
    return directory, [builder.messages for builder in builders]


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with filter pushdown."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def load(spark: SparkSession, archive_dir: Path, **options: Any) -> DataFrame:
    return spark.read.format("aerotape").options(**options).load(str(archive_dir))


def places(table: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.recording_id, row.position) for row in table.collect())


def test_segments_outside_the_filters_are_not_opened(
    pushing: SparkSession, messages: tuple[Path, list[list[BuiltMessage]]], tmp_path: Path
) -> None:
    """With only one segment file left, a query of that segment succeeds; without pushdown it
    fails."""
    source, built = messages
    [begin, end] = 131_072, 262_144
    for name in ("archive.catalog", "1-131072.rec"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    condition = f"stream_id IN (11, 99) AND position >= {begin} AND position < {end}"
    query = load(pushing, tmp_path).where(condition)
    expected = [(1, m.position) for m in built[1] if begin <= m.position < end]
    assert len(expected) > 10
    assert places(query) == expected
    pushing.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    with pytest.raises(Exception, match="cannot open segment file"):
        load(pushing, tmp_path).where(condition).collect()


@pytest.mark.parametrize(
    "condition",
    [
        "recording_id = 2",
        "recording_id > 0 AND session_id = -42 AND length < 1000",
        "position IN (0, 64, 77777) OR recording_id = 1",
        "position IN (0, {second}) AND recording_id <> 1",
        "end_position <= 100000 AND position > 40000",
        "position > 100000 AND position < 50000",
        "true",
    ],
)
def test_the_same_rows_with_and_without(
    pushing: SparkSession, messages: tuple[Path, list[list[BuiltMessage]]], condition: str
) -> None:
    """Pushdown changes what is read, never the rows."""
    archive_dir, built = messages
    condition = condition.format(second=built[0][150].position)
    pushed = places(load(pushing, archive_dir).where(condition))
    pushing.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    assert pushed == places(load(pushing, archive_dir).where(condition))
