"""The metrics: names, types, labels, units and meanings.

Names and units follow Prometheus' conventions: seconds, bytes, `_total` for counters. The table in
docs/metrics.md is what `python -m aerotape.tools._web.metrics.families` prints.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from aerotape.counter_keys import CounterType


class Family(NamedTuple):
    """A metric.

    Attributes:
        name: without the `_total` of a counter.
        kind: Prometheus' type.
        help: the meaning, with the unit.
        labels: the names of its labels.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()

    @property
    def shown_name(self) -> str:
        """The name in the exposition."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


_RECORDING: Final = ("recording_id", "stream_id", "channel")

UP: Final = Family(
    "aerotape_archive_up", "gauge", "1 if the archive gave a sign of life within 10 s, else 0"
)
INFO: Final = Family(
    "aerotape_archive_info",
    "gauge",
    "1, with the archive's id, process id, control channel and the version of its mark file",
    ("archive_id", "pid", "control_channel", "version"),
)
STARTED: Final = Family(
    "aerotape_archive_start_time_seconds", "gauge", "when the archive started, Unix time"
)
DRIVER_UP: Final = Family(
    "aerotape_driver_up", "gauge", "1 if the media driver gave a sign of life within 10 s, else 0"
)
RECORDINGS: Final = Family("aerotape_recordings", "gauge", "valid recordings in the catalog")
LIVE: Final = Family("aerotape_recordings_live", "gauge", "recordings in progress")
SUSPECT: Final = Family(
    "aerotape_recordings_suspect",
    "gauge",
    "recordings that are marked as suspect after damage that was not accepted",
)
VERIFIED: Final = Family(
    "aerotape_verification_time_seconds",
    "gauge",
    "when the verification of `aerotape web --verification` ended, Unix time",
)
FAILED: Final = Family(
    "aerotape_verification_failed_recordings",
    "gauge",
    "recordings in which that verification found problems",
)
POSITION: Final = Family(
    "aerotape_recording_position_bytes",
    "gauge",
    "recorded position: of a recording in progress that of its counter, else its stop position",
    _RECORDING,
)
START: Final = Family(
    "aerotape_recording_start_position_bytes", "gauge", "start position", _RECORDING
)
OMITTED: Final = Family(
    "aerotape_recording_series_omitted",
    "gauge",
    "recordings without series of their own, because there are more than the limit",
)
UNCONFIRMED: Final = Family(
    "aerotape_ledger_unconfirmed_bytes",
    "gauge",
    "bytes of a ledger in progress that are recorded and not confirmed yet",
    ("recording_id",),
)
ERROR_LOG: Final = Family(
    "aerotape_error_observations",
    "counter",
    "observations of each distinct error in the error log of the archive or its media driver, "
    "by the kind of error",
    ("source", "error"),
)
FREE: Final = Family(
    "aerotape_storage_free_bytes", "gauge", "free space of the archive directory's file system"
)
SIZE: Final = Family(
    "aerotape_storage_size_bytes", "gauge", "size of the archive directory's file system"
)
PROBLEMS: Final = Family(
    "aerotape_unreadable_files",
    "gauge",
    "files of the archive that this scrape could not read; /readyz and `aerotape metrics` say why",
)

REPLAY_LAG: Final = Family(
    "aerotape_replay_lag_bytes",
    "gauge",
    "bytes from where a replay in progress is to the end of its recording; replications and mirrors"
    " are replays of the archive that they copy from; not of the Java archive",
    ("recording_id", "session_id", "stream_id"),
)
ENTITY_LAG: Final = Family(
    "aerotape_entity_replication_lag_bytes",
    "gauge",
    "bytes of a topic's recording that the slowest replicator on the archive's media driver has not"
    " stored yet",
    ("topic", "partition", "recording_id"),
)
SYNC: Final = Family(
    "aerotape_recorder_sync_seconds",
    "histogram",
    "time of each sync of recordings to storage; not of the Java archive, whose syncs are in the"
    " write time",
)

Scale = Literal["count", "ns"]
COUNTERS: Final[dict[CounterType, tuple[Family, Scale]]] = {
    CounterType.ERRORS: (
        Family("aerotape_archive_errors", "counter", "errors since the archive's start"),
        "count",
    ),
    CounterType.CONTROL_SESSIONS: (
        Family("aerotape_control_sessions", "gauge", "connected control sessions"),
        "count",
    ),
    CounterType.RECORDING_SESSIONS: (
        Family("aerotape_recording_sessions", "gauge", "sessions that record"),
        "count",
    ),
    CounterType.REPLAY_SESSIONS: (
        Family("aerotape_replay_sessions", "gauge", "replays in progress"),
        "count",
    ),
    CounterType.RECORDER_MAX_WRITE_TIME: (
        Family("aerotape_recorder_max_write_seconds", "gauge", "longest write of one block"),
        "ns",
    ),
    CounterType.RECORDER_TOTAL_WRITE_BYTES: (
        Family("aerotape_recorder_written_bytes", "counter", "bytes written by recordings"),
        "count",
    ),
    CounterType.RECORDER_TOTAL_WRITE_TIME: (
        Family("aerotape_recorder_write_seconds", "counter", "time in writes of recordings"),
        "ns",
    ),
    CounterType.REPLAYER_MAX_READ_TIME: (
        Family("aerotape_replayer_max_read_seconds", "gauge", "longest read of one block"),
        "ns",
    ),
    CounterType.REPLAYER_TOTAL_READ_BYTES: (
        Family("aerotape_replayer_read_bytes", "counter", "bytes read by replays"),
        "count",
    ),
    CounterType.REPLAYER_TOTAL_READ_TIME: (
        Family("aerotape_replayer_read_seconds", "counter", "time in reads of replays"),
        "ns",
    ),
    CounterType.LOW_STORAGE: (
        Family(
            "aerotape_storage_low",
            "gauge",
            "1 while there is too little space to begin a recording; not of the Java archive",
        ),
        "count",
    ),
    CounterType.RETENTION_SEGMENTS: (
        Family(
            "aerotape_retention_deleted_segment_files",
            "counter",
            "segment files that retention has deleted since the archive's start",
        ),
        "count",
    ),
    CounterType.RETENTION_BYTES: (
        Family(
            "aerotape_retention_deleted_bytes",
            "counter",
            "bytes that retention has deleted since the archive's start",
        ),
        "count",
    ),
    CounterType.MAX_CYCLE_TIME: (
        Family(
            "aerotape_duty_cycle_max_seconds",
            "gauge",
            "longest duty cycle of a thread of the archive",
            ("thread",),
        ),
        "ns",
    ),
    CounterType.CYCLE_TIME_EXCEEDED: (
        Family(
            "aerotape_duty_cycle_exceeded",
            "counter",
            "duty cycles that took longer than the thread's threshold",
            ("thread",),
        ),
        "count",
    ),
}
"""The metric of each of the archive's counters that has one, and the unit of the counter."""

FAMILIES: Final = (
    UP,
    INFO,
    STARTED,
    DRIVER_UP,
    RECORDINGS,
    LIVE,
    SUSPECT,
    VERIFIED,
    FAILED,
    POSITION,
    START,
    OMITTED,
    UNCONFIRMED,
    REPLAY_LAG,
    ENTITY_LAG,
    SYNC,
    *(family for family, _ in COUNTERS.values()),
    ERROR_LOG,
    FREE,
    SIZE,
    PROBLEMS,
)


def table() -> str:
    """Return the table of docs/metrics.md."""
    rows = (
        f"| `{each.shown_name}` | {each.kind} | {', '.join(each.labels)} | {each.help} |"
        for each in FAMILIES
    )
    return "\n".join(["| name | type | labels | meaning |", "| --- | --- | --- | --- |", *rows])


if __name__ == "__main__":
    print(table())
