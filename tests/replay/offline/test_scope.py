"""Recordings of a store by scope, read offline."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import leave
from support.builders.old_directory import build_old, version
from support.builders.scoped_store import MESSAGES, build, do_import, payloads, tree
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape, tool

import aerotape as package
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.metadata_store import FILE_NAME, MetadataStore
from aerotape.errors import CatalogError, ConfigurationError, UnknownRecordingError
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory

HIGH = (1 << 64) - 1


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of archive 5 with recordings of archives 1, 6 and 2^64-1 (as int64: -1)."""
    folder = tmp_path_factory.mktemp("store")
    store = build(folder / "store", archive_id=5, count=2)
    for scope_id, archive_id in ((HIGH, 9), (6, 6), (1, 1)):
        do_import(store, build(folder / str(scope_id), archive_id=archive_id, count=2), scope_id)
    return store


def test_scopes_are_ascending_and_unsigned(store: Path) -> None:
    """The own scope is that of the archive id in the mark file."""
    directory = package.open_directory(store)
    assert directory.scopes() == [1, 5, 6, HIGH]
    assert [scope.is_own for scope in map(directory.scope, directory.scopes())] == [
        False,
        True,
        False,
        False,
    ]
    ids = [
        each.qualified_id for id in directory.scopes() for each in directory.scope(id).recordings()
    ]
    assert ids == [QualifiedId(scope, id) for scope in (1, 5, 6, HIGH) for id in (0, 1)]
    assert ids == sorted(ids)
    assert str(ids[-1]) == "ffffffffffffffff0000000000000001"


def test_scopes_never_mix(store: Path) -> None:
    """Recordings with the same id in two scopes have their own messages, read in turn."""
    directory = open_directory(store)
    first = [directory.scope(id).recording(1) for id in directory.scopes()]
    assert len({b"".join(payloads(each)) for each in first}) == 4
    again = [payloads(directory.scope(id).recording(1)) for id in directory.scopes()]
    assert [payloads(each) for each in first] == again
    assert len({each.key for each in first}) == 4
    assert [each.recording_id for each in first] == [1] * 4


def test_scope_0_is_that_of_the_archive(store: Path) -> None:
    """Scope 0, the archive's id and no scope are the same recordings."""
    directory = open_directory(store)
    expected = [each.descriptor for each in directory.recordings()]
    for scope_id in (0, 5):
        scope = directory.scope(scope_id)
        assert scope.scope_id == 5
        assert [each.descriptor for each in scope.recordings()] == expected
        assert scope.recording(1).descriptor == expected[1]


def test_a_scope_id_may_be_in_twos_complement(store: Path) -> None:
    """-1 is the largest scope; an unknown scope is empty; an unknown id is an error."""
    directory = open_directory(store)
    assert directory.scope(-1).scope_id == HIGH
    assert directory.scope(99).recordings() == []
    with pytest.raises(UnknownRecordingError, match="no recording 2 of scope 6 "):
        directory.scope(6).recording(2)
    with pytest.raises(ConfigurationError, match="does not fit in 64 bits"):
        directory.scope(1 << 64)


def test_an_import_whose_catalog_is_of_another_recording_is_an_error(
    store: Path, tmp_path: Path
) -> None:
    """The error names the directory."""
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    folder = copy / "00000000/00000006/00000000"
    shutil.copy(folder / "00000001/archive.catalog", folder / "00000000/archive.catalog")
    with pytest.raises(CatalogError, match="00000000 does not hold recording 0"):
        open_directory(copy).scope(6).recordings()
    assert len(payloads(open_directory(copy).scope(6).recording(1))) == MESSAGES


def test_columns_name_the_scope(store: Path) -> None:
    """scope_id is in two's complement; both columns are there only if they are named."""
    pytest.importorskip("pyarrow")
    for scope_id, signed in ((HIGH, -1), (5, 5)):
        recording = open_directory(store).scope(scope_id).recording(1)
        table = recording.to_arrow(columns=["qualified_name", "position", "scope_id"])
        assert table.schema.names == ["qualified_name", "position", "scope_id"]
        assert [str(field.type) for field in table.schema] == ["string", "int64", "int64"]
        assert set(table.column("scope_id").to_pylist()) == {signed}
        assert set(table.column("qualified_name").to_pylist()) == {str(QualifiedId(scope_id, 1))}
        only = recording.to_arrow(columns=["qualified_name"])
        assert (only.num_rows, only.schema.names) == (MESSAGES, ["qualified_name"])
        assert recording.to_arrow().schema.names == [
            "recording_id", "position", "end_position", "stream_id", "session_id", "term_id",
            "term_offset", "flags", "reserved_value", "length", "payload",
        ]  # fmt: skip


