"""Records of a journal, against bytes written with `struct` and the worked example of Zeebe."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.journals import raft_bytes as built

from aerotape.codecs.generated.raft_entry import EntryType
from aerotape.codecs.raft.entries import decode_entry
from aerotape.codecs.raft.record import (
    RECORD_OVERHEAD,
    PartialRecord,
    blob_of,
    check_asqn,
    check_index,
    checksum_of,
    decode_partially,
    decode_record,
    encode_record,
)
from aerotape.errors import (
    CodecError,
    CorruptJournalError,
    InvalidAsqnError,
    InvalidChecksumError,
    InvalidIndexError,
    UnknownVersionError,
)

MEMBERS = [(3, 1_700_000_000_000, b"0"), (1, 5, "é".encode())]
BLOBS = {
    "initial": (built.initial(), 66),
    "application": (built.application(5, 7, b"data"), 94 + 4),
    "configuration": (built.configuration(9, MEMBERS), 49 + 17 + 16 + 3 + 14 + 15),
}


@pytest.mark.parametrize("kind", BLOBS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_record_is_its_frame_metadata_and_data_byte_for_byte(kind: str, version: int) -> None:
    """Frame, metadata and data are contiguous, with every field at its place."""
    blob, length = BLOBS[kind]
    expected = built.record(12, 5, blob, version)
    assert len(expected) == length
    assert encode_record(12, 5, blob, version) == expected
    frame, checksum, data_length = struct.unpack_from("<B8xqi", expected)
    assert (frame, data_length) == (1, len(expected) - 21)
    assert checksum == built.crc32c(expected[21:])
    decoded = decode_record(expected)
    assert decoded is not None
    assert (decoded.index, decoded.asqn, decoded.checksum) == (12, 5, checksum)
    assert (decoded.data, decoded.version, decoded.length) == (blob, version, len(expected))
    assert blob_of(expected) == blob


def test_the_worked_example_of_zeebe() -> None:
    """The record that Zeebe 1.0.0 writes for an InitialEntry is read and written the same."""
    decoded = decode_record(built.EXAMPLE)
    assert decoded is not None
    assert (decoded.index, decoded.asqn, decoded.checksum) == (1, -1, 0x200F67F3)
    assert decode_entry(decoded.data).type is EntryType.INITIAL
    assert encode_record(1, -1, decoded.data, version=1) == built.EXAMPLE


@pytest.mark.parametrize("after", [b"", b"\0", b"\0" + built.EXAMPLE, b"\0\xff\xff"])
def test_frame_0_and_the_end_of_the_bytes_are_a_clean_end(after: bytes) -> None:
    """Records end at frame 0, whatever follows it, and at the last byte of a segment."""
    segment = built.EXAMPLE + after
    assert decode_record(segment, 66) is None
    assert decode_partially(segment, 66) is None


@pytest.mark.parametrize("frame", [2, 3, 127, 128, 255])
def test_an_unknown_version_is_refused(frame: int) -> None:
    """A frame of 2 or more is never parsed as version 1."""
    record = bytes([frame]) + built.EXAMPLE[1:]
    for decode in (decode_record, decode_partially):
        with pytest.raises(UnknownVersionError, match=f"the version is {frame}, expected 1"):
            decode(record)


def test_the_checksum_covers_the_header_of_the_data() -> None:
    """The schema version is part of the checked bytes: another version, another checksum."""
    first, second = built.record(1, 1, b"x", 1), built.record(1, 1, b"x", 2)
    assert first[9:17] != second[9:17]
    with pytest.raises(InvalidChecksumError):
        decode_record(first[:21] + second[21:])


@pytest.mark.parametrize("checksum", [-1, 1 << 32, -(1 << 63)])
def test_a_checksum_beyond_32_bits_cannot_match(checksum: int) -> None:
    """A negative checksum, or one with high bits, is damage even if its low bits match."""
    record = bytearray(built.EXAMPLE)
    low = struct.unpack_from("<I", record, 9)[0]
    struct.pack_into("<q", record, 9, low | checksum if checksum > 0 else checksum + low)
    with pytest.raises(InvalidChecksumError):
        decode_record(record)


@given(st.data())
def test_a_flipped_bit_of_checksum_length_or_data_is_found(data: st.DataObject) -> None:
    """A flipped bit in what the checksum covers, or in checksum and length, is never read."""
    record = bytearray(built.record(3, 4, built.application(4, 4, b"payload")))
    at = data.draw(st.integers(9 * 8, len(record) * 8 - 1))
    record[at // 8] ^= 1 << at % 8
    with pytest.raises((InvalidChecksumError, CorruptJournalError)):
        decode_record(record)


@pytest.mark.parametrize("length", [0, 27, 46, 1 << 20, -1, -(1 << 31)])
def test_an_impossible_length_is_refused(length: int) -> None:
    """Less than an empty data message, more than the bytes, or negative."""
    record = bytearray(built.EXAMPLE)
    struct.pack_into("<i", record, 17, length)
    with pytest.raises(CorruptJournalError, match=f"length of its data is {length}"):
        decode_record(record)


@pytest.mark.parametrize("end", [1, 8, 20, 21, 40, 65])
def test_a_record_that_is_cut_is_refused(end: int) -> None:
    """Bytes that end within a record are damage, not its end."""
    with pytest.raises(CorruptJournalError):
        decode_record(built.EXAMPLE[:end])


def with_checksum(data: bytes) -> bytes:
    """A record of a data message, with the right checksum and length."""
    return (
        b"\x01" + built.message(7, 1, 1, struct.pack("<qi", built.crc32c(data), len(data))) + data
    )


@pytest.mark.parametrize("claimed", [0, 2, 4, 0xFFFFFFFF])
def test_the_blob_fills_the_data_exactly(claimed: int) -> None:
    """The length of the data is 28 bytes more than that of the blob."""
    data = built.message(7, 2, 1, struct.pack("<Qq", 1, 1), struct.pack("<I", claimed) + b"abc")
    with pytest.raises(CorruptJournalError):
        decode_record(with_checksum(data))


@pytest.mark.parametrize("at", [1 + 2, 1 + 4, 21 + 2, 21 + 4])
def test_another_schema_or_template_is_refused(at: int) -> None:
    """Both headers must have the ids of their messages."""
    record = bytearray(built.EXAMPLE)
    record[at] += 1
    record[9:17] = struct.pack("<q", built.crc32c(bytes(record[21:])))
    with pytest.raises(CorruptJournalError, match="expected Record"):
        decode_record(record)


def test_longer_blocks_of_later_versions_are_skipped() -> None:
    """Blocks are decoded by the length in their headers."""
    data = built.message(7, 2, 9, struct.pack("<Qq", 6, 8) + b"new", built.blob(b"abc"))
    block = struct.pack("<qi", built.crc32c(data), len(data)) + b"newer"
    record = b"\x01" + built.message(7, 1, 9, block) + data
    decoded = decode_record(record)
    assert decoded is not None
    assert (decoded.index, decoded.asqn, decoded.data, decoded.version) == (6, 8, b"abc", 9)
    assert blob_of(record) == b"abc"


@given(st.binary(max_size=200), st.integers(1, (1 << 64) - 1), st.integers(-1, (1 << 63) - 1))
def test_the_journal_does_not_look_into_the_blob(blob: bytes, index: int, asqn: int) -> None:
    """Any bytes go through the codec of the journal unharmed."""
    record = encode_record(index, asqn, blob)
    assert record == built.record(index, asqn, blob, 2)
    assert len(record) == RECORD_OVERHEAD + len(blob)
    decoded = decode_record(b"??" + record + b"\1", 2)
    assert decoded is not None
    assert (decoded.index, decoded.asqn, decoded.data) == (index, asqn, blob)


def test_the_raft_codec_refuses_what_the_journal_accepts() -> None:
    """Serialization is independent in each layer."""
    decoded = decode_record(encode_record(1, -1, b"not a raft entry"))
    assert decoded is not None
    with pytest.raises(CodecError):
        decode_entry(decoded.data)


def test_partial_decoding_does_not_touch_the_application_data() -> None:
    """Type, term, index and asqn are read when all after the entry's head is garbage."""
    record = built.record(7, 5, built.application(5, 6, b"payload" * 20, term=3))
    head = RECORD_OVERHEAD + 17
    garbage = record[:head] + bytes(len(record) - head)
    assert decode_partially(garbage) == PartialRecord(EntryType.APPLICATION, 3, 7, 5)
    with pytest.raises(InvalidChecksumError):
        decode_record(garbage)
    with pytest.raises(CorruptJournalError):
        decode_partially(built.record(7, 5, b"not a raft entry"))


def test_indices_rise_by_one() -> None:
    """Another index is refused with the expected one and the found one."""
    check_index(8, 8)
    for found in (7, 9, 0):
        with pytest.raises(InvalidIndexError, match=f"index {found}: expected 8"):
            check_index(found, 8)


def test_asqns_rise_and_records_without_one_do_not_reset_them() -> None:
    """-1 is no asqn; any other must be above the last that was not -1, not equal to it."""
    last = -1
    for asqn, expected in ((-1, -1), (0, 0), (-1, 0), (5, 5), (-1, 5), (6, 6)):
        last = check_asqn(asqn, last)
        assert last == expected
    for asqn in (6, 5, 0, -2):
        with pytest.raises(InvalidAsqnError, match=f"asqn {asqn}: expected -1 or more than 6"):
            check_asqn(asqn, last)


def test_the_checksum_is_crc_32c() -> None:
    """The check value of CRC-32C, never negative."""
    assert checksum_of(b"123456789") == built.crc32c(b"123456789") == 0xE3069283
