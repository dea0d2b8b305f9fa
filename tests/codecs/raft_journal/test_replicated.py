"""Records on their way to a follower, whose journal is on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.journals import raft_bytes as built

from aerotape.codecs.raft.record import decode_record
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.replicated import ReplicatedRecord, receive
from aerotape.codecs.raft_journal.writer import JournalWriter
from aerotape.errors import (
    CodecError,
    CorruptJournalError,
    InvalidAsqnError,
    InvalidChecksumError,
    InvalidIndexError,
    InvalidTermError,
    JournalError,
)

FORMAT = "8.3"


def leaders_record(index: int, asqn: int, entry: bytes) -> tuple[bytes, ReplicatedRecord]:
    """The bytes of a leader's record, and what it sends for it."""
    record = built.record(index, asqn, entry, 2)
    decoded = decode_record(record)
    assert decoded is not None
    return record, ReplicatedRecord.of(decoded)


def sent(index: int, asqn: int, term: int = 1, data: bytes = b"data") -> ReplicatedRecord:
    """Return the record that a leader sends for an application entry."""
    entry = built.application(max(asqn, 0), max(asqn, 0), data, term, 2)
    return leaders_record(index, asqn, entry)[1]


def follower(folder: Path) -> JournalWriter:
    return JournalWriter(folder / "follower", format=FORMAT, segment_size=512)


def held(writer: JournalWriter) -> list[bytes]:
    return [each.record for each in RaftJournal.open(writer.directory).records()]


def test_the_message_has_all_fields() -> None:
    """Term, index, asqn, checksum and the raft entry go through our message."""
    record = sent(5, 7, term=2)
    assert (record.term, record.index, record.asqn) == (2, 5, 7)
    assert record.raft_record == built.application(7, 7, b"data", 2, 2)
    assert ReplicatedRecord.decode(record.encode()) == record
    for damaged in (record.encode()[:-1], record.encode()[:20], b"", built.EXAMPLE):
        with pytest.raises(CodecError):
            ReplicatedRecord.decode(damaged)


def test_a_right_record_is_appended_byte_for_byte(tmp_path: Path) -> None:
    """The follower's records are identical to the leader's, over several segments."""
    leaders = [leaders_record(1, -1, built.initial(version=2))]
    leaders += [
        leaders_record(index, index, built.application(index, index, b"x" * index * 9, 1, 2))
        for index in range(2, 20)
    ]
    with follower(tmp_path) as journal:
        for _, record in leaders:
            assert receive(journal, ReplicatedRecord.decode(record.encode()))
    assert held(journal) == [record for record, _ in leaders]
    assert len(RaftJournal.open(journal.directory).segments()) > 3


def refused(
    journal: JournalWriter, record: ReplicatedRecord, error: type[JournalError], text: str
) -> None:
    """A record is refused, nothing is appended, and the next right one is."""
    before = held(journal)
    with pytest.raises(error, match=text):
        receive(journal, record)
    assert held(journal) == before


def test_wrong_records_are_refused_and_change_nothing(tmp_path: Path) -> None:
    """Index, checksum, asqn and term are checked; the next right record is appended."""
    with follower(tmp_path) as journal:
        assert receive(journal, sent(1, 10, term=2))
        right = sent(2, 11, term=2)
        refused(journal, sent(3, 11, term=2), InvalidIndexError, "from 1 to 2")
        refused(journal, sent(0, 11, term=2), InvalidIndexError, "from 1 to 2")
        for bit in range(33):
            checksum = right.checksum ^ 1 << bit
            wrong = ReplicatedRecord(2, 2, 11, checksum, right.raft_record)
            refused(journal, wrong, InvalidChecksumError, f"checksum given is {checksum}")
        refused(journal, sent(2, 10, term=2), InvalidAsqnError, "more than 10")
        refused(journal, sent(2, 11, term=1), InvalidTermError, "expected at least 2")
        other = ReplicatedRecord(3, 2, 11, right.checksum, right.raft_record)
        refused(journal, other, InvalidTermError, "the term is 3, but that of its raft entry 2")
        blob = ReplicatedRecord(2, 2, 11, 0, b"no raft entry")
        refused(journal, blob, CorruptJournalError, "not a raft entry")
        assert receive(journal, right)
        assert len(held(journal)) == 2


def test_a_record_that_is_held_is_accepted_again(tmp_path: Path) -> None:
    """The same term and checksum: success, and nothing is appended."""
    with follower(tmp_path) as journal:
        records = [sent(1, 1, 1), sent(2, 2, 1), sent(3, 3, 2)]
        for record in records:
            assert receive(journal, record)
        before = held(journal)
        for record in records:
            assert not receive(journal, record)
        assert held(journal) == before
        refused(journal, sent(2, 2, 1, b"else"), InvalidChecksumError, "with this index and term")


def test_a_record_of_another_term_replaces_all_from_its_place(tmp_path: Path) -> None:
    """A new leader's record truncates the journal at its index, and is appended there."""
    with follower(tmp_path) as journal:
        for index in range(1, 12):
            receive(journal, sent(index, index, 1, b"x" * 60))
        before = held(journal)
        new = sent(4, 4, term=2)
        # A wrong one must not truncate.
        wrong = ReplicatedRecord(2, 4, 4, new.checksum ^ 1, new.raft_record)
        refused(journal, wrong, InvalidChecksumError, "checksum given")
        assert receive(journal, new)
        assert held(journal)[:3] == before[:3]
        assert (len(held(journal)), journal.next_index, journal.last_asqn) == (4, 5, 4)
        assert receive(journal, sent(5, 5, term=2))
        # Records of the old leader are refused.
        refused(journal, sent(6, 6, term=1), InvalidTermError, "expected at least 2")


def test_another_schema_version_has_another_checksum(tmp_path: Path) -> None:
    """A leader's record of another format is refused: its checksum is of other bytes."""
    record = decode_record(built.record(1, 1, built.application(1, 1), 1))
    assert record is not None
    with follower(tmp_path) as journal, pytest.raises(InvalidChecksumError):
        receive(journal, ReplicatedRecord.of(record))
