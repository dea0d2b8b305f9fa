"""A record of a journal on its way from a leader to a follower.

It has the term, the index, the asqn and the checksum of the leader's record, and the serialized
raft entry: the follower builds the same record from them, and its journal checks index and
checksum. Because the checksum covers the schema version of the leader's record, both journals must
have the same format. The schema is ours (`codecs/schemas/raft-replication.xml`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.codecs.generated import raft_replication as messages
from aerotape.codecs.generated.raft_entry import SCHEMA_ID, RaftLogEntry
from aerotape.codecs.raft.record import JournalRecord
from aerotape.codecs.runtime import Buffer, Message, decode_message
from aerotape.errors import (
    CodecError,
    CorruptJournalError,
    InvalidChecksumError,
    InvalidIndexError,
    InvalidTermError,
)

if TYPE_CHECKING:
    from aerotape.codecs.raft_journal.writer import JournalWriter

_HEAD: Final[dict[int, type[Message]]] = {RaftLogEntry.TEMPLATE_ID: RaftLogEntry}


@dataclass(frozen=True, slots=True)
class ReplicatedRecord:
    """A record as a leader sends it to its followers.

    Attributes:
        term: term of the entry.
        index: index of the record.
        asqn: the application's sequence number, -1 for none.
        checksum: that of the leader's record.
        raft_record: the serialized raft entry.
    """

    term: int
    index: int
    asqn: int
    checksum: int
    raft_record: bytes

    @classmethod
    def of(cls, record: JournalRecord) -> ReplicatedRecord:
        """Return the message of a leader for a record of its journal (CorruptJournalError)."""
        term = term_of(record.data)
        return cls(term, record.index, record.asqn, record.checksum, record.data)

    def encode(self) -> bytes:
        """Encode the message, header first (CodecError)."""
        return messages.ReplicatedRecord(
            self.term, self.index, self.asqn, self.checksum, self.raft_record
        ).encode()

    @classmethod
    def decode(cls, buffer: Buffer) -> ReplicatedRecord:
        """Decode a message, header first (CodecError)."""
        found = messages.decode(buffer)
        assert isinstance(found, messages.ReplicatedRecord)
        return cls(
            found.term, found.index, found.asqn, found.checksum, found.serialized_raft_record
        )


def term_of(raft_record: Buffer) -> int:
    """Return the term of a serialized raft entry (CorruptJournalError)."""
    try:
        head = decode_message(raft_record, SCHEMA_ID, "raft entry", _HEAD)
    except CodecError as error:
        raise CorruptJournalError(f"not a raft entry: {error}") from None
    assert isinstance(head, RaftLogEntry)
    return head.term


def receive(journal: JournalWriter, record: ReplicatedRecord) -> bool:
    """Append a leader's record to a follower's journal.

    A record that the journal holds already is accepted and not appended again. A record of
    another term in its place is replaced, with all after it.

    Returns:
        Whether it was appended.

    Raises:
        InvalidTermError: the term is not that of the raft entry, or below the last record's.
        InvalidIndexError: records before it are missing, or it was compacted.
        InvalidChecksumError: the checksum is not that of the record built here.
        InvalidAsqnError: the asqn is not above the last one.
        CorruptJournalError: the bytes are not a raft entry.
    """
    index = record.index
    term = term_of(record.raft_record)
    if record.term != term:
        raise InvalidTermError(
            f"record {index}: the term is {record.term}, but that of its raft entry {term}",
            index=index,
        )
    if not journal.first_index <= index <= journal.next_index:
        raise InvalidIndexError(
            f"record {index}: expected an index from {journal.first_index} to "
            f"{journal.next_index}, the one after the last record's",
            index=journal.next_index,
        )
    held = journal.read(index) if index < journal.next_index else None
    if held is not None and term_of(held.data) == term:
        if held.checksum == record.checksum:
            return False
        raise InvalidChecksumError(
            f"record {index}: the checksum is {record.checksum}, but that of the record with "
            f"this index and term {held.checksum}",
            index=index,
        )
    last = journal.next_index - 1
    last_term = term_of(journal.read(last).data) if last >= journal.first_index else 0
    if term < last_term:
        raise InvalidTermError(
            f"record {index}: the term is {term}, expected at least {last_term}, that of the last "
            "record",
            index=index,
        )
    # Before records are deleted for it.
    journal.check(index, record.asqn, record.raft_record, record.checksum, after=index - 1)
    if held is not None:
        journal.delete_after(index - 1)
    journal.append_record(index, record.asqn, record.raft_record, record.checksum)
    return True
