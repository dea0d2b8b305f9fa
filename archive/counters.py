"""The archive's Aeron counters, with the type ids, keys and labels by which clients find them.

They are the reference's (AeronCounters, ArchiveCounters, RecordingPos, ControlSessionCounter):
clients look up a recording's progress by type 100 and the recording id in the key.
"""

from __future__ import annotations

import re
import struct
import time
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from aerotape import __version__
from aerotape.archive.driver_tasks import wait_for
from aerotape.archive.waiting import run
from aerotape.cnc import KEY_LENGTH, MAX_LABEL_LENGTH
from aerotape.errors import ConfigurationError
from aerotape.units import format_duration, format_size

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Counter, PendingCounter
    from aerotape.archive.config.archive_config import ArchiveConfig

# The driver checks its clients every second, and then frees the counters of those that have left.
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
    SYNC_TIME = 1_116
    SYNCS = 1_117
    LEDGER_CONFIRMED = 1_200
    STORE_REPLICATION = 1_201
    ENTITY_REPLICATION = 1_202


_WITH_ARCHIVE_ID = frozenset(CounterType) - {
    CounterType.RECORDING_POSITION,
    CounterType.LEDGER_CONFIRMED,
    CounterType.STORE_REPLICATION,
    CounterType.ENTITY_REPLICATION,
}
# The formats of keys that begin with the recording id and end with the archive id.
_OF_A_RECORDING: Final[dict[int, str]] = {
    CounterType.LEDGER_CONFIRMED: "<q16xq",
    CounterType.ENTITY_REPLICATION: "<qq",
}
_REPLAY_ALIAS: Final = re.compile(r"[?|]alias=archive-(-?[0-9]+)-replay-([0-9]+)(?:\||$)")
LONGER: Final = (1 << 63) - 1
"""The bound of syncs that took longer than all other bounds."""
_SYNC_BOUNDS_MS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1_000)
_SYNC_BOUNDS_NS: Final = (*(round(each * 1e6) for each in _SYNC_BOUNDS_MS), LONGER)


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


def _archive_id_suffix(archive_id: int) -> str:
    return f" - archiveId={archive_id}"


def _label(start: str, text: str, archive_id: int) -> str:
    suffix = _archive_id_suffix(archive_id)
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


def ledger_confirmed_key(archive_id: int, recording_id: int, ledger_key: bytes) -> bytes:
    """Return the key: recording id, the 16 bytes of the qualified ledger id, archive id."""
    return struct.pack("<q16sq", recording_id, ledger_key, archive_id)


def ledger_confirmed_label(archive_id: int, recording_id: int, ledger_key: bytes) -> str:
    """Return the label, with the qualified name of the ledger."""
    return f"ledger-confirmed: {ledger_key.hex()} {recording_id}{_archive_id_suffix(archive_id)}"


def entity_replication_key(archive_id: int, recording_id: int) -> bytes:
    """Return the key: recording id, archive id."""
    return struct.pack("<qq", recording_id, archive_id)


def entity_replication_label(archive_id: int, recording_id: int, topic: str, partition: int) -> str:
    """Return the label: topic, partition and recording id."""
    start = f"entity-replication: {topic} {partition} {recording_id}"
    return _label(start, "", archive_id)


def _sync_label(bound_ns: int) -> str:
    took = "longer" if bound_ns == LONGER else f"up to {format_duration(bound_ns)}"
    return f"archive-recorder syncs that took {took}"


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


class CycleCounters(NamedTuple):
    """Duration of the duty cycles of one thread."""

    max_time: Counter
    exceeded_count: Counter
    threshold_ns: int

    def measured(self, cycle_ns: int) -> None:
        """Count a duty cycle of `cycle_ns`."""
        self.max_time.propose_max(cycle_ns)
        if cycle_ns > self.threshold_ns:
            self.exceeded_count.add(1)


class TrafficCounters(NamedTuple):
    """Bytes that recordings write or replays read, total time and maximum time of one block, ns."""

    max_time: Counter
    total_bytes: Counter
    total_time: Counter


