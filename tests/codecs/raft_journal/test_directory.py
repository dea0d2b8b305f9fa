"""Journals opened for reading."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from support.journals import raft_bytes as built

from aerotape.codecs.generated.raft_entry import EntryType
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.errors import (
    ConfigurationError,
    CorruptJournalError,
    InvalidChecksumError,
    InvalidIndexError,
    JournalError,
    StorageError,
    UnknownVersionError,
)


def indices(folder: Path, from_index: int | None = None) -> list[int]:
    return [record.index for record in RaftJournal.open(folder).records(from_index)]


def read_until_damage(folder: Path) -> tuple[list[int], JournalError]:
    """The indices that are read, and the error after them."""
    found = []
    with pytest.raises(JournalError) as caught:
        for record in RaftJournal.open(folder).records():
            found.append(record.index)
    return found, caught.value


@pytest.mark.parametrize("name", built.FORMATS)
def test_records_of_each_format(tmp_path: Path, name: str) -> None:
    """Segments and records of a journal, with all that is known of each record."""
    version = built.VERSIONS[name]
    entries = [built.initial(3, version), built.application(7, 9, "é".encode(), 3, version)]
    records = [
        built.record(20, -1, entries[0], version),
        built.record(21, 7, entries[1], version),
        built.record(22, 8, b"no raft entry", version),
    ]
    built.write_segment(tmp_path, 4, 20, records[:2], journal_format=name)
    path = built.write_segment(tmp_path, 6, 22, records[2:], journal_format=name)
    journal = RaftJournal.open(tmp_path)
    assert (journal.name, journal.first_index) == (built.NAME, 20)
    segments = journal.segments()
    assert [(each.id, each.descriptor.index) for each in segments] == [(4, 20), (6, 22)]
    assert {each.descriptor.format.name for each in segments} == {name}
    first, second, third = journal.records()
    assert [first.record, second.record, third.record] == records
    assert [first.data, second.data, third.data] == [*entries, b"no raft entry"]
    assert (first.index, first.asqn, first.term) == (20, -1, 3)
    assert (first.type, first.lowest_asqn) == (EntryType.INITIAL, None)
    assert (second.type, second.asqn) == (EntryType.APPLICATION, 7)
    assert (second.lowest_asqn, second.highest_asqn) == (7, 9)
    assert second.checksum == built.crc32c(records[1][21:])
    assert second.offset == built.HEAD_LENGTHS[name] + len(records[0])
    assert (third.term, third.type, third.lowest_asqn) == (None, None, None)
    assert (third.segment, third.offset) == (path, built.HEAD_LENGTHS[name])


def test_reading_from_an_index(tmp_path: Path) -> None:
    """Earlier records are skipped; after the last index there is nothing."""
    built.write_journal(tmp_path, (3, 4, 2))
    assert indices(tmp_path) == list(range(1, 10))
    for index in range(10):
        assert indices(tmp_path, index) == list(range(max(index, 1), 10))
    assert indices(tmp_path, 10) == indices(tmp_path, 1 << 63) == []


def test_records_after_the_end_are_not_read(tmp_path: Path) -> None:
    """Records of before a truncation follow frame 0; a segment may be full to its last byte."""
    stale = built.record(3, 3, built.application(3, 3))
    records = [built.record(1, 1, b"a"), built.record(2, 2, b"b")]
    path = built.write_segment(tmp_path, 1, 1, records, rest=b"\0" + stale)
    assert indices(tmp_path) == [1, 2]
    size = 57 + sum(map(len, records))
    built.write_segment(tmp_path, 1, 1, records, size=size)
    assert path.stat().st_size == size
    built.write_segment(tmp_path, 2, 3, [stale])
    assert indices(tmp_path) == [1, 2, 3]


def test_columns_without_data(tmp_path: Path) -> None:
    """Columns have the same values as records, in runs of the length requested."""
    built.write_journal(tmp_path, (5, 30, 7))
    journal = RaftJournal.open(tmp_path)
    runs = list(journal.batches(rows=4))
    assert all(run.rows <= 4 and not run.data for run in runs)
    rows = [
        row
        for run in runs
        for row in zip(run.index, run.asqn, run.checksum, run.offset, run.length, strict=True)
    ]
    assert rows == [
        (each.index, each.asqn, each.checksum, each.offset, len(each.record))
        for each in journal.records()
    ]
    assert [run.rows for run in journal.batches(length=1)] == [1] * 42
    assert next(journal.batches(40, rows=2)).index[-1] >= 40
    whole = next(journal.batches(with_data=True))
    assert whole.data == b"".join(each.record for each in list(journal.records())[:5])


def test_segments_that_are_not_used_yet(tmp_path: Path) -> None:
    """Zeebe creates the next segments in advance: all zeros, at the end of the journal."""
    paths = built.write_journal(tmp_path, (3, 2))
    for number in (3, 4):
        (tmp_path / f"{built.NAME}-{number}.log").write_bytes(bytes(4096))
    assert indices(tmp_path) == [1, 2, 3, 4, 5]
    paths[0].write_bytes(bytes(4096))
    found, error = read_until_damage(tmp_path)
    assert (found, type(error)) == ([], CorruptJournalError)
    paths[1].unlink()
    journal = RaftJournal.open(tmp_path)
    assert (journal.segments(), journal.first_index, indices(tmp_path)) == ([], 1, [])


def test_other_files_are_ignored(tmp_path: Path) -> None:
    """Deleted segments, meta files and directories are not segments."""
    paths = built.write_journal(tmp_path, (2,))
    for name in (f"{paths[0].name}_1-deleted", f"{paths[0].name}.tmp", "x.meta", "x-01.log"):
        (tmp_path / name).write_bytes(b"?")
    assert indices(tmp_path) == [1, 2]


def test_a_directory_with_several_journals(tmp_path: Path) -> None:
    """The name must be given; an unknown one, or no journal, is an error."""
    path = built.write_journal(tmp_path, (2,))[0]
    (tmp_path / "other-1.log").write_bytes(path.read_bytes())
    with pytest.raises(ConfigurationError, match=f"several journals, other, {built.NAME}"):
        RaftJournal.open(tmp_path)
    assert RaftJournal.open(tmp_path, "other").segments()[0].path.name == "other-1.log"
    with pytest.raises(StorageError, match="no journal third"):
        RaftJournal.open(tmp_path, "third")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="no journal"):
        RaftJournal.open(tmp_path / "empty")
    with pytest.raises(StorageError, match="cannot read"):
        RaftJournal.open(tmp_path / "missing")


def test_another_index_is_refused(tmp_path: Path) -> None:
    """Expected and found are named; the first must be the descriptor's, segments have no gap."""
    records = [built.record(index, -1, b"x") for index in (1, 2, 4)]
    built.write_segment(tmp_path, 1, 1, records)
    found, error = read_until_damage(tmp_path)
    assert (found, type(error), error.index) == ([1, 2], InvalidIndexError, 3)
    assert error.offset == 57 + len(records[0]) * 2
    assert "the index is 4, expected 3" in str(error)
    built.write_segment(tmp_path, 1, 2, records)
    found, error = read_until_damage(tmp_path)
    assert (found, type(error), error.index) == ([], InvalidIndexError, 2)
    built.write_segment(tmp_path, 1, 1, records[:2])
    built.write_segment(tmp_path, 2, 4, records[2:])
    found, error = read_until_damage(tmp_path)
    assert (found, type(error), error.index) == ([1, 2], InvalidIndexError, 3)
    assert "begins with index 4, expected 3" in str(error)


