"""Type ids, keys and labels of an archive's counters, by which clients find them.

They are the reference's (AeronCounters, ArchiveCounters, RecordingPos, ControlSessionCounter):
clients look up a recording's progress by type 100 and the recording id in the key.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from typing import Final

from aerotape.cnc import KEY_LENGTH, MAX_LABEL_LENGTH


class CounterType(IntEnum):
    """Type ids of archive counters."""

    RECORDING_POSITION = 100
    ERRORS = 101
    CONTROL_SESSIONS = 102
    MAX_CYCLE_TIME = 103
    CYCLE_TIME_EXCEEDED = 104
    RECORDER_MAX_WRITE_TIME = 105
    RECORDER_TOTAL_WRITE_BYTES = 106
    RECORDER_TOTAL_WRITE_TIME = 107
    REPLAYER_MAX_READ_TIME = 108
    REPLAYER_TOTAL_READ_BYTES = 109
    REPLAYER_TOTAL_READ_TIME = 110
    RECORDING_SESSIONS = 111
    REPLAY_SESSIONS = 112
    CONTROL_SESSION = 113
    # Ours: the reference has no such counters. Aeron leaves type ids from 1000 on to others.
    LOW_STORAGE = 1_113
    RETENTION_SEGMENTS = 1_114
    RETENTION_BYTES = 1_115
    SYNC_TIME = 1_116
    SYNCS = 1_117
    CONFIRMED_POSITION = 1_200
    STORE_REPLICATION = 1_201
    ENTITY_REPLICATION = 1_202


_WITH_ARCHIVE_ID = frozenset(CounterType) - {
    CounterType.RECORDING_POSITION,
    CounterType.CONFIRMED_POSITION,
    CounterType.STORE_REPLICATION,
    CounterType.ENTITY_REPLICATION,
}
# The formats of keys that begin with the recording id and end with the archive id.
_OF_A_RECORDING: Final[dict[int, str]] = {
    CounterType.CONFIRMED_POSITION: "<q16xq",
    CounterType.ENTITY_REPLICATION: "<qq",
}
_REPLAY_ALIAS: Final = re.compile(r"[?|]alias=archive-(-?[0-9]+)-replay-([0-9]+)(?:\||$)")
LONGER: Final = (1 << 63) - 1
"""The bound of syncs that took longer than all other bounds."""


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


def archive_id_suffix(archive_id: int) -> str:
    """Return the end of the label of each counter of an archive."""
    return f" - archiveId={archive_id}"


def _label(start: str, text: str, archive_id: int) -> str:
    suffix = archive_id_suffix(archive_id)
    room = MAX_LABEL_LENGTH - len(start) - len(suffix)
    return start + _ascii(text)[:room].decode("ascii") + suffix


def recording_position_key(
    archive_id: int, recording_id: int, session_id: int, source_identity: str
) -> bytes:
    """Return the key: recording id, session id, source identity with its length, archive id."""
    identity = _ascii(source_identity)[: KEY_LENGTH - 16 - 8]
    return (
        struct.pack("<qii", recording_id, session_id, len(identity))
        + identity
        + struct.pack("<q", archive_id)
    )


def recording_position_label(
    archive_id: int, recording_id: int, session_id: int, stream_id: int, stripped_channel: str
) -> str:
    """Return the label; a channel that is too long loses its end."""
    start = f"rec-pos: {recording_id} {session_id} {stream_id} "
    return _label(start, stripped_channel, archive_id)


def confirmed_position_key(archive_id: int, recording_id: int, key: bytes) -> bytes:
    """Return the key: recording id, the 16 bytes of `Durability.key`, archive id."""
    return struct.pack("<q16sq", recording_id, key, archive_id)


def confirmed_position_label(archive_id: int, recording_id: int, key: bytes) -> str:
    """Return the label, with the same key in hexadecimal."""
    return f"confirmed-pos: {key.hex()} {recording_id}{archive_id_suffix(archive_id)}"


def entity_replication_key(archive_id: int, recording_id: int) -> bytes:
    """Return the key: recording id, archive id."""
    return struct.pack("<qq", recording_id, archive_id)


def entity_replication_label(archive_id: int, recording_id: int, topic: str, partition: int) -> str:
    """Return the label: topic, partition and recording id."""
    start = f"entity-replication: {topic} {partition} {recording_id}"
    return _label(start, "", archive_id)


def replay_alias(archive_id: int, recording_id: int) -> str:
    """Return the alias of a replay's channel, by which its publication's counters are found."""
    return f"archive-{archive_id}-replay-{recording_id}"


def replayed_recording(label: str, archive_id: int) -> int | None:
    """Return the recording that a publication of an archive replays, by its counter's label."""
    found = _REPLAY_ALIAS.search(label)
    return int(found[2]) if found and int(found[1]) == archive_id else None


def control_session_key(archive_id: int, control_session_id: int) -> bytes:
    """Return the key: archive id, control session id."""
    return struct.pack("<qq", archive_id, control_session_id)


def control_session_label(archive_id: int, client_info: str) -> str:
    """Return the label; client information that is too long loses its end."""
    return _label("control-session: ", client_info, archive_id)


def key_fields(type_id: int, key: bytes) -> dict[str, int]:
    """Return the fields of an archive's counter key; nothing for counters of others."""
    if type_id == CounterType.RECORDING_POSITION:
        recording_id, session_id, length = struct.unpack_from("<qii", key)
        found = {"recording_id": recording_id, "session_id": session_id}
        if 0 <= length <= len(key) - 24:
            (found["archive_id"],) = struct.unpack_from("<q", key, 16 + length)
        return found
    if type_id in _OF_A_RECORDING:
        recording_id, archive_id = struct.unpack_from(_OF_A_RECORDING[type_id], key)
        return {"recording_id": recording_id, "archive_id": archive_id}
    if type_id not in _WITH_ARCHIVE_ID:
        return {}
    archive_id, second = struct.unpack_from("<qq", key)
    found = {"archive_id": archive_id}
    if type_id == CounterType.CONTROL_SESSION:
        found["control_session_id"] = second
    if type_id == CounterType.SYNCS:
        found["bound_ns"] = second
    return found
