"""The bytes of `archive.catalog`, in one place.

The file is a 32-byte header followed by entries. An entry is a 32-byte descriptor header, the
descriptor itself, and zeros up to the catalog's alignment (64 bytes unless the header says
otherwise). An archive appends entries and changes fields in place; entries move when one is removed
or inserted, or gets a longer channel than it has room for, and then a new file replaces the old
one. The end is where an entry's length is not positive. Nothing here carries an SBE message header:
the structures are the bare bodies of the messages CatalogHeader (id 20), RecordingDescriptorHeader
(21) and RecordingDescriptor (22) of `aeron-archive-codecs.xml`, all little endian.

This is apart from `aerotape.codecs` because the catalog updates single fields in a mapped file,
where a codec would decode and encode whole messages; a test holds the two to the same offsets.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping

from aerotape.frame_header import ChecksumName

CATALOG_FILE_NAME = "archive.catalog"
# A catalog that is being rewritten, before it replaces the other; what a crash leaves is ignored.
REWRITTEN_FILE_NAME = "archive.catalog.rewrite"

_JAVA_CHECKSUMS = ("io.aeron.archive.checksum.", "org.agrona.checksum.")
_CHECKSUMS: Mapping[str, ChecksumName] = {
    "none": "none",
    "crc-32": "crc-32",
    "crc32": "crc-32",
    "crc-32c": "crc-32c",
    "crc32c": "crc-32c",
}


def checksum_name(text: str) -> ChecksumName | None:
    """Return the checksum of a name, ours or a Java class's, in any case; None if unknown."""
    name = text.strip().lower()
    for package in _JAVA_CHECKSUMS:
        name = name.removeprefix(package)
    return _CHECKSUMS.get(name)


# Semantic version of the files on disk that this package reads and writes: 3.1.0.
MAJOR_VERSION = 3
SEMANTIC_VERSION = (MAJOR_VERSION << 16) | (1 << 8) | 0

MIN_CAPACITY_BYTES = 32
DEFAULT_CAPACITY_BYTES = 1 << 20
MAX_CAPACITY_BYTES = (1 << 31) - 1

# CatalogHeader: version, length, nextRecordingId, alignment, then reserved up to byte 31.
CATALOG_HEADER = struct.Struct("<iiqi")
CATALOG_HEADER_LENGTH = 32
NEXT_RECORDING_ID_OFFSET = 8
ALIGNMENT_OFFSET = 16
DEFAULT_ALIGNMENT = 64

# RecordingDescriptorHeader: length, state, checksum, then reserved up to byte 31.
DESCRIPTOR_HEADER = struct.Struct("<iii")
DESCRIPTOR_HEADER_LENGTH = 32
STATE_OFFSET = 4
CHECKSUM_OFFSET = 8

# RecordingDescriptor: the fixed block ...
DESCRIPTOR_BLOCK = struct.Struct("<qqqqqqqiiiiii")
DESCRIPTOR_BLOCK_LENGTH = 80
# ... and where its fields begin, from the start of the descriptor.
CONTROL_SESSION_ID_OFFSET = 0
CORRELATION_ID_OFFSET = 8
RECORDING_ID_OFFSET = 16
START_TIMESTAMP_OFFSET = 24
STOP_TIMESTAMP_OFFSET = 32
START_POSITION_OFFSET = 40
STOP_POSITION_OFFSET = 48
INITIAL_TERM_ID_OFFSET = 56
SEGMENT_FILE_LENGTH_OFFSET = 60
TERM_BUFFER_LENGTH_OFFSET = 64
MTU_LENGTH_OFFSET = 68
SESSION_ID_OFFSET = 72
STREAM_ID_OFFSET = 76

INT = struct.Struct("<i")
LONG = struct.Struct("<q")
# Length prefix of the variable-length strings after the block (varAsciiEncoding).
VAR_LENGTH = struct.Struct("<I")


class RecordingState(enum.IntEnum):
    """State of an entry (RecordingState). Only VALID ones are recordings to anyone outside."""

    INVALID = 0
    VALID = 1
    DELETED = 2


STATE_NAMES: dict[int, str] = {state.value: state.name for state in RecordingState}


def state_name(state: int) -> str:
    """Return the name of an entry's state; its number where it has none."""
    return STATE_NAMES.get(state) or str(state)


def version_string(version: int) -> str:
    """Format a semantic version, for example ``3.1.0``."""
    return f"{(version >> 16) & 0xFF}.{(version >> 8) & 0xFF}.{version & 0xFF}"


def align(length: int, alignment: int) -> int:
    """Round `length` up to a multiple of `alignment`, a power of two."""
    return (length + alignment - 1) & -alignment


def next_capacity(capacity_bytes: int, required_bytes: int) -> int:
    """Return the capacity a catalog grows to so that `required_bytes` fit: by half each time."""
    while capacity_bytes < required_bytes:
        capacity_bytes = min(capacity_bytes + (capacity_bytes >> 1), MAX_CAPACITY_BYTES)
    return capacity_bytes