def test_asqns_are_not_checked_by_reading(tmp_path: Path) -> None:
    """A breach of their order is for the writer and for verify."""
    built.write_segment(tmp_path, 1, 1, [built.record(n, 9 - n, b"x") for n in (1, 2, 3)])
    assert indices(tmp_path) == [1, 2, 3]


def test_damage_ends_reading_at_its_place(tmp_path: Path) -> None:
    """Records before it are returned; the error has file, offset and index."""
    _, path, _ = built.write_journal(tmp_path, (3, 4, 2))
    place = next(each for each in RaftJournal.open(tmp_path).records(6))
    content = bytearray(path.read_bytes())
    content[place.offset + 60] ^= 4
    path.write_bytes(content)
    found, error = read_until_damage(tmp_path)
    assert found == [1, 2, 3, 4, 5]
    assert isinstance(error, InvalidChecksumError)
    assert (error.path, error.offset, error.index) == (path, place.offset, 6)
    content[place.offset] = 2
    path.write_bytes(content)
    found, error = read_until_damage(tmp_path)
    assert (found, type(error), error.index) == ([1, 2, 3, 4, 5], UnknownVersionError, 6)
    content[9] ^= 1
    path.write_bytes(content)
    found, error = read_until_damage(tmp_path)
    assert (found, type(error)) == ([1, 2, 3], InvalidChecksumError)
    assert "segment descriptor" in str(error)


def test_longer_blocks_of_later_versions_are_skipped(tmp_path: Path) -> None:
    """Also by the native scan, in the metadata, the data and the raft entry."""
    head = built.message(8, 1, 3, struct.pack("<QB", 7, 0) + b"more")
    entry = head + built.message(8, 2, 3, struct.pack("<QQ", 5, 6) + b"later", built.blob(b"data"))
    data = built.message(7, 2, 3, struct.pack("<Qq", 1, 5) + b"new", built.blob(entry))
    block = struct.pack("<qi", built.crc32c(data), len(data)) + b"newer"
    record = b"\x01" + built.message(7, 1, 3, block) + data
    built.write_segment(tmp_path, 1, 1, [record, built.record(2, 7, b"x", 3)])
    first, second = RaftJournal.open(tmp_path).records()
    assert (first.term, first.asqn, first.lowest_asqn, first.highest_asqn) == (7, 5, 5, 6)
    assert (first.record, first.data, second.index) == (record, entry, 2)
    assert [each.problem for each in verify_journal(tmp_path).findings] == ["InvalidEntry"]


@pytest.mark.parametrize("checksum", [-1, 1 << 32, -(1 << 63)])
def test_a_checksum_beyond_32_bits_cannot_match(tmp_path: Path, checksum: int) -> None:
    """Also in the native scan."""
    record = bytearray(built.EXAMPLE)
    low = struct.unpack_from("<I", record, 9)[0]
    struct.pack_into("<q", record, 9, low | checksum if checksum > 0 else checksum + low)
    built.write_segment(tmp_path, 1, 1, [bytes(record)], journal_format="1.0")
    assert read_until_damage(tmp_path)[0] == []
    [finding] = verify_journal(tmp_path).findings
    assert (finding.index, finding.problem) == (1, "InvalidChecksum")


def test_a_large_journal_in_several_runs(tmp_path: Path) -> None:
    """Records that are longer than the buffer of the scan, and many runs of one segment."""
    sizes = [1, 700_000, 3, 2_000_000, 5, 600_000]
    records = [built.record(n, -1, bytes([n]) * size) for n, size in enumerate(sizes, start=1)]
    built.write_segment(tmp_path, 1, 1, records, size=1 << 22)
    assert [each.record for each in RaftJournal.open(tmp_path).records()] == records
    runs = RaftJournal.open(tmp_path).batches(with_data=True, length=1 << 20)
    assert b"".join(run.data for run in runs) == b"".join(records)
