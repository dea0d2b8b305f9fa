"""Access to new files and directories in an archive directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mark_files import acquire

from aerotape.catalog import quarantine, suspect
from aerotape.catalog.catalog import Catalog
from aerotape.catalog.durability import make_directory
from aerotape.catalog.migration_journal import write_journal
from aerotape.catalog.segments import make_blank_segment


@pytest.fixture
def no_umask() -> Iterator[None]:
    """The process takes no access away from new files."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_new_files_are_not_for_everyone(tmp_path: Path) -> None:
    """Read by the group at most, written by the owner alone, whatever the umask leaves."""
    directory = tmp_path / "new" / "archive"
    make_directory(directory)
    Catalog.open(directory, create=True).close()
    marks = tmp_path / "new" / "marks"
    make_directory(marks)
    with acquire(directory, mark_file_dir=marks) as mark_file:
        mark_file.record_error("an error", 1)
    acquire(directory, mark_file_dir=marks).close()
    make_blank_segment(directory / "0-0.rec", 65_536)
    suspect.add_notes(directory, 0, [suspect.SuspectNote("checksum mismatch", "here", 0, 1)])
    suspect.copy_tail(directory / "0-0.rec", 0, 32, directory / "aerotape-0-0-1.quarantine")
    quarantine.write_note(quarantine.make_folder(directory, 0, 1), {})
    write_journal(directory, [])
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    assert len(modes) >= 12, modes
    for path, mode in modes.items():
        assert mode == (0o750 if path.is_dir() else 0o640), path
