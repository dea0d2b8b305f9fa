"""A record of a journal as a row of a command's output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aerotape.errors import CodecError
from aerotape.tools._cli.output import ABSENT, Absent

if TYPE_CHECKING:
    from aerotape.codecs.raft.entries import Member
    from aerotape.codecs.raft_journal.directory import StoredRecord


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member of a raft partition.

    Attributes:
        member_id: id of the broker.
        type: type of the member.
        updated: last change, epoch milliseconds.
    """

    member_id: str
    type: str
    updated: int


@dataclass(frozen=True)
class JournalRow:
    """The journal of a record.

    Attributes:
        journal: journal.
    """

    journal: str


@dataclass(frozen=True)
class RecordRow:
    """A record of a journal, and its raft entry.

    Attributes:
        index: index of the record.
        asqn: application sequence number, -1 for other records.
        checksum: checksum of the record.
        term: raft term, null for data that is not a raft entry.
        type: type of the raft entry, null for data that is not one.
        lowest_asqn: lowest asqn of an application entry.
        highest_asqn: highest asqn of an application entry.
        raft_record: bytes of the record, hexadecimal.
        timestamp: time of a configuration, epoch milliseconds; null, as are the next two, if it
            cannot be read.
        members: members of a configuration.
        old_members: the members before.
    """

    index: int
    asqn: int
    checksum: int
    term: int | None
    type: str | None
    lowest_asqn: int | None
    highest_asqn: int | None
    raft_record: bytes
    timestamp: int | Absent | None = ABSENT
    members: Sequence[MemberRow] | Absent | None = ABSENT
    old_members: Sequence[MemberRow] | Absent | None = ABSENT


def record_fields(record: StoredRecord) -> dict[str, Any]:
    """Return the values of the fields of `RecordRow`."""
    from aerotape.codecs.raft.entries import ConfigurationEntry, decode_entry

    data = record.data
    fields: dict[str, Any] = {
        "index": record.index,
        "asqn": record.asqn,
        "checksum": record.checksum,
        "term": record.term,
        "type": None if record.type is None else record.type.name,
        "lowest_asqn": record.lowest_asqn,
        "highest_asqn": record.highest_asqn,
        "raft_record": data,
    }
    if fields["type"] == "CONFIGURATION":
        try:
            entry = decode_entry(data)
        except CodecError:  # verify shows why
            return {**fields, "timestamp": None, "members": None, "old_members": None}
        assert isinstance(entry, ConfigurationEntry)
        fields["timestamp"] = entry.timestamp_ms
        fields["members"] = _members(entry.members)
        fields["old_members"] = None if entry.old_members is None else _members(entry.old_members)
    return fields


def _members(members: tuple[Member, ...]) -> list[MemberRow]:
    return [MemberRow(each.member_id, each.type.name, each.updated_ms) for each in members]
