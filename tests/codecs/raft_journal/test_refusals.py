"""What is refused has changed nothing: journals that are damaged, and records that do not fit."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from support.journals import damaged_journals as damaged
from support.journals import raft_bytes as built

from aerotape.codecs.raft.descriptor import decode_descriptor
from aerotape.codecs.raft_journal import segment as segments
from aerotape.codecs.raft_journal import verify
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.metadata import last_flushed_index
from aerotape.codecs.raft_journal.replicated import ReplicatedRecord, receive
from aerotape.codecs.raft_journal.segment import JournalSegment, SegmentPath, load_segment
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.codecs.raft_journal.writer import JournalWriter
from aerotape.errors import ConfigurationError, JournalError, StorageError

EACH_FORMAT = pytest.mark.parametrize("name", built.FORMATS)


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@EACH_FORMAT
@pytest.mark.parametrize("what", damaged.DAMAGES)
def test_a_damaged_journal_is_not_opened_for_writing(tmp_path: Path, name: str, what: str) -> None:
    """Every file is as it was, also those after the damage and those created for later use."""
    paths = damaged.write(tmp_path, name)
    damaged.DAMAGES[what](paths)
    if what != "the last file empty":
        (tmp_path / f"{built.NAME}-99.log").write_bytes(bytes(damaged.SEGMENT_SIZE))
    before = state(tmp_path)
    assert verify_journal(tmp_path).problems
    with pytest.raises(JournalError) as caught:
        JournalWriter.open(tmp_path)
    assert "no segment yet" not in str(caught.value)
    assert state(tmp_path) == before


@EACH_FORMAT
@pytest.mark.parametrize("what", damaged.DAMAGES)
def test_a_damaged_journal_is_not_truncated(tmp_path: Path, name: str, what: str) -> None:
    """Also if it was damaged after it had been opened."""
    paths = damaged.write(tmp_path, name)
    with JournalWriter.open(tmp_path) as journal:
        damaged.DAMAGES[what](paths)
        before = state(tmp_path)
        for index in (0, 3, damaged.COUNT - 1):
            with pytest.raises(JournalError):
                journal.delete_after(index)
            assert state(tmp_path) == before


def test_a_last_index_that_the_records_do_not_reach(tmp_path: Path) -> None:
    """As a truncation left it that ended the records first: all commands see the damage."""
    paths = damaged.write(tmp_path, "8.3")
    damaged.with_last_index(paths)
    before = state(tmp_path)
    found = [finding.problem for finding in verify_journal(tmp_path).findings]
    assert found == ["CorruptJournal"]
    read = []
    with pytest.raises(JournalError, match="last index 99"):
        for record in RaftJournal.open(tmp_path).records():
            read.append(record.index)
    assert read == list(range(1, damaged.COUNT + 1))
    with pytest.raises(JournalError, match="last index 99"):
        JournalWriter.open(tmp_path)
    assert state(tmp_path) == before


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """A symbolic link in place of the last segment is refused, and unused segments remain."""
    paths = damaged.write(tmp_path / "journal", "8.2")
    moved = tmp_path / "moved"
    paths[-1].rename(moved)
    paths[-1].symlink_to(moved)
    (paths[-1].with_name(f"{built.NAME}-99.log")).write_bytes(bytes(damaged.SEGMENT_SIZE))
    before = state(tmp_path / "journal")
    with pytest.raises(StorageError, match="symbolic link"):
        JournalWriter.open(tmp_path / "journal")
    assert state(tmp_path / "journal") == before


def test_a_record_that_is_larger_than_a_segment_deletes_none(tmp_path: Path) -> None:
    """A follower checks it before it deletes records for it."""
    damaged.write(tmp_path, "8.3")
    with JournalWriter.open(tmp_path) as journal:
        before = state(tmp_path)
        entry = built.application(9, 9, b"x" * 2000, 9, 2)
        checksum = built.crc32c(built.record(9, 9, entry, 2)[21:])
        with pytest.raises(ConfigurationError, match="use larger segments"):
            receive(journal, ReplicatedRecord(9, 9, 9, checksum, entry))
        assert state(tmp_path) == before


def test_a_complete_segment_gets_no_more_records(tmp_path: Path) -> None:
    """After a kill between the completion of a segment and the creation of the next one."""
    paths = damaged.write(tmp_path, "8.3")
    (tmp_path / f"{built.NAME}.meta").unlink()
    paths[-1].unlink()
    last = decode_descriptor(paths[-2].read_bytes()).last_index
    with JournalWriter.open(tmp_path) as journal:
        assert journal.next_index == last + 1
        journal.append(b"x")
    assert decode_descriptor(paths[-2].read_bytes()).last_index == last
    assert decode_descriptor(paths[-1].read_bytes()).index == last + 1
    assert [each.index for each in RaftJournal.open(tmp_path).records()][-1] == last + 1


@EACH_FORMAT
def test_a_truncation_lowers_the_flushed_index(tmp_path: Path, name: str) -> None:
    """The rest of the metadata stays; a lower index is not raised."""
    damaged.write(tmp_path, name)
    meta = tmp_path / f"{built.NAME}.meta"
    with JournalWriter.open(tmp_path) as journal:
        journal.delete_after(7)
        assert meta.read_bytes() == built.meta(7)
        meta.write_bytes(built.meta(3))
        journal.delete_after(5)
        assert meta.read_bytes() == built.meta(3)
        journal.delete_after(0)
    assert last_flushed_index(tmp_path, built.NAME) == 0
    assert verify_journal(tmp_path).findings == []


def test_nothing_of_before_follows_a_truncation(tmp_path: Path) -> None:
    """The rest of the segment is cleared, so no old record is found after the next one."""
    damaged.write(tmp_path, "8.3")
    with JournalWriter.open(tmp_path) as journal:
        journal.delete_after(3)
        end = journal._end
    content = (tmp_path / f"{built.NAME}-1.log").read_bytes()
    assert len(content) == damaged.SEGMENT_SIZE and not any(content[end:])


def test_a_failed_truncation_closes_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is appended after it; opened again, the journal is sound."""
    damaged.write(tmp_path, "8.3")
    journal = JournalWriter.open(tmp_path)
    unlink = os.unlink

    def failing(path: Path, **options: int) -> None:
        if path.name.endswith("-2.log"):
            raise OSError(5, "Input/output error")
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", failing)
    with pytest.raises(StorageError, match="Input/output error"):
        journal.delete_after(3)
    monkeypatch.undo()
    for call in (lambda: journal.append(b"x"), lambda: journal.delete_after(0), journal.flush):
        with pytest.raises(StorageError, match="is closed: open it again"):
            call()
    journal.close()
    assert verify_journal(tmp_path).findings == []
    with JournalWriter.open(tmp_path) as journal:
        assert 3 < journal.next_index < damaged.COUNT
        journal.append(b"x")


