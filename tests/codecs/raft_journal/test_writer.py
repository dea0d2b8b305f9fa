"""Journals that are written: their bytes, order, segments, truncation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.journals import raft_bytes as built

from aerotape.codecs.raft.descriptor import decode_descriptor
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.codecs.raft_journal.writer import JournalWriter
from aerotape.errors import (
    CodecError,
    ConfigurationError,
    InvalidAsqnError,
    InvalidChecksumError,
    InvalidIndexError,
    JournalError,
    StorageError,
)

EACH_FORMAT = pytest.mark.parametrize("name", built.FORMATS)


def entries(name: str, count: int) -> list[tuple[int, bytes]]:
    """Asqn and raft entry of records."""
    version = built.VERSIONS[name]
    found = [(-1, built.initial(version=version))]
    for position in range(1, count):
        data = b"x" * (position * 13 % 50)
        found.append((position, built.application(position, position, data, version=version)))
    return found


def write(folder: Path, name: str, count: int, size: int = 1024) -> None:
    with JournalWriter(folder, format=name, segment_size=size) as journal:
        for index, (asqn, entry) in enumerate(entries(name, count), start=1):
            assert journal.append(entry, asqn) == index


@EACH_FORMAT
def test_segments_byte_for_byte(tmp_path: Path, name: str) -> None:
    """Files are full of zeros after their records; a record that does not fit begins the next."""
    write(tmp_path, name, 30)
    version = built.VERSIONS[name]
    rest = [
        built.record(index, asqn, entry, version)
        for index, (asqn, entry) in enumerate(entries(name, 30), start=1)
    ]
    number, index = 1, 1
    while rest:
        room, records = 1024 - built.HEAD_LENGTHS[name], []
        while rest and len(rest[0]) <= room:
            room -= len(rest[0])
            records.append(rest.pop(0))
        last = (0, 0)
        if rest and name == "8.3":
            begin = 1024 - room - len(records[-1])
            last = (index + len(records) - 1, begin)
        head = built.descriptor(name, number, index, 1024, *last)
        expected = (head + b"".join(records)).ljust(1024, b"\0")
        assert (tmp_path / f"{built.NAME}-{number}.log").read_bytes() == expected
        number, index = number + 1, index + len(records)
    assert len(list(tmp_path.iterdir())) == number - 1 > 3
    assert verify_journal(tmp_path).findings == []


@EACH_FORMAT
def test_a_segment_may_be_full_to_its_last_byte(tmp_path: Path, name: str) -> None:
    """Without room for a last frame the segment's end is the end of its records."""
    size = built.HEAD_LENGTHS[name] + 66
    write(tmp_path, name, 1, size)
    assert (tmp_path / f"{built.NAME}-1.log").stat().st_size == size
    assert [each.index for each in RaftJournal.open(tmp_path).records()] == [1]


