"""Each state of the files while our writer truncates a journal is one that Zeebe opens."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.journals import raft_bytes as built
from support.journals.copied_changes import copied_changes
from support.jvm.zeebe import RELEASES, ZeebeJournals

from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.metadata import last_flushed_index
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.codecs.raft_journal.writer import JournalWriter

pytestmark = pytest.mark.jvm

SEGMENT_SIZE = 1024
COUNT = 40
MORE = 9


@pytest.fixture(scope="module")
def releases() -> Iterator[dict[str, ZeebeJournals]]:
    """A process of each release, by the format that it writes."""
    running = {name: ZeebeJournals(name) for name in RELEASES}
    yield running
    for each in running.values():
        each.close()


def write(zeebe: ZeebeJournals, folder: Path, by: str) -> None:
    """Write a journal of several segments; one that Zeebe writes has its metadata."""
    if by == "zeebe":
        data = b"data".hex()
        appended = [("application", 1, each, each, data) for each in range(1, COUNT + 1)]
        zeebe.write(folder, SEGMENT_SIZE, [*appended, ("commit",)])
        assert last_flushed_index(folder, built.NAME) == COUNT
        return
    version = built.VERSIONS[zeebe.format]
    with JournalWriter(folder, format=zeebe.format, segment_size=SEGMENT_SIZE) as journal:
        for each in range(1, COUNT + 1):
            journal.append(built.application(each, each, b"data", version=version), each)


def indices(folder: Path) -> list[int]:
    return [record.index for record in RaftJournal.open(folder).records()]


def check_opens(zeebe: ZeebeJournals, copy: Path, scratch: Path) -> int:
    """Check that a journal is sound for both, and that Zeebe continues it; return its length."""
    assert verify_journal(copy).findings == [], copy.name
    found = indices(copy)
    theirs = scratch / "theirs"
    shutil.rmtree(theirs, ignore_errors=True)
    shutil.copytree(copy, theirs)
    records, error = zeebe.read(theirs, SEGMENT_SIZE, last_flushed_index(copy, built.NAME))
    assert not error, copy.name
    assert [each.index for each in records] == found, copy.name
    shutil.rmtree(theirs)
    shutil.copytree(copy, theirs)
    zeebe.write(theirs, SEGMENT_SIZE, [("initial", 3)])
    assert indices(theirs) == [*found, len(found) + 1], copy.name
    assert verify_journal(theirs).findings == [], copy.name
    return len(found)


def boundaries(folder: Path) -> list[int]:
    """No record; the middle and the end of a segment, the first of the last one."""
    starts = [segment.descriptor.index for segment in RaftJournal.open(folder).segments()]
    assert len(starts) > 3
    return [0, starts[1] + 1, starts[2] - 1, starts[-1]]


@pytest.mark.parametrize("by", ["ours", "zeebe"])
@pytest.mark.parametrize("name", RELEASES)
def test_a_copy_at_each_write(
    releases: dict[str, ZeebeJournals], tmp_path: Path, name: str, by: str
) -> None:
    """Of a truncation and of what is appended after it, into the next segment.

    Both readers find the records of before, those up to the index of the truncation, or those and
    a part of the new ones; and Zeebe appends after the last of them.
    """
    zeebe = releases[name]
    write(zeebe, tmp_path / "journal", by)
    for index in boundaries(tmp_path / "journal"):
        folder, scratch = tmp_path / str(index), tmp_path / f"copies-{index}"
        shutil.copytree(tmp_path / "journal", folder)
        with JournalWriter.open(folder) as journal, copied_changes(folder, scratch) as copies:
            journal.delete_after(index)
            truncated = len(copies)
            for each in range(index + 1, index + 1 + MORE):
                version = built.VERSIONS[name]
                journal.append(built.application(each, each, b"new", 2, version), each)
        lengths = [check_opens(zeebe, copy, tmp_path) for copy in copies]
        before, after = lengths[:truncated], lengths[truncated:]
        assert sorted(before, reverse=True) == before and before[-1] == index
        assert sorted(after) == after and after[-1] == index + MORE
        assert indices(folder) == [*range(1, index + 1 + MORE)]


@pytest.mark.parametrize("name", RELEASES)
def test_a_copy_at_each_write_of_a_new_journal(
    releases: dict[str, ZeebeJournals], tmp_path: Path, name: str
) -> None:
    """Also between the creation of a segment's file and its descriptor."""
    folder, scratch = tmp_path / "journal", tmp_path / "copies"
    folder.mkdir()
    with copied_changes(folder, scratch) as copies:
        write(releases[name], folder, "ours")
    is_there = [any(copy.glob("*.log")) for copy in copies]
    first = is_there.index(True)
    lengths = [check_opens(releases[name], copy, tmp_path) for copy in copies[first:]]
    assert sorted(lengths) == lengths and lengths[-1] == COUNT
