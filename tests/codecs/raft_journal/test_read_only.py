"""Readers of journals and of recordings of journals write nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.damage.small_disk import small_disk
from support.journals import raft_bytes as built
from support.journals.raft_recording import record_into, records

from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.replay.offline.directory import open_directory

LAST = 40


def write(folder: Path) -> tuple[Path, Path]:
    """Write a journal and a recording of another one."""
    journal, archive = folder / "journal", folder / "archive"
    for each in (journal, archive):
        each.mkdir()
    built.write_journal(journal, (10, 20, 10))
    (journal / f"{built.NAME}.meta").write_bytes(built.meta(LAST))
    record_into(archive, records(LAST))
    return journal, archive


def read(journal: Path, archive: Path) -> None:
    """Read all and from an index, to the end and in part."""
    for from_index in (None, 1, 15, LAST, LAST + 1):
        found = [record.index for record in RaftJournal.open(journal).records(from_index)]
        assert found == [*range(from_index or 1, LAST + 1)]
        recording = open_directory(archive).recording(0)
        assert len(list(recording.messages(from_index=from_index))) == len(found)
    assert next(RaftJournal.open(journal).records(15)).index == 15
    assert RaftJournal.open(journal).last_index() == LAST
    assert len(list(recording.messages(from_asqn=1))) > 0
    assert recording.to_arrow(payload="raft-journal", from_index=15).num_rows == LAST - 14
    assert verify_journal(journal).findings == []


def state(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.stat()
        yield str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns


def test_no_file_is_created_or_changed(tmp_path: Path) -> None:
    """Names, sizes and times of files and folders stay."""
    journal, archive = write(tmp_path)
    before = list(state(tmp_path))
    read(journal, archive)
    assert list(state(tmp_path)) == before


@pytest.mark.root
def test_a_read_only_file_system(tmp_path: Path) -> None:
    """Where nothing can be written, all can be read."""
    with small_disk(tmp_path / "disk", 32 << 20) as disk:
        journal, archive = write(disk.path)
        remount = ["mount", "-o", "remount,ro", str(disk.path)]
        if subprocess.run(remount, capture_output=True).returncode != 0:
            pytest.skip("cannot remount a disk")
        with pytest.raises(OSError, match="Read-only"):
            (journal / "file").touch()
        read(journal, archive)
