"""Queries of a store by scope, in batches and streams; no Spark session is needed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.scoped_store import MESSAGES, build, do_import
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.scope_layout import imported_directory
from aerotape.errors import ConfigurationError, DataLossError, UnknownRecordingError
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyspark")

from support.spark.stream_query import Query

from aerotape.spark.data_source import AerotapeDataSource

Row = dict[str, Any]
HIGH = (1 << 64) - 1
OWN = 5
DEFAULT = [
    "recording_id", "position", "end_position", "stream_id", "session_id", "term_id",
    "term_offset", "flags", "reserved_value", "length", "payload",
]  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of archive 5 with recordings 0 and 1 of archives 6 and 2^64-1."""
    folder = tmp_path_factory.mktemp("store")
    store = build(folder / "store", archive_id=OWN, count=2)
    do_import(store, build(folder / "six", archive_id=6, count=2), 6)
    do_import(store, build(folder / "high", archive_id=9, count=2), HIGH)
    return store


@pytest.fixture
def store(built: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(built, tmp_path / "store"))


def source(path: Path, **options: object) -> AerotapeDataSource:
    return AerotapeDataSource({"path": str(path), **{k: str(v) for k, v in options.items()}})


def rows(path: Path, **options: object) -> list[Row]:
    """Return the rows of a batch query, read as Spark does."""
    data_source = source(path, **options)
    reader: Any = data_source.reader(data_source.schema())
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def expected(path: Path, *scopes: int) -> list[tuple[int, int, bytes]]:
    directory = open_directory(path)
    return [
        (scope_id, recording.recording_id, message.payload)
        for scope_id in scopes
        for recording in directory.scope(scope_id).recordings()
        for message in recording.messages()
    ]


def found(read: list[Row]) -> list[tuple[int, int, bytes]]:
    return [(row["scope_id"] % (1 << 64), row["recording_id"], row["payload"]) for row in read]


def test_without_options_nothing_has_changed(built: Path) -> None:
    """Only own recordings, with the same columns as before."""
    assert source(built).schema().fieldNames() == DEFAULT
    read = rows(built)
    assert [(row["recording_id"], row["payload"]) for row in read] == [
        each[1:] for each in expected(built, OWN)
    ]
    assert list(read[0]) == DEFAULT


@pytest.mark.parametrize(
    ("option", "scopes"),
    [
        ("all", (OWN, 6, HIGH)),
        ("ALL", (OWN, 6, HIGH)),
        ("6", (6,)),
        ("-1", (HIGH,)),
        (f"{HIGH}, 6", (6, HIGH)),
        ("0", (OWN,)),
        ("0,5", (OWN,)),
        ("99", ()),
    ],
)
def test_scopes_are_selected(built: Path, option: str, scopes: tuple[int, ...]) -> None:
    """Unsigned or in two's complement, in unsigned order; 0 is the archive's own scope."""
    read = rows(built, scopeIds=option)
    assert found(read) == expected(built, *scopes)
    for row in read:
        id = QualifiedId.from_signed(row["scope_id"], row["recording_id"])
        assert row["qualified_name"] == str(id)


def test_the_columns_of_scopes(built: Path) -> None:
    """They are there with scopeIds, or if they are named; scope_id is a long, in no case null."""
    schema = source(built, scopeIds="all").schema()
    assert schema.fieldNames() == [*DEFAULT, "scope_id", "qualified_name"]
    assert [(each.dataType.simpleString(), each.nullable) for each in schema.fields[-2:]] == [
        ("bigint", False),
        ("string", False),
    ]
    read = rows(built, columns="qualified_name")
    assert len(read) == 2 * MESSAGES
    assert {row["qualified_name"] for row in read} == {str(QualifiedId(OWN, n)) for n in (0, 1)}
    assert rows(built, columns="position", scopeIds="6")[0] == {"position": 0}


def test_other_options_select_within_the_scopes(built: Path) -> None:
    """A recording id is one of each scope; it has to be in one of them."""
    assert found(rows(built, scopeIds="all", recordingIds="1")) == [
        each for each in expected(built, OWN, 6, HIGH) if each[1] == 1
    ]
    assert rows(built, scopeIds="all", streamId="3") == []
    with pytest.raises(UnknownRecordingError, match="no recording with id 2 in the scopes"):
        rows(built, scopeIds="all", recordingIds="2")


@pytest.mark.parametrize("option", ["", " , ", "x", "1_0", str(1 << 64)])
def test_refused_scopes(built: Path, option: str) -> None:
    """The error names the option."""
    with pytest.raises(ConfigurationError, match="scopeIds: "):
        source(built, scopeIds=option)


def test_a_stream_reads_all_scopes(store: Path, tmp_path: Path) -> None:
    """Each message once, although ids are the same; an import is read like a new recording."""
    query = Query(store, scopeIds="all", maxBytesPerTrigger="40000")
    read = query.run()
    assert len(query.batches) > 3
    assert sorted(found(read)) == sorted(expected(store, OWN, 6, HIGH))
    do_import(store, build(tmp_path / "seven", archive_id=7), 7)
    query.restart()
    assert found(query.run()) == expected(store, 7)
    assert query.batch() is None


def test_a_stream_of_some_scopes(store: Path) -> None:
    """Own recordings that grow are followed if their scope is selected."""
    query, other = Query(store, scopeIds="0,6"), Query(store, scopeIds="6")
    assert sorted(found(query.run())) == sorted(expected(store, OWN, 6))
    assert found(other.run()) == expected(store, 6)
    add_recording(store, fill(SegmentBuilder(), 5), live=True)
    assert [row["recording_id"] for row in query.run()] == [2] * 5
    assert other.batch() is None


def test_an_import_that_was_removed_is_lost_data(store: Path) -> None:
    """If it was not read to its end the query fails, and the error names its scope."""
    query = Query(store, scopeIds="6", recordingIds="0,1", maxMessagesPerTrigger="10")
    query.batch()
    before = len(query.batches)
    shutil.rmtree(imported_directory(store, QualifiedId(6, 0)))
    with pytest.raises(DataLossError, match="recording 0 of scope 6 was purged"):
        query.batch()
    assert len(query.batches) == before
    query.restart(failOnDataLoss="false")
    with pytest.warns(RuntimeWarning, match="recording 0 of scope 6 was purged"):
        assert {row["recording_id"] for row in query.batch() or []} == {1}


def test_a_checkpoint_of_own_recordings_continues_with_scopes(store: Path) -> None:
    """Offsets of own recordings are as before, so a query can be given scopes, and lose them."""
    query = Query(store, columns="recording_id,scope_id,payload")
    assert found(query.run()) == expected(store, OWN)
    assert set(query.offset["recordings"]) == {"0", "1"}
    query.restart(scopeIds="all")
    assert sorted(found(query.run())) == sorted(expected(store, 6, HIGH))
    assert str((6 << 64) + 1) in query.offset["recordings"]
    del query.options["scopeIds"]
    query.restart()
    assert query.batch() is None
