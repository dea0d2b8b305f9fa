"""The archive's Aeron counters: type ids, keys and labels by which others find them.

Same as the reference's (AeronCounters, ArchiveCounters, RecordingPos, ControlSessionCounter):
clients look up a recording's progress by type 100 and the recording id in the key.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING

from aerotape import __version__
from aerotape.archive.units import format_duration
from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Counter

MAX_KEY_LENGTH = 112
MAX_LABEL_LENGTH = 380


class CounterType(IntEnum):
    """Type ids of archive counters."""

    RECORDING_POSITION = 100
    ERRORS = 101
    CONTROL_SESSIONS = 102
    CONDUCTOR_MAX_CYCLE_TIME = 103
    CONDUCTOR_CYCLE_TIME_EXCEEDED = 104
    RECORDING_SESSIONS = 111
    REPLAY_SESSIONS = 112
    CONTROL_SESSION = 113


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


def _archive_id_suffix(archive_id: int) -> str:
    return f" - archiveId={archive_id}"


def recording_position_key(
    archive_id: int, recording_id: int, session_id: int, source_identity: str
) -> bytes:
    """Return the key: recording id, session id, source identity with its length, archive id."""
    identity = _ascii(source_identity)[: MAX_KEY_LENGTH - 16 - 8]
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
    suffix = _archive_id_suffix(archive_id)
    room = MAX_LABEL_LENGTH - len(start) - len(suffix)
    return start + _ascii(stripped_channel)[:room].decode("ascii") + suffix


def control_session_key(archive_id: int, control_session_id: int) -> bytes:
    """Return the key: archive id, control session id."""
    return struct.pack("<qq", archive_id, control_session_id)


def control_session_label(archive_id: int, client_info: str) -> str:
    """Return the label; client information that is too long loses its end."""
    suffix = _archive_id_suffix(archive_id)
    start = "control-session: "
    room = MAX_LABEL_LENGTH - len(start) - len(suffix)
    return start + _ascii(client_info)[:room].decode("ascii") + suffix


class ArchiveCounters:
    """The counters that live as long as the archive."""

    def __init__(
        self,
        client: AeronClient,
        archive_id: int,
        threading_mode: str,
        conductor_cycle_threshold_ns: int,
    ) -> None:
        """Allocate them; waits for the driver.

        Raises:
            ConfigurationError: another archive with this id uses the same driver.
        """
        _check_alone(client, archive_id)
        suffix = _archive_id_suffix(archive_id)
        key = struct.pack("<q", archive_id)

        def add(counter_type: CounterType, name: str, end: str = "") -> Counter:
            return client.add_counter(counter_type, key, name + suffix + end)

        self.errors = add(
            CounterType.ERRORS, "Archive Errors", f" version={__version__} commit=aerotape"
        )
        self.control_sessions = add(CounterType.CONTROL_SESSIONS, "Archive Control Sessions")
        self.recording_sessions = add(CounterType.RECORDING_SESSIONS, "Archive Recording Sessions")
        self.replay_sessions = add(CounterType.REPLAY_SESSIONS, "Archive Replay Sessions")
        self.max_cycle_time = add(
            CounterType.CONDUCTOR_MAX_CYCLE_TIME,
            f"archive-conductor max cycle time in ns: {threading_mode}",
        )
        self.cycle_time_exceeded = add(
            CounterType.CONDUCTOR_CYCLE_TIME_EXCEEDED,
            "archive-conductor work cycle time exceeded count: threshold="
            f"{format_duration(conductor_cycle_threshold_ns)} {threading_mode}",
        )


def _check_alone(client: AeronClient, archive_id: int) -> None:
    """Clients find recordings by archive id and recording id: no two archives may share one."""
    for row in client.counters().rows(CounterType.ERRORS):
        if struct.unpack_from("<q", row[2])[0] == archive_id:
            raise ConfigurationError(
                f"aeron.archive.id={archive_id}: an archive with this id uses the media driver in"
                f" {client.aeron_dir} already, or did until the driver's client liveness timeout"
                " runs out: give each archive an id of its own, or wait",
                "aeron.archive.id",
            )
