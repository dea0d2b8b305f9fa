"""The archive's Aeron counters: type ids, keys and labels by which others find them.

Same as the reference's (AeronCounters, ArchiveCounters, RecordingPos, ControlSessionCounter):
clients look up a recording's progress by type 100 and the recording id in the key.
"""

from __future__ import annotations

import struct
import time
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from aerotape import __version__
from aerotape.errors import AeronTimeoutError, ConfigurationError
from aerotape.units import format_duration, format_size

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Counter, PendingCounter
    from aerotape.archive.config.archive_config import ArchiveConfig

MAX_KEY_LENGTH = 112
MAX_LABEL_LENGTH = 380

# The driver frees the counters of a client that has left when it next looks after its clients,
# which it does each second.
_LEAVING_GRACE_S = 2.0
_LEAVING_POLL_S = 0.02


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


class CycleCounters(NamedTuple):
    """How long the turns of one thread take."""

    max_time: Counter
    exceeded_count: Counter
    threshold_ns: int

    def measured(self, cycle_ns: int) -> None:
        """Count a turn of `cycle_ns`."""
        self.max_time.propose_max(cycle_ns)
        if cycle_ns > self.threshold_ns:
            self.exceeded_count.add(1)


class TrafficCounters(NamedTuple):
    """What recordings write or replays read: bytes and nanoseconds, the longest for one block."""

    max_time: Counter
    total_bytes: Counter
    total_time: Counter


class ArchiveCounters:
    """The counters that live as long as the archive.

    Attributes:
        errors: how many errors there were.
        control_sessions: how many there are.
        recording_sessions: recordings in progress.
        replay_sessions: replays in progress.
        low_storage: 1 while there is too little storage space to begin a recording.
        retention: segment files deleted by retention, and the bytes that they took; empty without
            a policy.
        conductor_cycle: turns of the conductor, in SHARED mode of the worker too.
        recorder_cycle: turns of the recorder; in SHARED mode the conductor's counters.
        replayer_cycle: turns of the replayer, likewise.
        written: what recordings write.
        read: what replays read.
    """

    def __init__(self, client: AeronClient, archive_id: int, config: ArchiveConfig) -> None:
        """Allocate them; waits for the driver.

        Raises:
            ConfigurationError: another archive with this id uses the same driver.
            AeronError: the driver refuses, as when it has no counters left.
            AeronTimeoutError: the driver does not answer.
        """
        _check_alone(client, archive_id)
        ask = _Request(client, archive_id)
        mode = config.threading_mode
        version = f" version={__version__} commit=aerotape"
        errors = ask(CounterType.ERRORS, "Archive Errors", version)
        control_sessions = ask(CounterType.CONTROL_SESSIONS, "Archive Control Sessions")
        recording_sessions = ask(CounterType.RECORDING_SESSIONS, "Archive Recording Sessions")
        replay_sessions = ask(CounterType.REPLAY_SESSIONS, "Archive Replay Sessions")
        low_storage = ask(
            CounterType.LOW_STORAGE,
            "Archive Low Storage Space: threshold="
            f"{format_size(config.low_storage_space_threshold)}",
        )
        retention: tuple[PendingCounter, ...] = ()
        if config.retention_file is not None:
            retention = (
                ask(CounterType.RETENTION_SEGMENTS, "Archive Retention Deleted Segments"),
                ask(CounterType.RETENTION_BYTES, "Archive Retention Deleted Bytes"),
            )
        cycles = {"conductor": config.conductor_cycle_threshold_ns}
        if mode == "DEDICATED":
            cycles["recorder"] = config.recorder_cycle_threshold_ns
            cycles["replayer"] = config.replayer_cycle_threshold_ns
        asked_cycles = {
            agent: (
                ask(
                    CounterType.MAX_CYCLE_TIME,
                    f"archive-{agent} max cycle time in ns: {mode}",
                ),
                ask(
                    CounterType.CYCLE_TIME_EXCEEDED,
                    f"archive-{agent} work cycle time exceeded count: threshold="
                    f"{format_duration(threshold_ns)} {mode}",
                ),
            )
            for agent, threshold_ns in cycles.items()
        }
        written = (
            ask(CounterType.RECORDER_MAX_WRITE_TIME, "archive-recorder max write time in ns"),
            ask(CounterType.RECORDER_TOTAL_WRITE_BYTES, "archive-recorder total write bytes"),
            ask(CounterType.RECORDER_TOTAL_WRITE_TIME, "archive-recorder total write time in ns"),
        )
        read = (
            ask(CounterType.REPLAYER_MAX_READ_TIME, "archive-replayer max read time in ns"),
            ask(CounterType.REPLAYER_TOTAL_READ_BYTES, "archive-replayer total read bytes"),
            ask(CounterType.REPLAYER_TOTAL_READ_TIME, "archive-replayer total read time in ns"),
        )

        # All are asked for before the first is waited for: the driver answers them in one turn.
        answer = _Answer(config.driver_timeout_ms)
        self.errors = answer(errors)
        self.control_sessions = answer(control_sessions)
        self.recording_sessions = answer(recording_sessions)
        self.replay_sessions = answer(replay_sessions)
        self.low_storage = answer(low_storage)
        self.retention = tuple(map(answer, retention))
        made = {
            agent: CycleCounters(answer(max_time), answer(exceeded), cycles[agent])
            for agent, (max_time, exceeded) in asked_cycles.items()
        }
        self.conductor_cycle = made["conductor"]
        self.recorder_cycle = made.get("recorder", self.conductor_cycle)
        self.replayer_cycle = made.get("replayer", self.conductor_cycle)
        self.written = TrafficCounters(*map(answer, written))
        self.read = TrafficCounters(*map(answer, read))


class _Request:
    """Asks the driver for counters whose key is the archive id."""

    def __init__(self, client: AeronClient, archive_id: int) -> None:
        self._client = client
        self._key = struct.pack("<q", archive_id)
        self._suffix = _archive_id_suffix(archive_id)

    def __call__(self, counter_type: CounterType, name: str, end: str = "") -> PendingCounter:
        return self._client.async_add_counter(counter_type, self._key, name + self._suffix + end)


class _Answer:
    """Waits for the driver's answers, all within one timeout."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._deadline_s = time.monotonic() + timeout_ms / 1_000

    def __call__(self, pending: PendingCounter) -> Counter:
        while (counter := pending.poll()) is None:
            if time.monotonic() >= self._deadline_s:
                raise AeronTimeoutError(
                    f"the media driver has not added the archive's counters in"
                    f" {self._timeout_ms} ms"
                )
            time.sleep(0.0002)
        return counter


def _check_alone(client: AeronClient, archive_id: int) -> None:
    """Clients find recordings by archive id and recording id: no two archives may share one."""
    deadline_s = time.monotonic() + _LEAVING_GRACE_S
    reader = client.counters()
    while any(
        struct.unpack_from("<q", row[2])[0] == archive_id
        # A Java archive in one process with its driver has no counter of errors of its own.
        for counter_type in (CounterType.ERRORS, CounterType.RECORDER_MAX_WRITE_TIME)
        for row in reader.rows(counter_type)
    ):
        if time.monotonic() >= deadline_s:
            raise ConfigurationError(
                f"aeron.archive.id={archive_id}: an archive with this id uses the media driver in"
                f" {client.aeron_dir} already, or did until the driver's client liveness timeout"
                " runs out: give each archive an id of its own, or wait",
                "aeron.archive.id",
            )
        time.sleep(_LEAVING_POLL_S)
