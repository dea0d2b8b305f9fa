"""Import of other archives' recordings: atomic, repeatable, and without a change of the source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import in_use, leave
from support.builders.scoped_store import build, do_import, payloads, tree
from support.builders.segment_builder import SegmentBuilder
from support.damage.overwriting import overwrite

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.descriptor_checksum import checksum_kind
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes
from aerotape.catalog.scopes import importing
from aerotape.catalog.scopes.placing import TEMPORARY_FOLDER_NAME
from aerotape.catalog.time_index.file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_index.points import TimePoint, TimePoints
from aerotape.errors import CatalogError, ConfigurationError, StorageError, UnknownRecordingError
from aerotape.replay.offline.directory import open_directory

SEVEN = "00000000/00000007/00000000/00000000"
HIGH = (1 << 64) - 1


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return build(tmp_path / "store", archive_id=5)


def test_recordings_get_four_levels_of_directories(store: Path, tmp_path: Path) -> None:
    """Each recording is in a directory of its scope and id, with its files as they were."""
    source = build(tmp_path / "source", archive_id=6, count=2)
    before = tree(source)
    own = tree(store)
    done = do_import(store, source, 0xF47A_C10B_58CC_4372)
    assert [(each.recording_id, each.result) for each in done] == [
        (0, "imported"),
        (1, "imported"),
    ]
    assert tree(source) == before
    folder = store / "f47ac10b/58cc4372/00000000/00000001"
    assert done[1].directory == folder
    assert (folder / "1-0.rec").read_bytes() == before["1-0.rec"]
    assert (folder / "1-0.rec").stat().st_mtime_ns == (source / "1-0.rec").stat().st_mtime_ns
    assert {path.name for path in folder.iterdir()} == {
        "1-0.rec",
        "archive.catalog",
        "archive-mark.dat",
    }
    # The imported directory is an archive directory, whose archive id is the scope.
    directory = open_directory(folder)
    assert directory.own_scope_id() == 0xF47A_C10B_58CC_4372
    [recording] = directory.recordings()
    [_, original] = open_directory(source).recordings()
    assert recording.descriptor == original.descriptor
    # The store's own files are as before.
    assert {name: data for name, data in tree(store).items() if "/" not in name} == own
    assert sorted(path.name for path in store.iterdir() if path.is_dir()) == ["f47ac10b"]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_imported_through_a_link(
    store: Path, tmp_path: Path, level: int, dry_run: bool
) -> None:
    """A recording whose directory is below a symbolic link is left out, and the target stays."""
    source = build(tmp_path / "source", archive_id=6)
    outside = tmp_path / "outside"
    outside.mkdir()
    link = store.joinpath(*SEVEN.split("/")[:level])
    link.parent.mkdir(parents=True, exist_ok=True)
    # A recording that is present is only read.
    link.symlink_to(outside if level < 4 else tmp_path / "missing")
    [done] = do_import(store, source, 7, dry_run=dry_run)
    assert done.result == "left out"
    assert f"{link.name} is a symbolic link, not a directory" in done.error
    assert not list(outside.iterdir())
    assert not (tmp_path / "missing").exists()


def test_a_repeated_import_changes_nothing(store: Path, tmp_path: Path) -> None:
    """The same recordings are present; new ones are added."""
    source = build(tmp_path / "source", archive_id=6)
    do_import(store, source, 7)
    before = tree(store)
    assert [each.result for each in do_import(store, source, 7)] == ["present"]
    assert tree(store) == before
    add_recording(source, fill(SegmentBuilder(), 3))
    assert [each.result for each in do_import(store, source, 7)] == ["present", "imported"]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"stream_id": 77}, "another recording, with stream_id 1001 instead of 77"),
        ({"term_length": 1 << 17}, "another recording, with term_buffer_length 65536"),
        ({"session_id": 9}, "up to position"),
    ],
)
def test_another_recording_under_the_same_id_is_left_out(
    store: Path, tmp_path: Path, other: dict[str, Any], text: str
) -> None:
    """What was imported stays, and the error names the difference."""
    do_import(store, build(tmp_path / "first", archive_id=6), 7)
    before = tree(store)
    [outcome] = do_import(store, build(tmp_path / "second", archive_id=8, **other), 7)
    assert outcome.result == "left out"
    assert text in outcome.error
    assert tree(store) == before


def test_the_scope_must_not_be_that_of_the_store(store: Path, tmp_path: Path) -> None:
    """Scope 0 and the archive's own id are refused, and so is the store as its source."""
    source = build(tmp_path / "source", archive_id=6)
    for scope_id in (0, 5):
        with pytest.raises(ConfigurationError, match=f"scope id {scope_id} is that of the"):
            do_import(store, source, scope_id)
    with pytest.raises(ConfigurationError, match="is the store itself"):
        do_import(store, store, 7)
    with pytest.raises(CatalogError, match="is this an archive directory"):
        do_import(tmp_path, source, 7)
    with pytest.raises(UnknownRecordingError):
        do_import(store, source, 7, recording_ids=[3])


def damage_frame(source: Path) -> None:
    with (source / "0-0.rec").open("r+b") as file:
        file.seek(8)  # the term offset of the first frame
        file.write(b"\x40")


def remove_segment(source: Path) -> None:
    (source / "0-0.rec").unlink()


def damage_entry(source: Path) -> None:
    with Catalog.open(source, read_only=True) as catalog:
        [place] = catalog.entries()
    overwrite(source / "archive.catalog", place.offset + 32 + 64, (12345).to_bytes(4, "little"))


