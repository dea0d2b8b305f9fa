"""Messages of the SBE schema aerotape.raft.entry, id 8, version 2.

Generated from raft-entry.xml with sbe-tool by codecs/generate.py; do not edit.
Regenerate: python -m aerotape.codecs.generate
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import ClassVar, Self

from aerotape.codecs.runtime import (
    ENCODE_FAULTS,
    Buffer,
    GroupLayout,
    GroupRows,
    Message,
    check_block,
    data_field,
    decode_message,
    encode_error,
    enum_member,
    group_field,
    read_data,
    read_group,
)

SCHEMA_ID = 8
SCHEMA_VERSION = 2


class EntryType(IntEnum):
    """Enum `EntryType` of the schema, uint8 on the wire."""

    APPLICATION = 0
    CONFIGURATION = 1
    INITIAL = 2


class MemberType(IntEnum):
    """Enum `MemberType` of the schema, uint8 on the wire."""

    INACTIVE = 0
    PASSIVE = 1
    PROMOTABLE = 2
    ACTIVE = 3


_RAFT_LOG_ENTRY = Struct("<HHHHQB")
_RAFT_LOG_ENTRY_BLOCK = Struct("<QB")


class RaftLogEntry(Message):
    """Template 1, `RaftLogEntry`."""

    TEMPLATE_ID: ClassVar[int] = 1
    BLOCK_LENGTH: ClassVar[int] = 9
    SCHEMA_ID: ClassVar[int] = 8
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("term", "type")
    __slots__ = __match_args__

    def __init__(
        self,
        term: int = 0,
        type: EntryType = EntryType.APPLICATION,
    ) -> None:
        self.term = term
        self.type = type

    def encode(self) -> bytes:
        try:
            return _RAFT_LOG_ENTRY.pack(9, 1, 8, 2, self.term, self.type)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RAFT_LOG_ENTRY, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 9,
        version: int = 2,
    ) -> Self:
        check_block("RaftLogEntry", buffer, offset, block_length, 9)
        (term, type) = _RAFT_LOG_ENTRY_BLOCK.unpack_from(buffer, offset)
        type = enum_member(EntryType, type, "RaftLogEntry.type")
        return cls(term, type)


_APPLICATION_ENTRY = Struct("<HHHHQQ")
_APPLICATION_ENTRY_BLOCK = Struct("<QQ")


class ApplicationEntry(Message):
    """Template 2, `ApplicationEntry`."""

    TEMPLATE_ID: ClassVar[int] = 2
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 8
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("lowest_asqn", "highest_asqn", "application_data")
    __slots__ = __match_args__

    def __init__(
        self,
        lowest_asqn: int = 0,
        highest_asqn: int = 0,
        application_data: bytes = b"",
    ) -> None:
        self.lowest_asqn = lowest_asqn
        self.highest_asqn = highest_asqn
        self.application_data = application_data

    def encode(self) -> bytes:
        try:
            block = _APPLICATION_ENTRY.pack(16, 2, 8, 2, self.lowest_asqn, self.highest_asqn)
            return block + data_field(self.application_data)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _APPLICATION_ENTRY, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 2,
    ) -> Self:
        end = check_block("ApplicationEntry", buffer, offset, block_length, 16)
        (lowest_asqn, highest_asqn) = _APPLICATION_ENTRY_BLOCK.unpack_from(buffer, offset)
        application_data, _ = read_data(buffer, end, "ApplicationEntry.application_data")
        return cls(lowest_asqn, highest_asqn, application_data)


_CONFIGURATION_ENTRY = Struct("<HHHHQ")
_CONFIGURATION_ENTRY_BLOCK = Struct("<Q")
_CONFIGURATION_ENTRY_MEMBERS = GroupLayout(Struct("<HB"), Struct("<Bq"), 1)
_CONFIGURATION_ENTRY_OLD_MEMBERS = GroupLayout(Struct("<HB"), Struct("<Bq"), 1)


class ConfigurationEntry(Message):
    """Template 4, `ConfigurationEntry`."""

    TEMPLATE_ID: ClassVar[int] = 4
    BLOCK_LENGTH: ClassVar[int] = 8
    SCHEMA_ID: ClassVar[int] = 8
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("timestamp", "members", "old_members")
    __slots__ = __match_args__

    def __init__(
        self,
        timestamp: int = 0,
        members: GroupRows = (),
        old_members: GroupRows | None = None,  # since version 2
    ) -> None:
        self.timestamp = timestamp
        self.members = members
        self.old_members = old_members

    def encode(self) -> bytes:
        try:
            block = _CONFIGURATION_ENTRY.pack(8, 4, 8, 2, self.timestamp)
            return (
                block
                + group_field(self.members, _CONFIGURATION_ENTRY_MEMBERS)
                + group_field(self.old_members, _CONFIGURATION_ENTRY_OLD_MEMBERS)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CONFIGURATION_ENTRY, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 8,
        version: int = 2,
    ) -> Self:
        end = check_block("ConfigurationEntry", buffer, offset, block_length, 8)
        (timestamp,) = _CONFIGURATION_ENTRY_BLOCK.unpack_from(buffer, offset)
        members, end = read_group(
            buffer,
            end,
            "ConfigurationEntry.members",
            _CONFIGURATION_ENTRY_MEMBERS,
        )
        old_members: GroupRows | None = None
        if version >= 2:
            old_members, _ = read_group(
                buffer,
                end,
                "ConfigurationEntry.old_members",
                _CONFIGURATION_ENTRY_OLD_MEMBERS,
            )
        return cls(timestamp, members, old_members)


_META = Struct("<HHHHQQ")
_META_BLOCK = Struct("<QQ")


class Meta(Message):
    """Template 6, `Meta`."""

    TEMPLATE_ID: ClassVar[int] = 6
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 8
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("term", "flushed_index", "voted_for")
    __slots__ = __match_args__

    def __init__(
        self,
        term: int = 0,
        flushed_index: int | None = None,
        voted_for: bytes = b"",
    ) -> None:
        self.term = term
        self.flushed_index = flushed_index
        self.voted_for = voted_for

    def encode(self) -> bytes:
        try:
            block = _META.pack(
                16,
                6,
                8,
                2,
                self.term,
                18446744073709551615 if self.flushed_index is None else self.flushed_index,
            )
            return block + data_field(self.voted_for)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _META, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 2,
    ) -> Self:
        end = check_block("Meta", buffer, offset, block_length, 16)
        (term, flushed_index) = _META_BLOCK.unpack_from(buffer, offset)
        if flushed_index == 18446744073709551615:
            flushed_index = None
        voted_for, _ = read_data(buffer, end, "Meta.voted_for")
        return cls(term, flushed_index, voted_for)


MESSAGES: dict[int, type[Message]] = {
    1: RaftLogEntry,
    2: ApplicationEntry,
    4: ConfigurationEntry,
    6: Meta,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "aerotape.raft.entry", MESSAGES)
