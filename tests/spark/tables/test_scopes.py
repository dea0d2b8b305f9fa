"""Tables of recordings by scope, by jobs without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.builders.scoped_store import MESSAGES, build, do_import

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from support.spark.table_rig import KINDS, Kind, options, rows_of, run_here

from aerotape.catalog.scope_layout import imported_directory
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory

HIGH = (1 << 64) - 1
OWN = 5


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of archive 5 with recordings 0 and 1 of archives 6 and 2^64-1."""
    store = build(tmp_path / "store", archive_id=OWN, count=2)
    do_import(store, build(tmp_path / "six", archive_id=6, count=2), 6)
    do_import(store, build(tmp_path / "high", archive_id=9, count=2), HIGH)
    return store


def expected(store: Path, *scopes: int) -> set[tuple[str, int, bytes]]:
    return {
        (str(recording.qualified_id), message.position, message.payload)
        for scope_id in scopes
        for recording in open_directory(store).scope(scope_id).recordings()
        for message in recording.messages()
    }


def found(kind: Kind, out: Path) -> set[tuple[str, int, bytes]]:
    rows = rows_of(kind, out)
    read = {(row["qualified_name"], row["position"], row["payload"]) for row in rows}
    assert len(read) == len(rows)
    for row in rows:
        id = QualifiedId.from_signed(row["scope_id"], row["recording_id"])
        assert str(id) == row["qualified_name"]
    return read


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("others", [{}, {"by_date": True}, {"partition_bytes": 1 << 27}])
def test_each_message_of_each_scope_is_one_row(
    store: Path, tmp_path: Path, kind: Kind, others: dict[str, Any]
) -> None:
    """A job converts what the table does not have: a second one nothing, a third one an import."""
    out = tmp_path / "out"
    report = run_here(kind, store, out, scope_ids=(), **others)
    assert report.total("messages") == 6 * MESSAGES
    assert [(each.recording_id, each.result) for each in report.recordings] == [
        (number, "converted") for _ in range(3) for number in (0, 1)
    ]
    names = [getattr(each, "qualified_name", None) for each in report.recordings]
    assert names == [None, None] + [str(QualifiedId(id, n)) for id in (6, HIGH) for n in (0, 1)]
    assert found(kind, out) == expected(store, OWN, 6, HIGH)
    again = run_here(kind, store, out, scope_ids=(), **others)
    assert {each.result for each in again.recordings} == {"up to date"}
    do_import(store, build(tmp_path / "seven", archive_id=7), 7)
    assert run_here(kind, store, out, scope_ids=(), **others).total("messages") == MESSAGES
    assert found(kind, out) == expected(store, OWN, 6, 7, HIGH)


@pytest.mark.parametrize("kind", KINDS)
def test_another_recording_of_a_scope_is_refused(store: Path, tmp_path: Path, kind: Kind) -> None:
    """An import that was replaced by another one is left out; the others are not affected."""
    out = tmp_path / "out"
    run_here(kind, store, out, scope_ids=(6,))
    shutil.rmtree(imported_directory(store, QualifiedId(6, 0)))
    do_import(store, build(tmp_path / "seven", archive_id=7), 6)
    first, second = run_here(kind, store, out, scope_ids=(6,)).recordings
    assert (first.result, second.result) == ("left out", "up to date")
    assert first.error is not None
    assert first.error.startswith("recording 0: ")


@pytest.mark.parametrize("kind", KINDS)
def test_own_tables_have_no_columns_of_scopes(store: Path, tmp_path: Path, kind: Kind) -> None:
    """Without scopes a table is as before, and cannot get other scopes."""
    out = tmp_path / "out"
    report = run_here(kind, store, out)
    assert report.total("messages") == 2 * MESSAGES
    assert "scope_id" not in rows_of(kind, out)[0]
    with pytest.raises(ConfigurationError, match=r"other columns .*\(qualified_name, scope_id\)"):
        run_here(kind, store, out, scope_ids=())


def test_rows_of_scopes_are_not_replaced(store: Path) -> None:
    """A recording id alone does not say which rows to replace."""
    for replaces in ({"overwrite": True}, {"replace_changed": True}):
        with pytest.raises(ConfigurationError, match="cannot replace rows"):
            options(store, scope_ids=(), **replaces)