@pytest.mark.parametrize("archive_id", [-1, None])
def test_an_archive_without_an_id_is_in_scope_0(tmp_path: Path, archive_id: int | None) -> None:
    """So are directories without a mark file."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    if archive_id is not None:
        leave(tmp_path, archive_id=archive_id)
    directory = open_directory(tmp_path)
    assert directory.scopes() == [0]
    [recording] = directory.scope(0).recordings()
    assert str(recording.qualified_id) == "0" * 32


def test_a_directory_of_an_old_archive_lists_in_scope_0(tmp_path: Path) -> None:
    """A mark file of an archive older than archive ids has none."""
    path = build_old(tmp_path / "old", version(3))
    with (path / "archive-mark.dat").open("r+b") as file:
        file.seek(4 + 2)  # the schema version in the message header
        file.write((1).to_bytes(2, "little"))
    directory = open_directory(path)
    assert directory.mark_file().header.archive_id == -1
    assert directory.scopes() == [0]
    recordings = directory.scope(0).recordings()
    assert [each.recording_id for each in recordings] == [0, 2, 3]
    assert str(recordings[1].qualified_id) == "00000000000000000000000000000002"


def test_statistics_of_an_imported_recording(store: Path) -> None:
    """Offline commands work on the directory of an imported recording."""
    recording = open_directory(store).scope(6).recording(1)
    assert recording.stats().messages == MESSAGES
    before = tree(recording.archive_dir)
    assert json.loads(tool(recording.archive_dir, "verify", "--dry-run", "--json").out)
    assert tree(recording.archive_dir) == before


def test_the_command_imports(store: Path, tmp_path: Path) -> None:
    """Unsigned decimal and hexadecimal scope ids; output names both forms of the id."""
    target = tmp_path / "store"
    shutil.copytree(store, target)
    source = build(tmp_path / "source", archive_id=-2, count=1)
    into = ("--archive-dir", target)
    row = json.loads(aerotape("ledger", "import-archive", source, *into, "--json").out)
    assert row == {
        "scope_id": str(HIGH - 1),
        "ledger_id": "0",
        "qualified_name": "fffffffffffffffe0000000000000000",
        "result": "imported",
        "length": open_directory(source).recording(0).recorded_position,
        "directory": str(target / "ffffffff/fffffffe/00000000/00000000"),
        "error": None,
    }
    scoped = ("ledger", "import-archive", source, *into, "--ledger-scope-id")
    text = aerotape(*scoped, HIGH - 1).out
    assert "present" in text and "fffffffffffffffe0000000000000000" in text
    assert "imported" in aerotape(*scoped, "0xf", "--recording-id", "0").out
    assert "would be imported" in aerotape(*scoped, "16", "--dry-run").out
    assert open_directory(target).scopes() == [1, 5, 6, 15, HIGH - 1, HIGH]
    assert "left out: recording 0" in aerotape(*scoped, "6", expect=1).err
    for refused in ("0", "5", "-1", str(1 << 64), "x"):
        assert "--ledger-scope-id" in aerotape(*scoped, refused, expect=2).err
    unnamed = build(tmp_path / "unnamed", archive_id=-1)
    done = aerotape("ledger", "import-archive", unnamed, *into, expect=2)
    assert "has no archive id: give --ledger-scope-id" in done.err


def test_part_of_an_archive_is_left_out(store: Path, tmp_path: Path) -> None:
    """The exit code is 3 if some recordings were left out."""
    target = tmp_path / "store"
    shutil.copytree(store, target)
    source = build(tmp_path / "source", archive_id=8, count=2)
    (source / "0-0.rec").unlink()
    done = aerotape("ledger", "import-archive", source, "--archive-dir", target, expect=3)
    assert "left out: recording 0: recording 0 is not complete: there is no 0-0.rec" in done.err
    assert [each.recording_id for each in open_directory(target).scope(8).recordings()] == [1]


def test_the_id_of_a_ledger_is_left_out(store: Path, tmp_path: Path) -> None:
    """A recording does not get the id that a ledger of the store has."""
    target = tmp_path / "store"
    shutil.copytree(store, target)
    ledger = LedgerMetadata(QualifiedId(8, 1))
    MetadataStore.create(target, [ledger]).close()
    source = build(tmp_path / "source", archive_id=8, count=2)
    done = aerotape("ledger", "import-archive", source, "--archive-dir", target, expect=3)
    assert f"left out: recording 1: {ledger.ledger} is the id of a ledger" in done.err
    assert [each.recording_id for each in open_directory(target).scope(8).recordings()] == [0]
    (target / FILE_NAME).write_bytes(b"damaged" * 1_000)
    done = aerotape("ledger", "import-archive", source, "--archive-dir", target, expect=1)
    assert f"cannot read the ledgers' metadata {target / FILE_NAME}" in done.err


def test_a_store_without_scopes_stays_as_it_is(tmp_path: Path) -> None:
    """Reading by scope writes nothing; no scope code is loaded to list recordings."""
    directory = build(tmp_path / "archive", archive_id=5)
    before = tree(directory)
    opened = open_directory(directory)
    assert opened.scopes() == [5]
    opened.scope(5).recordings()
    opened.recording(0).to_arrow(columns=["qualified_name"])
    assert tree(directory) == before
    program = (
        "import sys, aerotape\n"
        f"aerotape.open_directory({str(directory)!r}).recordings()\n"
        "print('aerotape.catalog.scopes.importing' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