class ArchiveCounters:
    """The counters of the archive itself, from its start to its end.

    Attributes:
        errors: errors so far.
        control_sessions: control sessions at present.
        recording_sessions: recordings in progress.
        replay_sessions: replays in progress.
        low_storage: 1 while there is too little storage space to begin a recording.
        retention: segment files deleted by retention, and their bytes; empty without a policy.
        conductor_cycle: duty cycles of the conductor, in SHARED mode of the worker too.
        recorder_cycle: those of the recorder; in SHARED mode the conductor's counters.
        replayer_cycle: those of the replayer; in SHARED mode the conductor's counters.
        written: traffic of recordings.
        read: traffic of replays.
        syncs: total time of syncs, ns, and their counts by how long they took, each with the bound,
            ns.
    """

    def __init__(self, client: AeronClient, archive_id: int, config: ArchiveConfig) -> None:
        """Add the counters; waits for the driver.

        Raises:
            ConfigurationError: another archive with this id uses the same driver.
            AeronError: the driver refuses, as when it has no counters left.
            AeronTimeoutError: the driver does not respond.
        """
        _check_alone(client, archive_id)
        key, suffix = struct.pack("<q", archive_id), _archive_id_suffix(archive_id)

        def ask(counter_type: CounterType, name: str, end: str = "") -> PendingCounter:
            return client.async_add_counter(counter_type, key, name + suffix + end)

        # All are requested before the first wait: the driver adds them in one duty cycle.
        mode = config.threading_mode
        low_storage = format_size(config.low_storage_space_threshold)
        single = (
            ask(CounterType.ERRORS, "Archive Errors", f" version={__version__} commit=aerotape"),
            ask(CounterType.CONTROL_SESSIONS, "Archive Control Sessions"),
            ask(CounterType.RECORDING_SESSIONS, "Archive Recording Sessions"),
            ask(CounterType.REPLAY_SESSIONS, "Archive Replay Sessions"),
            ask(CounterType.LOW_STORAGE, f"Archive Low Storage Space: threshold={low_storage}"),
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
                ask(CounterType.MAX_CYCLE_TIME, f"archive-{agent} max cycle time in ns: {mode}"),
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
        sync_time = ask(CounterType.SYNC_TIME, "archive-recorder total sync time in ns")
        syncs = [
            client.async_add_counter(
                CounterType.SYNCS, struct.pack("<qq", archive_id, each), _sync_label(each) + suffix
            )
            for each in _SYNC_BOUNDS_NS
        ]

        timeout_ms = config.driver_timeout_ms
        deadline_ns = time.monotonic_ns() + timeout_ms * 1_000_000
        late = f"the media driver has not added the archive's counters in {timeout_ms} ms"

        def added(pending: PendingCounter) -> Counter:
            return run(wait_for(pending.poll, late, deadline_ns - time.monotonic_ns()))

        (
            self.errors,
            self.control_sessions,
            self.recording_sessions,
            self.replay_sessions,
            self.low_storage,
        ) = map(added, single)
        self.retention = tuple(map(added, retention))
        by_agent = {
            agent: CycleCounters(added(max_time), added(exceeded), cycles[agent])
            for agent, (max_time, exceeded) in asked_cycles.items()
        }
        self.conductor_cycle = by_agent["conductor"]
        self.recorder_cycle = by_agent.get("recorder", self.conductor_cycle)
        self.replayer_cycle = by_agent.get("replayer", self.conductor_cycle)
        self.written = TrafficCounters(*map(added, written))
        self.read = TrafficCounters(*map(added, read))
        self.syncs = (
            added(sync_time),
            [(bound, added(each)) for bound, each in zip(_SYNC_BOUNDS_NS, syncs, strict=True)],
        )


def _check_alone(client: AeronClient, archive_id: int) -> None:
    """Refuse an archive id in use: clients find recordings by archive id and recording id."""
    deadline_s = time.monotonic() + _LEAVING_GRACE_S
    reader = client.counters()
    while any(
        struct.unpack_from("<q", row[2])[0] == archive_id
        # A Java archive in one process with its driver has no separate error counter.
        for counter_type in (CounterType.ERRORS, CounterType.RECORDER_MAX_WRITE_TIME)
        for row in reader.rows(counter_type)
    ):
        if time.monotonic() >= deadline_s:
            raise ConfigurationError(
                f"aeron.archive.id={archive_id}: an archive with this id uses the media driver in"
                f" {client.aeron_dir} already, or did until the driver's client liveness timeout"
                " expires: give each archive its own id, or wait",
                "aeron.archive.id",
            )
        time.sleep(_LEAVING_POLL_S)
