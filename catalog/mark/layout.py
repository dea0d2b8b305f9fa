"""The bytes of a mark file's header: MarkFileHeader of `aeron-archive-mark-codecs.xml`.

A block of 128 bytes after the 8-byte SBE message header, then four ASCII strings, each after its
length as uint32. Separate from `aerotape.codecs` because version and activity timestamp are stored
singly into the mapped file; a test compares the bytes of both.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from aerotape.errors import MarkFileError
from aerotape.units import MAX_LONG

FILE_NAME = "archive-mark.dat"
LINK_FILE_NAME = "archive-mark.lnk"
LOCK_FILE_NAME = "aerotape-archive.lock"
"""Locked by an archive of this package from before it starts a driver; holds its process id."""

HEADER_LENGTH = 8 * 1024
"""Bytes before the error log."""
MESSAGE_HEADER = struct.Struct("<HHHH")
BLOCK_LENGTH = 128
TEMPLATE_ID = 200
SCHEMA_ID = 100
SCHEMA_VERSION = 2

# Where the two fields that change while an archive runs begin in the file.
VERSION = MESSAGE_HEADER.size
ACTIVITY_TIMESTAMP = MESSAGE_HEADER.size + 8

NULL_TIMESTAMP_MS = -1
"""Activity timestamp of an archive that has stopped cleanly."""
CLAIMED_TIMESTAMP_MS = MAX_LONG
"""Activity timestamp while a Java archive takes over a stale file (Agrona's MarkFile)."""

# version, (4 bytes unused), activityTimestamp, startTimestamp, pid, controlStreamId,
# localControlStreamId, eventsStreamId, headerLength, errorBufferLength, (gap), archiveId at 56.
_BLOCK = struct.Struct("<i4xqqqiiiii4xq")
# The same to the pid, as in files of every major version.
BLOCK_BEGIN = struct.Struct("<i4xqqq")
_VAR_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFileHeader:
    """Fields of MarkFileHeader; timestamps are epoch milliseconds.

    `archive_id` is -1 in files of archives older than 1.47; a channel that is disabled is "". The
    defaults are those of a file that an archive is about to write.
    """

    version: int = 0
    activity_timestamp_ms: int = 0
    start_timestamp_ms: int = 0
    pid: int = 0
    control_stream_id: int
    local_control_stream_id: int
    events_stream_id: int
    header_length: int = HEADER_LENGTH
    error_buffer_length: int = 1 << 20
    archive_id: int
    control_channel: str
    local_control_channel: str
    events_channel: str
    aeron_directory: str

    def encode(self) -> bytes:
        """Encode with the message header.

        Raises:
            MarkFileError: the channels and the directory's name do not fit, or are not ASCII.
        """
        try:
            values = [getattr(self, name) for name in self.__slots__]
            strings = [text.encode("ascii") for text in values[-4:]]
            block = _BLOCK.pack(*values[:-4])
        except (UnicodeEncodeError, struct.error) as error:
            raise MarkFileError(f"the mark file cannot hold these settings: {error}") from error
        encoded = (
            MESSAGE_HEADER.pack(BLOCK_LENGTH, TEMPLATE_ID, SCHEMA_ID, SCHEMA_VERSION)
            + block.ljust(BLOCK_LENGTH, b"\0")
            + b"".join(_VAR_LENGTH.pack(len(text)) + text for text in strings)
        )
        if len(encoded) > HEADER_LENGTH:
            raise MarkFileError(
                f"channels and Aeron directory need {len(encoded)} bytes of mark file header; "
                f"there are {HEADER_LENGTH}"
            )
        return encoded

    @classmethod
    def decode(cls, data: bytes) -> MarkFileHeader | None:
        """Decode from the start of a mark file; None when that is not such a header.

        Files of archives before 1.47 begin with the block itself and have no archive id. Strings
        that a power cut has torn are empty, with those after them.
        """
        if len(data) < MESSAGE_HEADER.size + BLOCK_LENGTH:
            return None
        block_length, template_id, schema_id, version = MESSAGE_HEADER.unpack_from(data)
        begin = MESSAGE_HEADER.size
        is_named = (template_id, schema_id) == (TEMPLATE_ID, SCHEMA_ID)
        if not is_named:
            begin, block_length, version = 0, BLOCK_LENGTH, 1
            if data[2] != 3 or data[3] != 0:
                return None  # not even the major version of files that can be read
        fields = _BLOCK.unpack_from(data, begin)
        strings: list[str] = []
        offset = begin + block_length
        while len(strings) < 4:
            length = HEADER_LENGTH + 1
            if offset + _VAR_LENGTH.size <= len(data):
                (length,) = _VAR_LENGTH.unpack_from(data, offset)
            offset += _VAR_LENGTH.size
            if length <= HEADER_LENGTH:
                strings.append(data[offset : offset + length].decode("ascii", "replace"))
                offset += length
            elif is_named:
                strings += [""] * (4 - len(strings))
            else:
                return None
        found = dict(zip(cls.__slots__, (*fields, *strings), strict=True))
        if version < 1:
            found |= {"header_length": 0, "error_buffer_length": 0}
        if version < 2:
            found["archive_id"] = -1
        return cls(**found)


def is_unfinished(data: bytes) -> bool:
    """Whether a file is a mark file whose header was not completely written.

    The SBE message header and the version, its first fields, are stored last: if the process was
    killed before, or after a power cut, they are zero.
    """
    return len(data) >= HEADER_LENGTH and not any(data[:ACTIVITY_TIMESTAMP])
