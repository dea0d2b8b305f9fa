"""The metadata that a broker stores beside a journal: the last flushed index."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from support.journals import raft_bytes as built

from aerotape.codecs.raft_journal import verify
from aerotape.codecs.raft_journal.metadata import last_flushed_index
from aerotape.codecs.raft_journal.verify import Finding, verify_journal
from aerotape.errors import CorruptJournalError

NULL = (1 << 64) - 1
COUNTS = (3, 4, 2)


@pytest.mark.parametrize(
    ("content", "index"),
    [
        (built.meta(7), 7),
        (built.meta(7, version=2, commit_index=9), 7),
        (built.meta(0), 0),
        (built.meta(NULL), 0),
        (bytes(32), 0),
        (b"", 0),
        (None, 0),
    ],
)
def test_the_last_flushed_index(tmp_path: Path, content: bytes | None, index: int) -> None:
    """Of each release; 0 if none is stored, or there is no file."""
    if content is not None:
        (tmp_path / "name.meta").write_bytes(content)
    assert last_flushed_index(tmp_path, "name") == index


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x02" + built.meta(7)[1:], "the version is 2, expected 1"),
        (built.meta(7)[:20], "Meta"),
        (b"\x01", "too short"),
        (b"\x01" + built.initial(), "unknown template id 1"),
    ],
)
def test_other_metadata_is_damage(tmp_path: Path, content: bytes, why: str) -> None:
    """It is a finding of the journal, too."""
    path = tmp_path / f"{built.NAME}.meta"
    path.write_bytes(content)
    with pytest.raises(CorruptJournalError, match=why):
        last_flushed_index(tmp_path, built.NAME)
    built.write_journal(tmp_path, COUNTS)
    (finding,) = verify_journal(tmp_path).findings
    assert (finding.segment, finding.problem) == (path.name, "CorruptJournal")


def findings(folder: Path, flushed: int) -> list[Finding]:
    (folder / f"{built.NAME}.meta").write_bytes(built.meta(flushed))
    return verify_journal(folder).findings


def test_records_that_the_broker_has_flushed_are_missing(tmp_path: Path) -> None:
    """Of a journal that ends before the last flushed index, and of no other."""
    paths = built.write_journal(tmp_path, COUNTS)
    for flushed in (0, 1, 8, 9):
        assert findings(tmp_path, flushed) == []
    end = len(paths[-1].read_bytes().rstrip(b"\0"))
    for flushed in (10, 1 << 60):
        (finding,) = findings(tmp_path, flushed)
        assert (finding.segment, finding.index) == (paths[-1].name, 10)
        assert abs(finding.offset - end) < 8
        assert finding.problem == "MissingRecords"
        assert finding.why == (
            f"the journal ends before index 10, and the broker has flushed records up to {flushed}"
        )
    paths[-1].unlink()
    (finding,) = findings(tmp_path, 9)
    assert (finding.segment, finding.index) == (paths[1].name, 8)
    for path in paths[:2]:
        path.write_bytes(bytes(4096))
    (finding,) = findings(tmp_path, 9)
    assert (finding.segment, finding.offset, finding.index) == (paths[0].name, 0, 1)
    assert findings(tmp_path, 0) == []


def test_damage_at_the_end_is_one_finding(tmp_path: Path) -> None:
    """Where the journal ends is not known then."""
    paths = built.write_journal(tmp_path, COUNTS)
    content = bytearray(paths[-1].read_bytes())
    content[0] = 7
    paths[-1].write_bytes(content)
    assert [each.problem for each in findings(tmp_path, 9)] == ["UnknownVersion"]
    content[0] = 2
    content[struct.calcsize("57x21x8x")] ^= 1
    paths[-1].write_bytes(content)
    assert [each.problem for each in findings(tmp_path, 12)] == [
        "InvalidChecksum",
        "MissingRecords",
    ]


def test_a_running_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It appends a segment or truncates the journal during the check, which is not damage."""
    paths = built.write_journal(tmp_path, COUNTS)
    appended = paths[-1].read_bytes()
    paths[-1].unlink()
    flushed: list[int] = []

    def stored(directory: Path, name: str) -> int:
        if flushed[0] == 9:
            paths[-1].write_bytes(appended)
        return flushed.pop(0) if len(flushed) > 1 else flushed[0]

    monkeypatch.setattr(verify, "last_flushed_index", stored)
    for indices, problems in (([8, 7], []), ([8, 8], ["MissingRecords"]), ([9, 9], [])):
        flushed[:] = indices
        assert [each.problem for each in verify_journal(tmp_path).findings] == problems
