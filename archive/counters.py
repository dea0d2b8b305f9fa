"""The counters of the archive itself, by which it can be observed while it runs."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from aerotape import __version__
from aerotape.counter_keys import LONGER, CounterType, archive_id_suffix
from aerotape.driver_tasks import wait_for
from aerotape.errors import ConfigurationError
from aerotape.units import format_duration, format_size
from aerotape.waiting import run

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Counter, PendingCounter
    from aerotape.archive.config.archive_config import ArchiveConfig

# The driver checks its clients every second, and then frees the counters of those that have left.
_LEAVING_GRACE_S = 2.0
_LEAVING_POLL_S = 0.02
_SYNC_BOUNDS_MS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1_000)
_SYNC_BOUNDS_NS: Final = (*(round(each * 1e6) for each in _SYNC_BOUNDS_MS), LONGER)


def _sync_label(bound_ns: int) -> str:
    took = "longer" if bound_ns == LONGER else f"up to {format_duration(bound_ns)}"
    return f"archive-recorder syncs that took {took}"


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
        key, suffix = struct.pack("<q", archive_id), archive_id_suffix(archive_id)

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