def test_the_frame_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First all after the frame and the next frame 0, then the frame: a torn write is the end."""
    writes: list[tuple[int, bytes]] = []
    pwrite = os.pwrite

    def noted(number: int, data: bytes, offset: int) -> int:
        writes.append((offset, data))
        return pwrite(number, data, offset)

    with JournalWriter(tmp_path, format="8.3", segment_size=4096) as journal:
        journal.append(built.initial(version=2))
        path = tmp_path / f"{built.NAME}-1.log"
        # Stale bytes of before a truncation.
        content = bytearray(path.read_bytes())
        begin = 57 + 66
        content[begin + 1 :] = b"\xff" * (4096 - begin - 1)
        path.write_bytes(content)
        monkeypatch.setattr(os, "pwrite", noted)
        journal.append(built.initial(2, 2))
        record = built.record(2, -1, built.initial(2, 2), 2)
        assert writes == [(begin + 1, record[1:] + b"\0"), (begin, b"\x01")]
        monkeypatch.undo()
        # As a crash between the two would leave it.
        pwrite(os.open(path, os.O_RDWR), b"\0", begin)
        assert [each.index for each in RaftJournal.open(tmp_path).records()] == [1]
        assert verify_journal(tmp_path).findings == []


def refused(call: Callable[..., Any], *args: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(*args)


def test_the_writer_enforces_order(tmp_path: Path) -> None:
    """Indices rise by one, asqns rise; what is refused leaves the journal as it was."""
    entry = built.initial(version=2)
    with JournalWriter(tmp_path, segment_size=1024, first_index=5) as journal:
        journal.append(entry, 10)
        for index in (5, 7, 1):
            refused(
                journal.append_record, index, -1, entry,
                error=InvalidIndexError, text=f"index {index}: expected 6",
            )  # fmt: skip
        for asqn in (10, 9, 0, -2):
            refused(journal.append, entry, asqn, error=InvalidAsqnError, text="more than 10")
        checksum = built.crc32c(built.record(6, -1, entry, 2)[21:])
        refused(
            journal.append_record, 6, -1, entry, checksum ^ 1,
            error=InvalidChecksumError, text=f"that of the record {checksum}",
        )  # fmt: skip
        refused(journal.append, b"x" * 1000, error=ConfigurationError, text="room for 967")
        journal.append_record(6, -1, entry, checksum)
        assert journal.append(entry, 11) == 7
    assert [each.asqn for each in RaftJournal.open(tmp_path).records()] == [10, -1, 11]


@EACH_FORMAT
@pytest.mark.parametrize("other", built.FORMATS)
def test_records_of_other_formats_are_converted(tmp_path: Path, name: str, other: str) -> None:
    """Whole records are copied as they are within a format, and otherwise written anew."""
    version = built.VERSIONS[name]
    members = [(3, 1, b"0")]
    groups = (members, []) if version == 2 else (members,)
    everything = [*entries(name, 6), (-1, built.configuration(1, *groups, version=version))]
    everything.append((-1, b"not a raft entry"))
    with JournalWriter(tmp_path, format=other, segment_size=1024) as journal:
        for index, (asqn, entry) in enumerate(everything, start=1):
            journal.append_bytes(built.record(index, asqn, entry, version))
    found = [each.record for each in RaftJournal.open(tmp_path).records()]
    version = built.VERSIONS[other]
    groups = (members, []) if version == 2 else (members,)
    everything = [*entries(other, 6), (-1, built.configuration(1, *groups, version=version))]
    everything.append((-1, b"not a raft entry"))
    assert found == [
        built.record(index, asqn, entry, version)
        for index, (asqn, entry) in enumerate(everything, start=1)
    ]


def test_bytes_that_are_not_one_record_are_refused(tmp_path: Path) -> None:
    """Frame 0, two records, damage, and old members that the format cannot hold."""
    record = built.record(1, -1, built.initial(version=2), 2)
    with JournalWriter(tmp_path, segment_size=1024) as journal:
        for wrong in (b"", b"\0" * 66, record + record, record[:-1], record[:-1] + b"?"):
            refused(journal.append_bytes, wrong, error=JournalError, text="record")
        journal.append_bytes(record)
    rows = [(3, 1, b"0")]
    joint = built.record(1, -1, built.configuration(1, rows, rows, version=2), 2)
    with JournalWriter(tmp_path / "old", format="8.2", segment_size=1024) as journal:
        refused(journal.append_bytes, joint, error=CodecError, text="has no old members")


@EACH_FORMAT
def test_a_journal_is_continued(tmp_path: Path, name: str) -> None:
    """Closed and opened again at any place, it has the bytes of one that was never closed."""
    write(tmp_path / "at once", name, 20)
    for index, (asqn, entry) in enumerate(entries(name, 20), start=1):
        if index == 1:
            journal = JournalWriter(tmp_path / "again", format=name, segment_size=1024)
        else:
            journal = JournalWriter.open(tmp_path / "again")
        with journal:
            assert (journal.next_index, journal.format.name) == (index, name)
            assert journal.append(entry, asqn) == index
    for path in (tmp_path / "at once").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


@EACH_FORMAT
def test_truncation(tmp_path: Path, name: str) -> None:
    """The records up to an index remain, also at a segment's end; the journal continues there."""
    for index in (0, 1, 7, 8, 9, 10, 19, 20):
        folder = tmp_path / str(index)
        write(folder, name, 20)
        before = [each.record for each in RaftJournal.open(folder).records()]
        with JournalWriter.open(folder) as journal:
            journal.delete_after(index)
            assert journal.next_index == min(index, 20) + 1
            assert journal.last_asqn == (min(index, 20) - 1 if index > 1 else -1)
            assert [each.record for each in RaftJournal.open(folder).records()] == before[:index]
            entry = built.application(99, 99, term=2, version=built.VERSIONS[name])
            journal.append(entry, 99)
        after = [each.record for each in RaftJournal.open(folder).records()]
        assert after[:-1] == before[:index]
        problems = {each.problem for each in verify_journal(folder).findings}
        assert problems <= {"PositionGap"}
        last = RaftJournal.open(folder).segments()[-1].path
        assert decode_descriptor(last.read_bytes()).last_index == 0
    with JournalWriter.open(folder) as journal:
        assert journal.read(3).index == 3
        refused(journal.read, 99, error=InvalidIndexError, text="no record 99")
        refused(journal.delete_after, -1, error=InvalidIndexError, text="begins with 1")


