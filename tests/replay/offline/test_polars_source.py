"""Recordings as a Polars LazyFrame, and as an Arrow stream in DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.orders import SCHEMA, some_orders
from support.builders.scoped_store import MESSAGES, do_import
from support.builders.scoped_store import build as build_store
from support.builders.segment_builder import SegmentBuilder
from support.builders.timed_directory import build, recorded_time

from aerotape.errors import ConfigurationError
from aerotape.replay.offline import reader
from aerotape.replay.offline.columns.names import table_columns
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyarrow")
pytest.importorskip("polars")

import polars

from aerotape.replay.offline.polars_source import bounds_of, scan_polars


@pytest.fixture
def archive_dir(tmp_path: Path) -> Path:
    for id in range(3):
        add_recording(tmp_path, fill(SegmentBuilder(stream_id=100 + id), 200, seed=id))
    return tmp_path


def rows_of(archive_dir: Path) -> list[dict[str, Any]]:
    columns = [*table_columns("FAILFAST"), "recorded_time"]
    return [
        row
        for recording in open_directory(archive_dir).recordings()
        for row in recording.to_arrow(columns=columns).to_pylist()
    ]


def test_rows_are_those_of_the_arrow_reader(archive_dir: Path) -> None:
    """All columns have the same values and types, ordered by recording and position."""
    frame = scan_polars(archive_dir).collect()
    assert frame.to_dicts() == rows_of(archive_dir)
    assert frame.schema == scan_polars(archive_dir).collect_schema()


def test_scopes_are_read_by_their_ids(tmp_path: Path) -> None:
    """With the columns of the scope, which filters may name; without ids only own recordings."""
    store = build_store(tmp_path / "store", archive_id=5)
    do_import(store, build_store(tmp_path / "six", archive_id=6, count=2), 6)
    directory = open_directory(store)
    columns = ["qualified_name", "scope_id", "payload"]
    for scope_ids, expected in (([6], (6,)), ((), (5, 6)), ([0, 6, 5], (5, 6)), ([9], ())):
        rows = [
            row
            for scope in expected
            for recording in directory.scope(scope).recordings()
            for row in recording.to_arrow(columns=columns).to_pylist()
        ]
        frame = scan_polars(store, scope_ids=scope_ids)
        assert frame.select(columns).collect().to_dicts() == rows
        filtered = frame.filter(C("scope_id") == 6, C("recording_id") == 1)
        assert filtered.collect().height == (MESSAGES if 6 in expected else 0)
    assert scan_polars(store).collect().height == MESSAGES


C = polars.col


@pytest.mark.parametrize(
    ("predicate", "bounds"),
    [
        (C("recording_id") == 1, {"recording_id": (1, 1)}),
        ((C("recording_id") > 0) & (C("position") < 70_000), {"position": (0, 70_000)}),
        (C("position").is_between(1_000, 90_000), {"position": (1_000, 90_000)}),
        (
            (polars.lit(65_536) <= C("position")) & (C("stream_id") == 101),
            {"position": (65_536, None)},
        ),
        ((C("position") < 900) | (C("recording_id") == 2), {}),
        (C("recording_id").is_in([0, 2]), {}),
        (C("position") * 2 > 100_000, {}),
        (C("length") > C("position"), {}),
        (polars.when(C("recording_id") == 1).then(True).otherwise(False), {}),
    ],
)
def test_filters_select_the_same_rows_and_limit_reads(
    archive_dir: Path, predicate: Any, bounds: dict[str, tuple[int, int | None]]
) -> None:
    """Comparisons of recording id and position narrow the ranges; others only select rows."""
    everything = polars.DataFrame(
        rows_of(archive_dir), schema=scan_polars(archive_dir).collect_schema()
    )
    found = scan_polars(archive_dir).filter(predicate).select("position", "payload").collect()
    assert found.equals(everything.filter(predicate).select("position", "payload"))
    for column, (low, high) in bounds.items():
        assert bounds_of(predicate)[column] == (low, (1 << 63) - 1 if high is None else high)
    if not bounds:
        assert set(bounds_of(predicate).values()) == {(0, (1 << 63) - 1)}


@pytest.mark.parametrize(
    ("predicate", "first", "last"),
    [
        (lambda at: (C("recorded_time") >= at(41)) & (C("recorded_time") < at(61)), 41, 62),
        (lambda at: C("recorded_time").is_between(at(41), at(60)), 41, 62),
        (lambda at: polars.lit(at(41)) == C("recorded_time"), 41, 42),
        (lambda at: C("recorded_time") > at(60).replace(year=2040), 0, 0),
        (lambda at: C("recorded_time") >= polars.lit(at(1)).dt.date(), 0, 156),
        (lambda at: C("recorded_time").is_not_null(), 0, 156),
    ],
)
def test_filters_of_times_select_the_same_rows_and_limit_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicate: Any, first: int, last: int
) -> None:
    """Rows are those of DuckDB over the Arrow stream too; only positions between the points around
    the messages are scanned."""
    duckdb = pytest.importorskip("duckdb")
    built = build(tmp_path / "archive")
    messages = built.stream.messages
    predicate = predicate(lambda number: recorded_time(built.points, messages[number].position))
    rows = polars.DataFrame(rows_of(built.archive_dir))
    scanned: list[tuple[int, int]] = []
    original = reader.RecordingRange.scan

    def scan(part: Any, *args: Any, **others: Any) -> Any:
        scanned.append(part.positions)
        return original(part, *args, **others)

    monkeypatch.setattr(reader.RecordingRange, "scan", scan)
    filtered = scan_polars(built.archive_dir).filter(predicate)
    found = filtered.select("position", "recorded_time").collect()
    assert found.equals(rows.filter(predicate).select("position", "recorded_time"))
    if first < last:
        [(begin, end)] = scanned
        assert messages[first - 1 if first else 0].position <= begin <= messages[first].position
        assert messages[last - 1].end_position <= end
        assert end <= [*(m.position for m in messages), built.stream.position][last]
        stream = built.recording().to_batches(columns=["position", "recorded_time"])
        times = found["recorded_time"].to_list()
        low, high = min(times), max(times)
        duck = duckdb.from_arrow(stream).filter(f"recorded_time BETWEEN '{low}' AND '{high}'")
        assert duck.order("position").project("position").fetchall() == [
            (position,) for position in found["position"]
        ]
    else:
        assert scanned == [] and found.is_empty()


def test_only_data_that_a_query_needs_is_read(
    archive_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only columns of query and filter, recordings of the filter and the first rows are read."""
    scanned: list[tuple[int, Any]] = []
    original = reader.RecordingRange.scan

    def scan(part: Any, columns: Any, *args: Any, **others: Any) -> Any:
        scanned.append((part.recording_id, tuple(columns)))
        return original(part, columns, *args, **others)

    monkeypatch.setattr(reader.RecordingRange, "scan", scan)
    frame = scan_polars(archive_dir)
    frame.filter(C("recording_id") == 1).select("length").collect()
    [(recording_id, columns)] = scanned
    assert (recording_id, set(columns)) == (1, {"length", "recording_id"})
    scanned.clear()
    assert frame.head(5).filter(C("recording_id") == 1).collect().height == 0
    assert frame.head(5).select("position").collect().height == 5
    assert scanned[-1] == (0, ("position",))


@pytest.mark.jvm
def test_typed_columns_are_those_of_the_schema(tmp_path: Path) -> None:
    """Fields of an SBE schema are columns, as in `to_arrow`."""
    builder = SegmentBuilder()
    for payload in some_orders(20):
        builder.message(payload.encode())
    add_recording(tmp_path, builder)
    schema = tmp_path / "orders.xml"
    schema.write_text(SCHEMA)
    typed = open_directory(tmp_path).recording(0).to_arrow(schema=schema, template="Order")
    frame = scan_polars(tmp_path, schema=schema, template="Order").collect()
    assert frame.drop("recorded_time").to_dicts() == typed.to_pylist()


def test_bad_arguments_are_refused_before_a_query(archive_dir: Path) -> None:
    """A template without a schema and a mode without a checksum are refused."""
    with pytest.raises(ConfigurationError, match="template is of a schema: give schema too"):
        scan_polars(archive_dir, template="Order")
