"""Atomic replacement of files, and the permissions of new files and directories."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.builders.mark_files import acquire

from aerotape.catalog.durability import make_directory, write_atomically, write_durably
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery import quarantine, suspect_marks
from aerotape.catalog.segment_files import make_blank_segment


@pytest.mark.parametrize("write", [write_atomically, write_durably])
def test_a_file_is_replaced_and_no_temporary_file_is_left(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    """Also where an interrupted write left its temporary file; the mode is as given."""
    path = tmp_path / "file"
    path.write_bytes(b"old content")
    (tmp_path / "file.tmp").write_bytes(b"a longer rest of an interrupted write")
    write(path, b"new", mode=0o604)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o604
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", ["fsync", "fchmod", "fchown"])
def test_a_failure_preserves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """No temporary file is left."""
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error"):
        write_durably(path, b"new", mode=0o600, owner=(0, 0))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_durable_write_forces_content_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the directory is forced; an atomic write forces nothing."""
    path = tmp_path / "file"
    forced: list[tuple[bool, bool]] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        forced.append((Path(f"/proc/self/fd/{descriptor}").is_dir(), path.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_durably(path, b"data")
    assert forced == [(False, False), (True, True)]
    write_atomically(path, b"other")
    assert len(forced) == 2


@pytest.fixture
def no_umask() -> Iterator[None]:
    """The process has a umask of 0."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_new_files_are_not_readable_by_others(tmp_path: Path) -> None:
    """Readable by the group at most, writable by the owner only, whatever the umask is."""
    directory = tmp_path / "new" / "archive"
    make_directory(directory)
    Catalog.open(directory, create=True).close()
    marks = tmp_path / "new" / "marks"
    make_directory(marks)
    with acquire(directory, mark_file_dir=marks) as mark_file:
        mark_file.record_error("an error", 1)
    acquire(directory, mark_file_dir=marks).close()
    make_blank_segment(directory / "0-0.rec", 65_536)
    suspect_marks.add_notes(
        directory, 0, [suspect_marks.SuspectNote("checksum mismatch", "here", 0, 1)]
    )
    quarantine.copy_tail(directory / "0-0.rec", 0, 32, directory / "copy")
    quarantine.write_note(quarantine.make_folder(directory, 0, 1), {})
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    assert len(modes) >= 11, modes
    for path, mode in modes.items():
        assert mode == (0o750 if path.is_dir() else 0o640), path
