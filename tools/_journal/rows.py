"""A record of a journal as a row of a command's output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerotape.errors import CodecError

if TYPE_CHECKING:
    from aerotape.codecs.raft.entries import Member
    from aerotape.codecs.raft_journal.directory import StoredRecord


def record_row(record: StoredRecord) -> dict[str, Any]:
    """Return the fields of a record and of its raft entry."""
    from aerotape.codecs.raft.entries import ConfigurationEntry, decode_entry

    data = record.data
    row: dict[str, Any] = {
        "index": record.index,
        "asqn": record.asqn,
        "checksum": record.checksum,
        "term": record.term,
        "type": None if record.type is None else record.type.name,
        "lowest_asqn": record.lowest_asqn,
        "highest_asqn": record.highest_asqn,
        "raft_record": data,
    }
    if row["type"] == "CONFIGURATION":
        try:
            entry = decode_entry(data)
        except CodecError:  # verify shows why
            return {**row, "timestamp": None, "members": None, "old_members": None}
        assert isinstance(entry, ConfigurationEntry)
        row["timestamp"] = entry.timestamp_ms
        row["members"] = _members(entry.members)
        row["old_members"] = None if entry.old_members is None else _members(entry.old_members)
    return row


def _members(members: tuple[Member, ...]) -> list[dict[str, Any]]:
    return [
        {"member_id": each.member_id, "type": each.type.name, "updated": each.updated_ms}
        for each in members
    ]
