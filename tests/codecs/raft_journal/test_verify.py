"""The check of whole journals: every kind of finding, and where it is."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.journals import raft_bytes as built

from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import JournalCheck, verify_journal
from aerotape.errors import JournalError, StorageError


def found(folder: Path) -> list[tuple[str, int, int | None, str]]:
    """The findings without their reasons, segments by the end of their names."""
    return [
        (each.segment.rpartition("-")[2], each.offset, each.index, each.problem)
        for each in verify_journal(folder).findings
    ]


def findings_of(folder: Path, records: Sequence[bytes]) -> list[tuple[int | None, str]]:
    """Index and problem of the findings in a segment of these records."""
    built.write_segment(folder, 1, 1, records)
    return [(index, problem) for _, _, index, problem in found(folder)]


def application(
    index: int, asqn: int, lowest: int, highest: int, extra: bytes = b"", version: int = 2
) -> bytes:
    entry = built.application(lowest, highest, b"data", version=version)
    return built.record(index, asqn, entry + extra, version)


@pytest.mark.parametrize("name", built.FORMATS)
def test_a_sound_journal_has_no_findings(tmp_path: Path, name: str) -> None:
    """Segments, records and indices are counted; stale records and unused segments are fine."""
    version = built.VERSIONS[name]
    stale = b"\0" + built.record(9, 2, b"stale", version)
    first = [application(n, n, n, n, version=version) for n in (5, 6)]
    built.write_segment(tmp_path, 2, 5, first, journal_format=name, rest=stale)
    rows = [(3, 1, b"0")]
    groups = (rows, rows) if version == 2 else (rows,)
    second = [
        built.record(7, -1, built.initial(2, version), version),
        built.record(8, -1, built.configuration(1, *groups, version=version), version),
        application(9, 7, 7, 9, version=version),
        application(10, 10, 10, 10, version=version),
    ]
    built.write_segment(tmp_path, 4, 7, second, journal_format=name)
    (tmp_path / f"{built.NAME}-5.log").write_bytes(bytes(4096))
    assert verify_journal(tmp_path) == JournalCheck(2, 6, 5, 11, [])


def test_findings_in_a_segment(tmp_path: Path) -> None:
    """Each kind has the index that the record there should have; the check continues."""
    good = [application(n, n, n, n) for n in range(1, 7)]
    assert findings_of(tmp_path, good) == []
    # Index: after it the check goes by what it found.
    assert findings_of(tmp_path, [*good[:2], application(5, 5, 3, 3)]) == [(3, "InvalidIndex")]
    # Asqns: equal to the last, below it, negative.
    equal = [*good[:2], application(3, 2, 3, 3), application(4, 4, 4, 4)]
    assert findings_of(tmp_path, equal) == [(3, "InvalidAsqn")]
    below = [*good[:2], application(3, -1, 3, 3), application(4, 1, 4, 4)]
    assert findings_of(tmp_path, below) == [(4, "InvalidAsqn")]
    assert findings_of(tmp_path, [application(1, -2, 1, 1)]) == [(1, "InvalidAsqn")]
    # Positions: a jump, and a highest below the lowest.
    assert findings_of(tmp_path, [*good[:2], application(3, 5, 5, 5)]) == [(3, "PositionGap")]
    assert findings_of(tmp_path, [*good[:2], application(3, 3, 3, 2)]) == [(3, "InvalidEntry")]
    # Raft entries.
    trailing = application(3, 3, 3, 3, b"?")
    assert findings_of(tmp_path, [*good[:2], trailing, good[3]]) == [(3, "TrailingBytes")]
    blob = built.record(3, 3, b"not a raft entry", 2)
    assert findings_of(tmp_path, [*good[:2], blob, good[3]]) == [(3, "InvalidEntry")]
    kind = built.record(3, 3, built.message(8, 1, 2, struct.pack("<QB", 1, 3)), 2)
    assert findings_of(tmp_path, [*good[:2], kind]) == [(3, "InvalidEntry")]
    # Frames.
    unknown = b"\x02" + good[2][1:]
    assert findings_of(tmp_path, [*good[:2], unknown, good[3]]) == [(3, "UnknownVersion")]


@pytest.mark.parametrize(
    ("rows", "extra", "expected"),
    [
        ([(3, 1, b"0")], b"", []),
        ([(3, 1, b"0")], b"?", ["TrailingBytes"]),
        ([(4, 1, b"0")], b"", ["InvalidEntry"]),
        ([(3, 1, b"\xff")], b"", ["InvalidEntry"]),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_configurations_are_checked_to_their_end(
    tmp_path: Path,
    version: int,
    rows: list[tuple[int, int, bytes]],
    extra: bytes,
    expected: list[str],
) -> None:
    """Types and ids of members, and bytes after the groups that the version has."""
    groups = ([], rows) if version == 2 else (rows,)
    entry = built.configuration(1, *groups, version=version) + extra
    findings = findings_of(tmp_path, [built.record(1, -1, entry, version)])
    assert findings == [(1, each) for each in expected]
    cut = built.configuration(1, *groups, version=version)[:-1]
    findings = findings_of(tmp_path, [built.record(1, -1, cut, version)])
    assert findings == [(1, "InvalidEntry")]


def test_the_check_resumes_after_a_wrong_checksum(tmp_path: Path) -> None:
    """Damage of two records is two findings, when a sound record follows each."""
    records = [application(n, n, n, n) for n in range(1, 8)]
    for number in (2, 5):
        records[number] = records[number][:-1] + b"?"
    offset = 57 + len(records[0]) * 2
    built.write_segment(tmp_path, 1, 1, records)
    assert found(tmp_path) == [
        ("1.log", offset, 3, "InvalidChecksum"),
        ("1.log", offset + len(records[0]) * 3, 6, "InvalidChecksum"),
    ]
    # Also after several damaged records: their lengths lead to a sound one.
    records[4] = records[4][:-1] + b"?"
    built.write_segment(tmp_path, 1, 1, records)
    assert [index for _, _, index, _ in found(tmp_path)] == [3, 5, 6]
    # The last records: nothing follows that the check could resume with.
    records[6] = records[6][:-1] + b"?"
    built.write_segment(tmp_path, 1, 1, records)
    assert [index for _, _, index, _ in found(tmp_path)] == [3, 5]
    check = verify_journal(tmp_path)
    assert check.findings[-1].why.endswith("; the rest of the segment is not checked")
    assert (check.records, check.next_index) == (3, None)


def test_findings_from_one_segment_to_the_next(tmp_path: Path) -> None:
    """A missing segment, and asqns and positions that do not continue."""
    paths = built.write_journal(tmp_path, (3, 4, 2))
    paths[1].unlink()
    assert found(tmp_path) == [
        ("3.log", 0, 4, "InvalidIndex"),
        ("3.log", 57, 8, "PositionGap"),
    ]
    built.write_segment(tmp_path, 1, 1, [application(1, 9, 9, 9)])
    built.write_segment(tmp_path, 3, 2, [application(2, -1, 10, 10), application(3, 9, 11, 11)])
    offset = 57 + len(application(2, -1, 10, 10))
    assert found(tmp_path) == [("3.log", offset, 3, "InvalidAsqn")]


def test_damaged_descriptors(tmp_path: Path) -> None:
    """The records of such a segment are not checked; the next segment is, as it is."""
    paths = built.write_journal(tmp_path, (3, 4, 2))
    original = paths[1].read_bytes()
    for offset, problem in ((0, "UnknownVersion"), (9, "InvalidChecksum"), (2, "CorruptJournal")):
        content = bytearray(original)
        content[offset] ^= 32
        paths[1].write_bytes(content)
        assert found(tmp_path) == [("2.log", 0, 4, problem)]
    paths[1].write_bytes(bytes(4096))
    assert found(tmp_path) == [("2.log", 0, 4, "CorruptJournal")]
    content = bytearray(paths[0].read_bytes())
    content[9] ^= 1
    paths[0].write_bytes(content)
    assert found(tmp_path)[0] == ("1.log", 0, None, "InvalidChecksum")


def test_descriptors_that_do_not_match_the_file(tmp_path: Path) -> None:
    """The id of the name, the length of the file, the last index of a complete segment."""
    records = [application(n, n, n, n) for n in (1, 2)]
    length = len(records[0])
    path = built.write_segment(tmp_path, 1, 1, records)
    path.rename(tmp_path / f"{built.NAME}-7.log")
    assert found(tmp_path) == [("7.log", 0, 1, "CorruptJournal")]
    path = tmp_path / f"{built.NAME}-7.log"
    for size, last_index, expected in (
        (4096, 2, []),
        (4096, 3, [("7.log", 57 + 2 * length, 3, "CorruptJournal")]),
        (4000, 2, [("7.log", 0, 1, "CorruptJournal")]),
        (5000, 2, []),
    ):
        head = built.descriptor("8.3", 7, 1, size, last_index, 57 + length)
        path.write_bytes((head + b"".join(records)).ljust(4096, b"\0"))
        assert found(tmp_path) == expected


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    """A directory in the place of a segment; the others are checked."""
    paths = built.write_journal(tmp_path, (3, 4, 2))
    paths[1].unlink()
    paths[1].mkdir()
    assert ("2.log", 0, 4, "Unreadable") in found(tmp_path)
    with pytest.raises(StorageError, match="cannot read"):
        verify_journal(tmp_path / "missing")


def test_random_damage_is_found_where_reading_ends(tmp_path: Path, seeds: range) -> None:
    """The first finding is at the index and offset at which reading ends with an error."""
    paths = built.write_journal(tmp_path, (12, 15, 9))
    ends = {path: path.read_bytes().rstrip(b"\0") for path in paths}
    seen = 0
    for seed in seeds:
        random_ = random.Random(seed)
        for _ in range(150):
            path = random_.choice(paths)
            original = path.read_bytes()
            content = bytearray(original)
            at = random_.randrange(len(ends[path]))
            content[at] ^= 1 << random_.randrange(8)
            path.write_bytes(content)
            error: JournalError | None = None
            try:
                list(RaftJournal.open(tmp_path).records())
            except JournalError as caught:
                error = caught
            findings = verify_journal(tmp_path).findings
            if error is not None:
                seen += 1
                first = findings[0]
                assert (first.segment, first.offset) == (Path(error.path).name, error.offset)
                if error.index >= 0:
                    assert first.index == error.index
            path.write_bytes(original)
    assert seen > 100 * len(seeds)
    assert verify_journal(tmp_path).findings == []


def test_progress_reports_bytes(tmp_path: Path) -> None:
    """The callback receives no more than the bytes of the files."""
    built.write_journal(tmp_path, (3, 4, 2))
    seen: list[int] = []
    verify_journal(tmp_path, progress=seen.append)
    assert all(0 <= each <= 3 * 4096 for each in seen)


@pytest.mark.parametrize("damage", ["asqn", "checksum"])
def test_findings_of_a_segment_are_listed_up_to_a_limit(tmp_path: Path, damage: str) -> None:
    """The first thousand are listed, all are counted, and the check reaches the end."""
    records = [application(index, 1, index, index) for index in range(1, 1501)]
    if damage == "checksum":
        records = [application(index, index, index, index) for index in range(1, 1502)]
        records[:-1] = [each[:-1] + bytes([each[-1] ^ 1]) for each in records[:-1]]
    built.write_segment(tmp_path, 1, 1, records, size=1 << 20)
    check = verify_journal(tmp_path)
    assert len(check.findings) == 1000
    assert check.problems == (1499 if damage == "asqn" else 1500)
    assert [each.index for each in check.findings][-1] == (1001 if damage == "asqn" else 1000)
    assert check.next_index == len(records) + 1
