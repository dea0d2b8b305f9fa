"""The engine's records in application entries."""

from __future__ import annotations

import json
import random
import struct

import pytest
from support.journals import raft_bytes as built

from aerotape.codecs.raft.application import decode_records, decode_value
from aerotape.errors import CodecError

HEAD = struct.Struct("<i8xhBxqqqqi")
NEW = struct.pack("<BiQHBB3iHB", 2, 3, 4, 4, 5, 10, 8, 3, 4, 1, 1)
OLD = struct.pack("<BiQHBBB3i", 2, 3, 4, 3, 5, 10, 1, 1, 0, 0)
REASON = built.blob("wäre".encode())


def entry(block: bytes = NEW, rest: bytes = REASON, value: bytes = b"\x80") -> bytes:
    """A rejection of a command to terminate an element, with padding to a multiple of 8."""
    metadata = built.message(0, 200, 4, block, rest)
    length = HEAD.size + len(metadata) + len(value)
    head = HEAD.pack(length, 0, 0, 9, 8, -1, 5, len(metadata))
    return (head + metadata + value).ljust(-(-length // 8) * 8, b"\0")


@pytest.mark.parametrize(
    ("block", "version"),
    [(NEW, "8.3.4"), (OLD, "1.0.0"), (NEW + bytes(16), "8.3.4")],
    ids=["8.3", "1.0", "later"],
)
def test_the_metadata_of_releases(block: bytes, version: str) -> None:
    """Later releases append fields to the block, and data after the reason."""
    for rest in (REASON, REASON + built.blob(b"token")):
        first, second = decode_records(entry(block, rest) * 2)
        assert first == second
        assert (first.position, first.source_position, first.key) == (9, 8, None)
        assert (first.record_type, first.value_type) == ("COMMAND_REJECTION", "PROCESS_INSTANCE")
        assert (first.intent, first.rejection_type) == ("TERMINATE_ELEMENT", "NOT_FOUND")
        assert (first.rejection_reason, first.broker_version) == ("wäre", version)
        assert (first.request_id, first.request_stream_id) == (4, 3)
        assert first.value == b"\x80" and not first.processed


def test_types_without_a_name_are_numbers() -> None:
    """Those of later releases."""
    block = struct.pack("<BiQHBB3iHB", 7, 3, 4, 4, 5, 99, 8, 3, 4, 1, 77)
    (record,) = decode_records(entry(block))
    assert (record.record_type, record.intent, record.rejection_type) == ("7", "99", "77")
    block = struct.pack("<BiQHBB3iHB", 7, 3, 4, 4, 88, 1, 8, 3, 4, 1, 77)
    (record,) = decode_records(entry(block))
    assert (record.value_type, record.intent) == ("88", "1")


def test_other_bytes_are_refused() -> None:
    """Cut, changed and random bytes are a CodecError or records, never another error."""
    assert decode_records(b"") == []
    whole = entry()
    for end in range(1, len(whole) - 7):
        with pytest.raises(CodecError):
            decode_records(whole[:end])
    for seed in range(3000):
        rng = random.Random(seed)
        data = bytearray(whole * 2)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        try:
            records = decode_records(bytes(data))
        except CodecError:
            continue
        assert 1 <= len(records) <= 4
    with pytest.raises(CodecError, match="metadata of schema 8 and template 1"):
        decode_records(whole.replace(struct.pack("<HH", 200, 0), struct.pack("<HH", 1, 8), 1))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x82\xa1a\x01\xa1b\xc4\x01\x80", {"a": 1, "b": {}}),
        (b"\x81\xa1a\xc4\x02\x80\x80", {"a": "8080"}),
        (b"\x81\xa1a\xc4\x02<b", {"a": "3c62"}),
        (b"\x81\x05\x93\xc0\xc3\xcb\x3f\xf8" + bytes(6), {"5": [None, True, 1.5]}),
        (b"\x91\x81\xa1v\xc4\x04\x81\xa1x\x02", [{"v": {"x": 2}}]),
        (b"", ""),
        (b"\xc1", "c1"),
        (b"\x80\x80", "8080"),
        (b"\xd4\x05\x01", "d40501"),
        (b"\x81\x90\x01", "819001"),
        (b"\x91" * 5000 + b"\x01", "91" * 5000 + "01"),
        (b"\x91" * 300 + b"\x01", "91" * 300 + "01"),
    ],
)
def test_values(value: bytes, expected: object) -> None:
    """As JSON, or in hexadecimal if they are not a value of JSON in MessagePack."""
    assert decode_value(value) == expected


def test_any_value_can_be_printed() -> None:
    """Random bytes, and variables in variables."""
    for seed in range(3000):
        rng = random.Random(seed)
        likely = (0x81, 0xA1, 0x91, 0xC4, 1, 97)
        value = bytes(rng.choice((*likely, rng.randrange(256))) for _ in range(20))
        json.dumps(decode_value(value))
    nested = b"\x80"
    for _ in range(200):
        nested = b"\x81\xa1v\xc6" + struct.pack(">I", len(nested)) + nested
    assert decode_value(nested) == nested.hex()