@pytest.mark.parametrize("damage", [damage_frame, remove_segment, damage_entry])
def test_a_damaged_recording_is_left_out(
    store: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """Nothing of it is in the store."""
    source = build(tmp_path / "source", archive_id=6)
    damage(source)
    before = tree(store)
    [outcome] = do_import(store, source, 7)
    assert outcome.result == "left out"
    assert outcome.error
    assert tree(store) == before
    assert open_directory(store).scopes() == [5]


def test_live_recordings_of_a_running_archive_are_left_out(store: Path, tmp_path: Path) -> None:
    """Stopped recordings are imported while the archive of the source runs, live ones are not."""
    source = build(tmp_path / "source", archive_id=6)
    add_recording(source, fill(SegmentBuilder(), 5), live=True)
    with in_use(source, archive_id=6):
        stopped, live = do_import(store, source, 7)
    assert (stopped.result, live.result) == ("imported", "left out")
    assert "is being recorded" in live.error
    # After a crash it ends with its last whole frame.
    live = do_import(store, source, 7)[1]
    assert live.result == "imported"
    imported = open_directory(store).scope(7).recording(1)
    original = open_directory(source).recording(1)
    assert imported.descriptor.stop_position == original.recorded_position
    assert payloads(imported) == payloads(original)
    assert do_import(store, source, 7)[1].result == "present"


def test_a_recording_that_changes_meanwhile_is_left_out(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive of the source truncates it while it is copied: the copy is not made valid."""
    source = build(tmp_path / "source", archive_id=6)
    copy = importing._copy_segments

    def truncate_then_copy(*args: Any) -> None:
        with Catalog.open(source) as catalog:
            catalog.set_stop_position(0, 0)
        copy(*args)

    monkeypatch.setattr(importing, "_copy_segments", truncate_then_copy)
    [outcome] = do_import(store, source, 7)
    assert outcome.error == "recording 0 was changed while it was copied"
    assert open_directory(store).scope(7).recordings() == []


def test_a_full_disk_leaves_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a write fails the rest is removed."""
    source = build(tmp_path / "source", archive_id=6)
    before = tree(store)

    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(importing, "copy_data", no_space)
    with pytest.raises(StorageError, match="No space left on device"):
        do_import(store, source, 7)
    assert tree(store) == before


def test_checksums_time_index_and_notes_are_copied(store: Path, tmp_path: Path) -> None:
    """The catalog entry keeps the kind of its checksum; time points and notes are there."""
    source = tmp_path / "source"
    source.mkdir()
    stream = fill(SegmentBuilder(), 20)
    add_recording(source, stream, checksum="crc-32c")
    leave(source, archive_id=6)
    add_notes(source, 0, [SuspectNote("cut", "lost data", 64, 1)])
    points = TimePoints.of([TimePoint(1_700_000_000_500_000_000, stream.position, -42)])
    provenance = Provenance(0, 1_700_000_000_000, 0, 0, -42)
    write_time_index(time_index_path(source, 0), provenance, points)
    [outcome] = do_import(store, source, 7)
    assert outcome.result == "imported", outcome.error
    imported = open_directory(store).scope(7).recording(0)
    assert [note.detail for note in imported.suspect_notes] == ["lost data"]
    assert list(imported.time_index.points) == list(points)
    assert checksum_kind(imported.entry) == "crc-32c"


def test_frames_are_verified_by_their_checksum(store: Path, tmp_path: Path) -> None:
    """With a checksum, a recording that was recorded without is left out."""
    source = build(tmp_path / "source", archive_id=6)
    [outcome] = do_import(store, source, 7, checksum="crc-32")
    assert outcome.result == "left out"
    assert "were recorded without checksums: crc-32 cannot verify them" in outcome.error


def test_dry_run_changes_nothing(store: Path, tmp_path: Path) -> None:
    """A dry run reports what would be imported."""
    source = build(tmp_path / "source", archive_id=6)
    before = tree(store)
    [outcome] = do_import(store, source, 7, dry_run=True)
    assert outcome.result == "imported"
    assert tree(store) == before


def test_an_import_excludes_others(store: Path, tmp_path: Path) -> None:
    """A second import at the same time is refused; after the first one there is no lock."""
    source = build(tmp_path / "source", archive_id=6, count=2)
    first = importing.import_archive(store, open_directory(source), 7)
    next(first)
    with pytest.raises(StorageError, match=r"another import into .* is running"):
        do_import(store, source, 8)
    list(first)
    do_import(store, source, 8)
    assert not (store / TEMPORARY_FOLDER_NAME).exists()


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_store_is_created(tmp_path: Path, exists: bool) -> None:
    """Where there is nothing, or an empty directory; not by a dry run, nor for a bad source."""
    source, new = build(tmp_path / "source", archive_id=6), tmp_path / "some" / "store"
    if exists:
        new.mkdir(parents=True)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(CatalogError):
        do_import(new, tmp_path / "nothing", 7)
    [planned] = do_import(new, source, 7, dry_run=True)
    assert planned.result == "imported"
    assert new.exists() == exists
    assert not exists or not list(new.iterdir())
    [done] = do_import(new, source, 7)
    assert (done.result, done.directory) == ("imported", planned.directory)
    assert len(list(open_directory(new).scope(7).recordings())) == 1
    assert list(open_directory(new).recordings()) == []


def test_another_directory_is_not_made_a_store(tmp_path: Path) -> None:
    """A directory with other files in it is refused, and stays as it is."""
    source, other = build(tmp_path / "source", archive_id=6), tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("text")
    with pytest.raises(CatalogError):
        do_import(other, source, 7)
    assert [path.name for path in other.iterdir()] == ["file"]