# ---- files that go while they are read ----------------------------------------------------------


def truncating(folder: Path, monkeypatch: pytest.MonkeyPatch, module: object, index: int) -> None:
    """Truncate the journal while a descriptor is loaded, after the directory was listed."""
    seen: list[int] = []

    def load(file: SegmentPath) -> JournalSegment | None:
        seen.append(file.id)
        if seen == [1, 2]:
            with JournalWriter.open(folder) as journal:
                journal.delete_after(index)
        return load_segment(file)

    monkeypatch.setattr(module, "load_segment", load)


@pytest.mark.parametrize("index", [0, 3, 12, 20])
def test_a_truncation_during_a_check_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    """Files that have gone are not reported."""
    damaged.write(tmp_path, "8.3")
    truncating(tmp_path, monkeypatch, verify, index)
    check = verify_journal(tmp_path)
    assert (check.findings, check.problems, check.next_index) == ([], 0, index + 1)


def test_a_truncation_while_a_journal_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened as it is after the truncation."""
    from aerotape.codecs.raft_journal import directory

    damaged.write(tmp_path, "8.3")
    truncating(tmp_path, monkeypatch, directory, 12)
    assert [each.index for each in RaftJournal.open(tmp_path).records()] == [*range(1, 13)]


def test_a_segment_that_goes_while_records_are_read(tmp_path: Path) -> None:
    """It is not damage: the error says that it was deleted."""
    paths = damaged.write(tmp_path, "8.3")
    journal = RaftJournal.open(tmp_path)
    paths[2].unlink()
    with pytest.raises(StorageError, match="was deleted while the journal was read") as caught:
        list(journal.records())
    assert not isinstance(caught.value, JournalError)


def test_a_check_beside_a_writer(tmp_path: Path) -> None:
    """That appends and truncates all the time: nothing is reported, whatever it has just done."""
    damaged.write(tmp_path, "8.3")
    stop = threading.Event()

    def write() -> None:
        with JournalWriter.open(tmp_path) as journal:
            while not stop.is_set():
                journal.delete_after(journal.next_index % 23 + 2)
                for _ in range(30):
                    entry = built.application(journal.next_index, journal.next_index, b"y", 1, 2)
                    journal.append(entry, journal.next_index)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(30):
            assert verify_journal(tmp_path).findings == []
    finally:
        stop.set()
        thread.join()


def test_damage_is_reported_beside_a_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding that each check has is reported, though the others differ each time."""
    paths = damaged.write(tmp_path, "8.3")
    damaged.DAMAGES["a record"](paths)
    counts = iter(range(1, 1000))

    def stored(directory: Path, name: str) -> int:
        return damaged.COUNT + next(counts)

    monkeypatch.setattr(verify, "last_flushed_index", stored)
    check = verify_journal(tmp_path)
    assert [each.problem for each in check.findings] == ["InvalidChecksum"]
    assert check.problems == 1


def test_a_pipe_in_place_of_a_segment(tmp_path: Path) -> None:
    """It is not waited for."""
    paths = damaged.write(tmp_path, "8.3")
    paths[1].unlink()
    os.mkfifo(paths[1])
    with pytest.raises(StorageError, match="not a regular file"):
        RaftJournal.open(tmp_path)
    with pytest.raises(StorageError, match="not a regular file"):
        segments.load_segment(SegmentPath(paths[1], built.NAME, 2))
    assert "Unreadable" in {each.problem for each in verify_journal(tmp_path).findings}
