"""Constants of the archive control protocol besides its messages.

Error codes travel as `relevantId` of a ControlResponse with code ERROR; the protocol version as
the `version` field of AuthConnectRequest and ControlResponse, in semantic version form.
"""

from __future__ import annotations

from enum import IntEnum

NULL_VALUE = -1
NULL_POSITION = -1

# Special values for the length of a replay request.
REPLAY_ALL_AND_FOLLOW = -1
REPLAY_ALL_AND_STOP = -2


# Set in the version of a connect request by a client that knows requests for ledgers and scopes,
# which are not Aeron's, and in the response by an archive that does. A version has 24 bits: Aeron's
# own clients and archives ignore this one and never set it.
KNOWS_LEDGERS = 1 << 24


def semantic_version(major: int, minor: int, patch: int) -> int:
    """Return the 24-bit form of a version: a byte each."""
    return major << 16 | minor << 8 | patch


PROTOCOL_MAJOR_VERSION = 1
PROTOCOL_VERSION = semantic_version(PROTOCOL_MAJOR_VERSION, 12, 0)
# The first version in which an archive has an id.
VERSION_WITH_ARCHIVE_ID = semantic_version(PROTOCOL_MAJOR_VERSION, 11, 0)


class ErrorCode(IntEnum):
    """The error codes of Aeron's ArchiveException."""

    GENERIC = 0
    ACTIVE_LISTING = 1
    ACTIVE_RECORDING = 2
    ACTIVE_SUBSCRIPTION = 3
    UNKNOWN_SUBSCRIPTION = 4
    UNKNOWN_RECORDING = 5
    UNKNOWN_REPLAY = 6
    MAX_REPLAYS = 7
    MAX_RECORDINGS = 8
    INVALID_EXTENSION = 9
    AUTHENTICATION_REJECTED = 10
    STORAGE_SPACE = 11
    UNKNOWN_REPLICATION = 12
    UNAUTHORISED_ACTION = 13
    REPLICATION_CONNECTION_FAILURE = 14
    EMPTY_RECORDING = 15
    INVALID_POSITION = 16
