"""The properties of the archive by name, with the field of `ArchiveConfig` and the kind of value.

Names are those of Archive.Configuration and AeronArchive.Configuration of Aeron 1.54. Properties of
the Java archive that have no effect here are in `WITHOUT_EFFECT`, with the reason.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aerotape.archive.config import values as kinds
from aerotape.archive.config.values import Kind

ARCHIVE_PREFIX = "aeron.archive."
# Properties of this package.
OWN_PREFIX = "aerotape."
USERS_FILE = "aerotape.users.file"
MIRROR_SECRET_FILE = "aerotape.mirror.secret.file"
MIRROR_CHANNELS = "aerotape.mirror.channels"
CONTROL_ADDRESSES = "aerotape.control.addresses"
RECORDING_SIGNALS = "aerotape.recording.signals"
TIME_INDEX_INTERVAL = "aerotape.time.index.interval"
TIME_INDEX_LENGTH = "aerotape.time.index.length"
RETENTION_FILE = "aerotape.retention.file"
RETENTION_INTERVAL = "aerotape.retention.interval"
# Media driver properties that the archive uses too.
AERON_DIR = "aeron.dir"
DRIVER_TIMEOUT = "aeron.driver.timeout"


@dataclass(frozen=True, slots=True)
class Property:
    """A property: the field it sets, and the kind of its values."""

    attribute: str
    kind: Kind


_ARCHIVE: tuple[tuple[str, str, Kind], ...] = (
    ("dir", "archive_dir", kinds.PATH),
    ("mark.file.dir", "mark_file_dir", kinds.OPTIONAL_PATH),
    ("dir.delete.on.start", "delete_archive_on_start", kinds.BOOLEAN),
    ("id", "archive_id", kinds.INT64),
    ("control.channel.enabled", "control_channel_enabled", kinds.BOOLEAN),
    ("control.channel", "control_channel", kinds.TEXT),
    ("control.stream.id", "control_stream_id", kinds.INT32),
    ("local.control.channel", "local_control_channel", kinds.TEXT),
    ("local.control.stream.id", "local_control_stream_id", kinds.INT32),
    ("control.term.buffer.sparse", "control_term_buffer_sparse", kinds.BOOLEAN),
    ("control.term.buffer.length", "control_term_buffer_length", kinds.SIZE),
    ("control.mtu.length", "control_mtu_length", kinds.SIZE),
    ("recording.events.enabled", "recording_events_enabled", kinds.BOOLEAN),
    ("recording.events.channel", "recording_events_channel", kinds.TEXT),
    ("recording.events.stream.id", "recording_events_stream_id", kinds.INT32),
    ("replication.channel", "replication_channel", kinds.TEXT),
    # These three are of the archive's own client, which replicates.
    ("control.response.channel", "control_response_channel", kinds.TEXT),
    ("control.response.stream.id", "control_response_stream_id", kinds.INT32),
    ("message.timeout", "message_timeout_ns", kinds.TIMEOUT),
    ("segment.file.length", "segment_file_length", kinds.SIZE),
    ("file.io.max.length", "file_io_max_length", kinds.SIZE),
    ("file.sync.level", "file_sync_level", kinds.SYNC_LEVEL),
    ("catalog.file.sync.level", "catalog_file_sync_level", kinds.SYNC_LEVEL),
    ("catalog.capacity", "catalog_capacity", kinds.LONG_SIZE),
    ("low.storage.space.threshold", "low_storage_space_threshold", kinds.LONG_SIZE),
    ("record.checksum", "record_checksum", kinds.CHECKSUM),
    ("replay.checksum", "replay_checksum", kinds.CHECKSUM),
    ("threading.mode", "threading_mode", kinds.THREADING_MODE),
    ("idle.strategy", "idle", kinds.IDLE),
    ("recorder.idle.strategy", "recorder_idle", kinds.OPTIONAL_IDLE),
    ("replayer.idle.strategy", "replayer_idle", kinds.OPTIONAL_IDLE),
    ("conductor.cpu.affinity", "conductor_cpu", kinds.CPU),
    ("recorder.cpu.affinity", "recorder_cpu", kinds.CPU),
    ("replayer.cpu.affinity", "replayer_cpu", kinds.CPU),
    ("max.concurrent.recordings", "max_concurrent_recordings", kinds.COUNT),
    ("max.concurrent.replays", "max_concurrent_replays", kinds.COUNT),
    ("connect.timeout", "connect_timeout_ns", kinds.TIMEOUT),
    ("session.liveness.check.interval", "session_liveness_check_interval_ns", kinds.TIMEOUT),
    ("replay.linger.timeout", "replay_linger_timeout_ns", kinds.DURATION),
    ("conductor.cycle.threshold", "conductor_cycle_threshold_ns", kinds.DURATION),
    ("recorder.cycle.threshold", "recorder_cycle_threshold_ns", kinds.DURATION),
    ("replayer.cycle.threshold", "replayer_cycle_threshold_ns", kinds.DURATION),
    ("error.buffer.length", "error_buffer_length", kinds.SIZE),
    ("authenticator.supplier", "authenticator_supplier", kinds.TEXT),
    ("authorisation.service.supplier", "authorisation_service_supplier", kinds.TEXT),
)

PROPERTIES: Mapping[str, Property] = {
    **{ARCHIVE_PREFIX + name: Property(attribute, kind) for name, attribute, kind in _ARCHIVE},
    USERS_FILE: Property("users_file", kinds.USERS_FILE),
    MIRROR_SECRET_FILE: Property("mirror_secret_file", kinds.OPTIONAL_PATH),
    MIRROR_CHANNELS: Property("mirror_channels", kinds.CHANNELS),
    CONTROL_ADDRESSES: Property("control_addresses", kinds.ADDRESSES),
    RECORDING_SIGNALS: Property("recording_signals", kinds.RECORDING_SIGNALS),
    TIME_INDEX_INTERVAL: Property("time_index_interval_ns", kinds.DURATION),
    TIME_INDEX_LENGTH: Property("time_index_length", kinds.SIZE),
    RETENTION_FILE: Property("retention_file", kinds.OPTIONAL_PATH),
    RETENTION_INTERVAL: Property("retention_interval_ns", kinds.TIMEOUT),
}

_CLIENT_ONLY = "it is a setting of archive clients"
WITHOUT_EFFECT: Mapping[str, str] = {
    ARCHIVE_PREFIX + name: reason
    for name, reason in (
        ("message.retry.attempts", _CLIENT_ONLY),
        ("client.name", _CLIENT_ONLY),
        ("max.catalog.entries", "the catalog grows; see aeron.archive.catalog.capacity"),
    )
}

# Properties of commands that are clients; a properties file may be shared with them.
CLIENT_PROPERTIES = frozenset(
    {"aerotape.user", "aerotape.secret.file", "aerotape.credentials.file"}
)


def variable(name: str) -> str:
    """Return the environment variable of a property: upper case, _ for dots."""
    return name.upper().replace(".", "_")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.8) -> str:
    """Return ``: did you mean …?`` with the most similar known name, or an empty text."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f": did you mean {found[0]}?" if found else ""