def test_segments_created_in_advance_are_deleted(tmp_path: Path) -> None:
    """Zeebe's writer leaves an unused segment; a writer that continues deletes it."""
    write(tmp_path, "8.3", 5)
    last = RaftJournal.open(tmp_path).segments()[-1].id
    unused = tmp_path / f"{built.NAME}-{last + 2}.log"
    unused.write_bytes(bytes(1024))
    with JournalWriter.open(tmp_path) as journal:
        assert not unused.exists()
        assert journal.next_index == 6


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """Sizes, formats, indices; a directory with a journal, a file in its place, a damaged one."""
    for size in (0, 57, 1 << 31):
        with pytest.raises(ConfigurationError, match=f"segment size {size}"):
            JournalWriter(tmp_path, segment_size=size)
    with pytest.raises(ConfigurationError, match="unknown journal format"):
        JournalWriter(tmp_path, format="9")
    with pytest.raises(ConfigurationError, match="first index 0"):
        JournalWriter(tmp_path, first_index=0)
    assert list(tmp_path.iterdir()) == []
    path = built.write_journal(tmp_path, (3,))[0]
    with pytest.raises(StorageError, match="holds a journal"):
        JournalWriter(tmp_path)
    with pytest.raises(StorageError, match="cannot write"):
        JournalWriter(path)
    with pytest.raises(StorageError, match="no journal"):
        JournalWriter.open(tmp_path, name="other")
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(JournalError):
        JournalWriter.open(tmp_path)
    assert path.read_bytes() == before


@settings(max_examples=15)
@given(
    st.sampled_from(built.FORMATS),
    st.lists(st.one_of(st.integers(0, 300), st.integers(-12, -1), st.just("reopen")), max_size=30),
)
def test_any_appends_and_truncations_as_in_a_model(
    tmp_path_factory: pytest.TempPathFactory, name: str, steps: list[int | str]
) -> None:
    """The journal has the records of a list that is appended to and cut in the same way."""
    folder = tmp_path_factory.mktemp("model")
    model: list[bytes] = []
    journal = JournalWriter(folder, format=name, segment_size=512)
    version = built.VERSIONS[name]
    for step in steps:
        if step == "reopen":
            journal.close()
            journal = JournalWriter.open(folder)
        elif isinstance(step, int) and step >= 0:
            journal.append(bytes(step), -1)
            model.append(built.record(len(model) + 1, -1, bytes(step), version))
        else:
            index = max(len(model) + int(step), 0)
            journal.delete_after(index)
            del model[index:]
        assert journal.next_index == len(model) + 1
    journal.close()
    assert [each.record for each in RaftJournal.open(folder).records()] == model
