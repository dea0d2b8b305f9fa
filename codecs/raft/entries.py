"""Raft entries, which a journal's records hold: a RaftLogEntry, then a message of its type.

An initial entry has nothing after the RaftLogEntry; the others are complete messages with their
headers. Version 2 of the schema (Zeebe 8.3) added the old members of a configuration, which are
None in entries of version 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from aerotape.codecs.generated import raft_entry as messages
from aerotape.codecs.generated.raft_entry import EntryType, MemberType
from aerotape.codecs.raft.formats import LATEST, with_version
from aerotape.codecs.runtime import (
    HEADER,
    HEADER_LENGTH,
    Buffer,
    GroupRows,
    Message,
    decode_message,
)
from aerotape.errors import CodecError

MAX_MEMBERS: Final = 254
_OLD_MEMBERS_SINCE: Final = 2
_NO_OLD_MEMBERS: Final = 3  # bytes of the empty group: its dimensions
_SCHEMA: Final = "raft entry"
_HEAD: Final[dict[int, type[Message]]] = {messages.RaftLogEntry.TEMPLATE_ID: messages.RaftLogEntry}
_BODIES: Final[dict[EntryType, type[Message]]] = {
    EntryType.APPLICATION: messages.ApplicationEntry,
    EntryType.CONFIGURATION: messages.ConfigurationEntry,
}


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the cluster; `updated_ms` is milliseconds since the epoch."""

    member_id: str
    type: MemberType
    updated_ms: int


@dataclass(frozen=True, slots=True)
class InitialEntry:
    """The first entry of a leader."""

    type: ClassVar[EntryType] = EntryType.INITIAL
    term: int


@dataclass(frozen=True, slots=True)
class ApplicationEntry:
    """A batch of the application's records, whose positions rise by one.

    Attributes:
        term: that of the leader.
        lowest_asqn: position of the first record.
        highest_asqn: position of the last.
        data: the records.
    """

    type: ClassVar[EntryType] = EntryType.APPLICATION
    term: int
    lowest_asqn: int
    highest_asqn: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class ConfigurationEntry:
    """The members of the cluster.

    Attributes:
        term: that of the leader.
        timestamp_ms: milliseconds since the epoch.
        members: those from this entry on.
        old_members: those before, while the change is not complete; None in version 1.
    """

    type: ClassVar[EntryType] = EntryType.CONFIGURATION
    term: int
    timestamp_ms: int
    members: tuple[Member, ...]
    old_members: tuple[Member, ...] | None = ()


RaftEntry = InitialEntry | ApplicationEntry | ConfigurationEntry


def encode_entry(entry: RaftEntry, version: int = LATEST.raft_version) -> bytes:
    """Encode an entry.

    Args:
        entry: the entry.
        version: the schema version to write: 1 for Zeebe 1.0 to 8.2.

    Raises:
        CodecError: a number is out of its type's range, the highest asqn is below the lowest,
            there are too many members, or version 1 cannot hold the old members.
    """
    head = with_version(messages.RaftLogEntry(entry.term, entry.type).encode(), version)
    if isinstance(entry, InitialEntry):
        return head
    if isinstance(entry, ApplicationEntry):
        if entry.highest_asqn < entry.lowest_asqn:
            raise CodecError(
                f"application entry: the highest asqn {entry.highest_asqn} is below the lowest "
                f"{entry.lowest_asqn}"
            )
        application = messages.ApplicationEntry(entry.lowest_asqn, entry.highest_asqn, entry.data)
        return head + with_version(application.encode(), version)
    configuration = messages.ConfigurationEntry(
        entry.timestamp_ms, _rows(entry.members), _rows(entry.old_members or ())
    ).encode()
    if version < _OLD_MEMBERS_SINCE:
        if entry.old_members:
            raise CodecError(
                f"configuration entry: version {version} of the schema has no old members, and "
                f"this one has {len(entry.old_members)}: write format {LATEST.name}"
            )
        configuration = configuration[:-_NO_OLD_MEMBERS]
    return head + with_version(configuration, version)


def decode_entry(blob: Buffer) -> RaftEntry:
    """Decode an entry; bytes after it are ignored.

    Raises:
        CodecError: the bytes are too few, or not a raft entry.
    """
    head = decode_message(blob, messages.SCHEMA_ID, _SCHEMA, _HEAD)
    assert isinstance(head, messages.RaftLogEntry)
    if head.type is EntryType.INITIAL:
        return InitialEntry(head.term)
    block_length, _, _, _ = HEADER.unpack_from(blob)
    body_class = _BODIES[head.type]
    body = decode_message(
        memoryview(blob)[HEADER_LENGTH + block_length :],
        messages.SCHEMA_ID,
        _SCHEMA,
        {body_class.TEMPLATE_ID: body_class},
    )
    if isinstance(body, messages.ApplicationEntry):
        return ApplicationEntry(
            head.term, body.lowest_asqn, body.highest_asqn, body.application_data
        )
    assert isinstance(body, messages.ConfigurationEntry)
    old_members = None if body.old_members is None else _members(body.old_members)
    return ConfigurationEntry(head.term, body.timestamp, _members(body.members), old_members)


def converted_entry(blob: bytes, version: int) -> bytes:
    """Return a serialized entry in a version of the schema; other bytes are returned unchanged.

    Raises:
        CodecError: version 1 cannot hold the old members of the configuration.
    """
    try:
        entry = decode_entry(blob)
        found = encode_entry(entry, HEADER.unpack_from(blob)[3])
    except CodecError:
        return blob
    return encode_entry(entry, version) if found == blob else blob


def _rows(members: tuple[Member, ...]) -> GroupRows:
    if len(members) > MAX_MEMBERS:
        raise CodecError(f"configuration entry: {len(members)} members, at most {MAX_MEMBERS}")
    return [(each.type, each.updated_ms, each.member_id.encode()) for each in members]


def _members(rows: GroupRows) -> tuple[Member, ...]:
    try:
        return tuple(
            Member(member_id.decode(), MemberType(kind), updated)
            for kind, updated, member_id in rows
        )
    except ValueError as error:  # a type that is not known, or bytes that are not UTF-8
        raise CodecError(f"configuration entry: a member is not valid: {error}") from None
