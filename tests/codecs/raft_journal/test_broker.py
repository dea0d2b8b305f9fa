"""The directories of partitions in a broker's data directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.journals import raft_bytes as built

from aerotape.codecs.raft_journal.broker import journal_directories
from aerotape.errors import StorageError

COUNTS = (3, 4, 2)


def partition(data: Path, number: int, name: str = "") -> Path:
    """Write the journal of a partition into a data directory."""
    folder = data / "raft-partition" / "partitions" / str(number)
    folder.mkdir(parents=True)
    for path in built.write_journal(folder, COUNTS):
        name = f"raft-partition-partition-{number}"
        path.rename(path.with_name(path.name.replace(built.NAME, name)))
    return folder


def test_the_partitions_of_a_data_directory(tmp_path: Path) -> None:
    """In the order of their numbers, also from the folders between; other folders are none."""
    folders = [partition(tmp_path, number) for number in (10, 2, 1)][::-1]
    for name in ("01", "snapshots", "0", "1x"):
        (folders[0].parent / name).mkdir()
    (folders[0].parent / "7").touch()
    for directory in (tmp_path, tmp_path / "raft-partition", folders[0].parent):
        assert journal_directories(directory) == folders
        assert journal_directories(str(directory), "raft-partition-partition-2") == [folders[1]]
        with pytest.raises(StorageError, match=r"no partition in .* has a journal other"):
            journal_directories(directory, "other")


def test_other_directories_are_returned_themselves(tmp_path: Path) -> None:
    """One of a journal, also with numbered folders in it, an empty one, one that is missing."""
    journal = partition(tmp_path, 1)
    (journal / "3").mkdir()
    empty = tmp_path / "empty"
    empty.mkdir()
    for directory in (journal, empty, tmp_path / "missing"):
        assert journal_directories(directory, "x") == [directory]
