"""Removing bytes from a recording: each is in its place, or in quarantine with a mark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aerotape.catalog.recovery import quarantine, suspect_marks
from aerotape.catalog.recovery.quarantine import Part, Quarantine
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.errors import StorageError

BASES = (0, 1000, 2000)
CONTENT = {f"0-{base}.rec": bytes(range(1 + base // 1000, 101 + base // 1000)) for base in BASES}
STEPS = ("copy_tail", "write_note", "add_notes", "move_segment", "erase_tail")


class KilledError(BaseException):
    """The process is killed."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, data in CONTENT.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def remove(removed: Quarantine) -> None:
    """Erase the end of the first file, move the third, and overwrite the begin of the second."""
    first, second, third = (removed.folder.parent.parent / name for name in CONTENT)
    removed.remove(
        [SuspectNote("test", "removed", 60, 1, removed.name_of(removed.folder))],
        tail=Part(first, 60, 100),
        segments=[third],
        overwritten=[Part(second, 0, 30)],
        why="test",
    )
    second.write_bytes(bytes(30) + second.read_bytes()[30:])


def restored(directory: Path) -> dict[str, bytes]:
    """Return the files as they are with all bytes put back to which a mark leads."""
    files = {
        name: (directory / name).read_bytes() for name in CONTENT if (directory / name).exists()
    }
    for note in suspect_marks.read_marks(directory).get(0, []):
        folder = directory / note.quarantine
        content = json.loads((folder / quarantine.NOTE_NAME).read_text())
        for name in content["segment_files"]:
            if (folder / name).exists():
                files[name] = (folder / name).read_bytes()
        for part in content["copies"]:
            data, end = files[part["segment_file"]], part["offset"] + part["length"]
            copy = (folder / part["copy"]).read_bytes()
            files[part["segment_file"]] = data[: part["offset"]] + copy + data[end:]
    return files


def interrupt(patch: pytest.MonkeyPatch, step: str, *, after: bool, error: BaseException) -> None:
    """Raise an error before or after a step of the removal."""
    module: Any = suspect_marks if step == "add_notes" else quarantine
    original: Callable[..., None] = getattr(module, step)

    def interrupted(*args: Any) -> None:
        if after:
            original(*args)
        raise error

    patch.setattr(module, step, interrupted)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_removal_that_is_interrupted_loses_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    """Killed before or after any step, it leaves each byte in its place or where a mark leads."""
    with monkeypatch.context() as patch:
        interrupt(patch, step, after=after, error=KilledError())
        with pytest.raises(KilledError):
            remove(Quarantine(directory, 0, 1, "test"))
    assert restored(directory) == CONTENT


@pytest.mark.parametrize("step", STEPS)
def test_a_removal_that_fails_loses_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Up to the mark a failure removes the copies; after it they stay, and a mark leads to them."""
    with monkeypatch.context() as patch:
        interrupt(patch, step, after=False, error=StorageError("no space", directory))
        with pytest.raises(StorageError, match="no space"):
            remove(Quarantine(directory, 0, 1, "test"))
    assert restored(directory) == CONTENT
    is_marked = step in ("move_segment", "erase_tail")
    assert (directory / quarantine.FOLDER_NAME).exists() == is_marked


def test_a_failure_leaves_what_was_removed_before(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's note still names the first removal when a second one fails."""
    removed = Quarantine(directory, 0, 1, "test")
    remove(removed)
    before = {path.name for path in removed.folder.iterdir()}
    with monkeypatch.context() as patch:
        interrupt(patch, "add_notes", after=False, error=StorageError("no space", directory))
        with pytest.raises(StorageError, match="no space"):
            removed.remove_tail(
                Part(directory / "0-1000.rec", 50, 100), lambda name: SuspectNote("", name, 0, 1)
            )
    assert {path.name for path in removed.folder.iterdir()} == before
    assert restored(directory) == CONTENT
