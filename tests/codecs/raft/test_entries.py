"""Raft entries, against bytes written with `struct`."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.journals import raft_bytes as built

from aerotape.codecs.generated.raft_entry import MemberType
from aerotape.codecs.raft.entries import (
    ApplicationEntry,
    ConfigurationEntry,
    InitialEntry,
    Member,
    RaftEntry,
    converted_entry,
    decode_entry,
    encode_entry,
)
from aerotape.errors import CodecError

MEMBERS = (Member("0", MemberType.ACTIVE, 1_700_000_000_000), Member("é", MemberType.PASSIVE, -5))
ROWS = [(3, 1_700_000_000_000, b"0"), (1, -5, "é".encode())]
ENTRIES: list[tuple[RaftEntry, int, bytes]] = [
    (InitialEntry(7), 1, built.initial(7)),
    (InitialEntry(7), 2, built.initial(7, 2)),
    (ApplicationEntry(2, 5, 9, b"data"), 1, built.application(5, 9, b"data", 2)),
    (ApplicationEntry(2, 5, 5), 2, built.application(5, 5, b"", 2, 2)),
    (ConfigurationEntry(3, 11, MEMBERS, None), 1, built.configuration(11, ROWS, term=3)),
    (
        ConfigurationEntry(3, 11, MEMBERS, MEMBERS[:1]),
        2,
        built.configuration(11, ROWS, ROWS[:1], term=3, version=2),
    ),
    (ConfigurationEntry(3, 11, (), ()), 2, built.configuration(11, [], [], term=3, version=2)),
]


@pytest.mark.parametrize(("entry", "version", "expected"), ENTRIES)
def test_entries_byte_for_byte(entry: RaftEntry, version: int, expected: bytes) -> None:
    """Each type of entry has its fields in order, as a complete message after the head."""
    assert encode_entry(entry, version).hex() == expected.hex()
    assert decode_entry(expected) == entry


def test_lengths_of_entries() -> None:
    """An initial entry has 17 bytes, an application entry 45 and its data."""
    assert len(encode_entry(InitialEntry(1))) == 17
    assert len(encode_entry(ApplicationEntry(1, 1, 2, b"12345"))) == 45 + 5


@pytest.mark.parametrize("kind", [3, 4, 127, 255])
def test_other_types_are_refused(kind: int) -> None:
    """Types other than 0, 1 and 2, also SBE's null, are errors."""
    with pytest.raises(CodecError, match=f"{kind} is not a valid EntryType"):
        decode_entry(built.message(8, 1, 1, struct.pack("<QB", 1, kind)))


def test_types_of_members() -> None:
    """0 to 3 are known; another type, or an id that is not UTF-8, is an error."""
    rows = [(number, 0, b"m") for number in range(4)]
    entry = decode_entry(built.configuration(1, rows))
    assert isinstance(entry, ConfigurationEntry)
    names = [each.type.name for each in entry.members]
    assert names == ["INACTIVE", "PASSIVE", "PROMOTABLE", "ACTIVE"]
    for row in ((4, 0, b"m"), (3, 0, b"\xff")):
        with pytest.raises(CodecError, match="a member is not valid"):
            decode_entry(built.configuration(1, [row]))


def test_the_writer_refuses_a_highest_asqn_below_the_lowest() -> None:
    """A batch holds at least one position."""
    assert encode_entry(ApplicationEntry(1, 5, 5))
    with pytest.raises(CodecError, match="highest asqn 4 is below the lowest 5"):
        encode_entry(ApplicationEntry(1, 5, 4))


def test_groups_have_at_most_254_members() -> None:
    """The number of members is one byte, whose null is 255."""
    members = tuple(Member(str(each), MemberType.ACTIVE, 0) for each in range(255))
    entry = ConfigurationEntry(1, 0, members[:254], ())
    assert decode_entry(encode_entry(entry)) == entry
    with pytest.raises(CodecError, match="255 members, at most 254"):
        encode_entry(ConfigurationEntry(1, 0, members, ()))


def test_version_1_has_no_old_members() -> None:
    """They are None when read, and are not dropped silently when written."""
    entry = decode_entry(built.configuration(1, ROWS))
    assert isinstance(entry, ConfigurationEntry)
    assert entry.old_members is None
    with pytest.raises(CodecError, match="has no old members"):
        encode_entry(ConfigurationEntry(1, 0, MEMBERS, MEMBERS), 1)


def test_blocks_of_later_versions_are_skipped() -> None:
    """Each block, also of a member, is decoded by the length that the message gives."""
    member = struct.pack("<Bq", 3, 4) + b"later" + built.blob(b"m")
    group = struct.pack("<HB", 14, 1) + member
    body = built.message(8, 4, 3, struct.pack("<Q", 6) + b"more", group + group + b"newer")
    head = built.message(8, 1, 3, struct.pack("<QB", 2, 1) + b"extra")
    members = (Member("m", MemberType.ACTIVE, 4),)
    assert decode_entry(head + body) == ConfigurationEntry(2, 6, members, members)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\0" * 17,
        built.initial()[:16],
        built.message(7, 1, 1, struct.pack("<QB", 1, 2)),
        built.message(8, 1, 1, struct.pack("<Q", 1)),
        built.application(1, 1, b"abc")[:-1],
        built.initial()[:16] + b"\0" + built.application(1, 1)[17:41],
        built.configuration(1, ROWS)[:-1],
        # An application entry announced, a configuration entry given.
        built.application(1, 1)[:17] + built.configuration(1, ROWS)[17:],
    ],
)
def test_bytes_that_are_not_an_entry_are_refused(blob: bytes) -> None:
    """Bytes of another schema or template, or that are cut."""
    with pytest.raises(CodecError):
        decode_entry(blob)


@pytest.mark.parametrize(("entry", "version", "encoded"), ENTRIES)
def test_conversion_to_another_version(entry: RaftEntry, version: int, encoded: bytes) -> None:
    """An entry is the same in another version, except for old members that it cannot hold."""
    if isinstance(entry, ConfigurationEntry) and entry.old_members:
        with pytest.raises(CodecError, match="has no old members"):
            converted_entry(encoded, 1)
        return
    other = 3 - version
    converted = converted_entry(encoded, other)
    assert converted == encode_entry(entry, other)
    # From version 1 to 2 and back, nothing is lost.
    assert converted_entry(converted, version) == encoded


@given(st.binary(max_size=60))
def test_conversion_leaves_other_bytes_alone(blob: bytes) -> None:
    """What is not a raft entry, or has bytes after it, is not changed."""
    assert converted_entry(blob, 2) == blob
    trailing = built.initial() + b"?"
    assert converted_entry(trailing, 2) == trailing
