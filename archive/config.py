"""The archive's configuration: every `aeron.archive.*` property with a meaning here.

Names, defaults and value syntax are those of the Java archive (Archive.Configuration and
AeronArchive.Configuration), so that its property files serve unchanged. Two defaults are added
where the Java archive has none and refuses to start: the control channel and the replication
channel (both on localhost). Properties that begin with `aeron.` but not with `aeron.archive.` are
the media driver's and go to it untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aerotape.archive.channel_uri import ChannelUri
from aerotape.archive.plugins import DEFAULT_AUTHENTICATOR
from aerotape.archive.units import parse_duration_ns, parse_size
from aerotape.catalog import layout
from aerotape.errors import ConfigurationError

ARCHIVE_PREFIX = "aeron.archive."
# Our own properties, which no other archive has.
USERS_FILE = "aerotape.users.file"
ChecksumName = Literal["none", "crc-32", "crc-32c"]
# Spins, yields, shortest and longest park in nanoseconds.
Idle = tuple[int, int, int, int]

MARK_FILE_UPDATE_INTERVAL_MS = 1_000
LIVENESS_TIMEOUT_MS = 10 * MARK_FILE_UPDATE_INTERVAL_MS

TERM_MIN_LENGTH_BYTES = 64 * 1024
TERM_MAX_LENGTH_BYTES = 1 << 30
_MAX_INT = (1 << 31) - 1

_ENDLESS = (1 << 31) - 1
_IDLE_STRATEGIES: Mapping[str, Idle] = {
    "backoff": (10, 20, 1_000, 1_000_000),
    "BackoffIdleStrategy": (10, 20, 1_000, 1_000_000),
    "yield": (0, _ENDLESS, 1, 1),
    "YieldingIdleStrategy": (0, _ENDLESS, 1, 1),
    "spin": (_ENDLESS, 0, 1, 1),
    "BusySpinIdleStrategy": (_ENDLESS, 0, 1, 1),
    "noop": (_ENDLESS, 0, 1, 1),
    "NoOpIdleStrategy": (_ENDLESS, 0, 1, 1),
    "sleep-ns": (0, 0, 1_000, 1_000),
    "SleepingIdleStrategy": (0, 0, 1_000, 1_000),
    "sleep-ms": (0, 0, 1_000_000, 1_000_000),
    "SleepingMillisIdleStrategy": (0, 0, 1_000_000, 1_000_000),
}
_CHECKSUMS: Mapping[str, ChecksumName] = {
    "": "none",
    "none": "none",
    "crc-32": "crc-32",
    "io.aeron.archive.checksum.Crc32": "crc-32",
    "org.agrona.checksum.Crc32": "crc-32",
    "crc-32c": "crc-32c",
    "io.aeron.archive.checksum.Crc32c": "crc-32c",
    "org.agrona.checksum.Crc32c": "crc-32c",
}


@dataclass(slots=True)
class ArchiveConfig:
    """What an archive runs with. Field defaults are the reference's.

    Attributes:
        driver_properties: `aeron.*` properties for the media driver, as given.
        warnings: what was given and will not be honoured, in words.
    """

    archive_dir: Path = Path("aeron-archive")
    mark_file_dir: Path | None = None
    delete_archive_on_start: bool = False
    aeron_dir: str = ""
    driver_timeout_ms: int = 10_000
    archive_id: int = -1

    control_channel_enabled: bool = True
    control_channel: str = "aeron:udp?endpoint=localhost:8010"
    control_stream_id: int = 10
    local_control_channel: str = "aeron:ipc?term-length=64k"
    local_control_stream_id: int = 10
    control_response_channel: str = ""
    control_response_stream_id: int = 20
    control_term_buffer_sparse: bool = True
    control_term_buffer_length: int = 64 * 1024
    control_mtu_length: int = 1408
    recording_events_enabled: bool = False
    recording_events_channel: str = ""
    recording_events_stream_id: int = 30
    replication_channel: str = "aeron:udp?endpoint=localhost:0"

    segment_file_length: int = 128 * 1024 * 1024
    file_io_max_length: int = 1024 * 1024
    file_sync_level: int = 0
    catalog_file_sync_level: int = 0
    catalog_capacity: int = 1024 * 1024
    low_storage_space_threshold: int = 128 * 1024 * 1024
    record_checksum: ChecksumName = "none"
    replay_checksum: ChecksumName = "none"

    threading_mode: Literal["SHARED", "DEDICATED"] = "DEDICATED"
    idle: Idle = _IDLE_STRATEGIES["backoff"]
    recorder_idle: Idle | None = None
    replayer_idle: Idle | None = None
    max_concurrent_recordings: int = 20
    max_concurrent_replays: int = 20
    connect_timeout_ns: int = 5_000_000_000
    message_timeout_ns: int = 10_000_000_000
    session_liveness_check_interval_ns: int = 1_000_000_000
    replay_linger_timeout_ns: int = 5_000_000_000
    conductor_cycle_threshold_ns: int = 100_000_000
    recorder_cycle_threshold_ns: int = 100_000_000
    replayer_cycle_threshold_ns: int = 100_000_000
    error_buffer_length: int = 1024 * 1024
    authenticator_supplier: str = DEFAULT_AUTHENTICATOR
    authorisation_service_supplier: str = ""
    users_file: Path | None = None

    driver_properties: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ArchiveConfig:
        """Build a configuration from property names and their text values, and check it.

        Raises:
            ConfigurationError: a value that cannot be used; it names the property and the value.
        """
        config = cls()
        for name, value in properties.items():
            if name in _PROPERTIES:
                attribute, parse = _PROPERTIES[name]
                setattr(config, attribute, parse(name, value.strip()))
            elif not name.startswith(ARCHIVE_PREFIX):
                config._take_other(name, value)
            elif name in _WITHOUT_EFFECT:
                if value.strip():
                    config.warnings.append(f"{name} has no effect: {_WITHOUT_EFFECT[name]}")
            else:
                config.warnings.append(f"{name} is not a property of the archive: ignored")
        config._derive(properties)
        config.validate()
        return config

    def _take_other(self, name: str, value: str) -> None:
        if name == "aeron.dir":
            self.aeron_dir = value.strip()
        elif name.startswith("aeron."):
            if name == "aeron.driver.timeout":
                self.driver_timeout_ms = _COUNT(name, value.strip())
            self.driver_properties[name] = value.strip()
        else:
            self.warnings.append(f"{name} is not an Aeron property: ignored")

    def _derive(self, properties: Mapping[str, str]) -> None:
        """Take over what the reference takes from the media driver's settings."""
        if (
            "aeron.archive.control.mtu.length" not in properties
            and "aeron.mtu.length" in properties
        ):
            self.control_mtu_length = _size_int("aeron.mtu.length", properties["aeron.mtu.length"])
        linger = "aeron.publication.linger.timeout"
        if "aeron.archive.replay.linger.timeout" not in properties and linger in properties:
            self.replay_linger_timeout_ns = parse_duration_ns(linger, properties[linger].strip())

    def validate(self) -> None:
        """Check what single values cannot tell: ranges and combinations.

        Raises:
            ConfigurationError: naming the property to change.
        """
        if self.catalog_file_sync_level < self.file_sync_level:
            raise _invalid(
                "catalog.file.sync.level",
                self.catalog_file_sync_level,
                f"must not be less than aeron.archive.file.sync.level={self.file_sync_level}",
            )
        if not _is_term_length(self.segment_file_length):
            raise _invalid(
                "segment.file.length", self.segment_file_length, "must be a power of two, 64k to 1g"
            )
        if not _is_power_of_two(self.file_io_max_length) or (
            self.file_io_max_length < TERM_MIN_LENGTH_BYTES
        ):
            raise _invalid(
                "file.io.max.length", self.file_io_max_length, "must be a power of two, 64k or more"
            )
        if not _is_term_length(self.control_term_buffer_length):
            raise _invalid(
                "control.term.buffer.length",
                self.control_term_buffer_length,
                "must be a power of two, 64k to 1g",
            )
        if not 32 < self.control_mtu_length <= 65504 or self.control_mtu_length % 32:
            raise _invalid(
                "control.mtu.length",
                self.control_mtu_length,
                "must be a multiple of 32 from 64 to 65504",
            )
        if not 1024 * 1024 <= self.error_buffer_length <= _MAX_INT - 8192:
            raise _invalid("error.buffer.length", self.error_buffer_length, "must be 1m or more")
        if not layout.MIN_CAPACITY_BYTES <= self.catalog_capacity <= layout.MAX_CAPACITY_BYTES:
            raise _invalid(
                "catalog.capacity",
                self.catalog_capacity,
                f"must be from {layout.MIN_CAPACITY_BYTES} to {layout.MAX_CAPACITY_BYTES} bytes",
            )
        if self.users_file is not None and self.authenticator_supplier != DEFAULT_AUTHENTICATOR:
            raise ConfigurationError(
                f"{USERS_FILE}={self.users_file} and aeron.archive.authenticator.supplier="
                f"{self.authenticator_supplier} both say who may connect: give one",
                USERS_FILE,
            )
        self._validate_channels()

    def _validate_channels(self) -> None:
        if self.control_channel_enabled:
            _channel("control.channel", self.control_channel, media="udp")
        _channel("local.control.channel", self.local_control_channel, media="ipc")
        _channel("replication.channel", self.replication_channel)
        if self.control_response_channel:
            _channel("control.response.channel", self.control_response_channel)
        if self.recording_events_enabled:
            _channel("recording.events.channel", self.recording_events_channel)


def _invalid(name: str, value: object, why: str) -> ConfigurationError:
    name = ARCHIVE_PREFIX + name
    return ConfigurationError(f"{name}={value}: {why}", name)


def _channel(name: str, value: str, media: str | None = None) -> None:
    name = ARCHIVE_PREFIX + name
    try:
        uri = ChannelUri.parse(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}={value}: {error}", name) from error
    if media is not None and (uri.media != media or uri.is_spy):
        raise ConfigurationError(f"{name}={value}: must be an aeron:{media} channel", name)


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _is_term_length(value: int) -> bool:
    return _is_power_of_two(value) and TERM_MIN_LENGTH_BYTES <= value <= TERM_MAX_LENGTH_BYTES


# ---- how each value is read; a parser takes the property's name and its text -------------------


def _text(_name: str, value: str) -> str:
    return value


def _path(name: str, value: str) -> Path:
    if not value:
        raise ConfigurationError(f"{name} is empty: give a directory", name)
    return Path(value)


def _optional_path(_name: str, value: str) -> Path | None:
    return Path(value) if value else None


def _boolean(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise ConfigurationError(f"{name}={value!r} must be true or false", name)
    return value == "true"


def _integer(low: int, high: int) -> Callable[[str, str], int]:
    def parse(name: str, value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ConfigurationError(f"{name}={value!r} is not an integer", name) from None
        if not low <= number <= high:
            raise ConfigurationError(f"{name}={value} is not within {low} to {high}", name)
        return number

    return parse


def _size_int(name: str, value: str) -> int:
    size = parse_size(name, value.strip())
    if size > _MAX_INT:
        raise ConfigurationError(f"{name}={value} is larger than {_MAX_INT} bytes", name)
    return size


def _checksum(name: str, value: str) -> ChecksumName:
    found = _CHECKSUMS.get(value) or _CHECKSUMS.get(value.lower())
    if found is None:
        raise ConfigurationError(f"{name}={value!r}: know CRC-32 and CRC-32C", name)
    return found


def _idle(name: str, value: str) -> Idle:
    found = _IDLE_STRATEGIES.get(value.rpartition(".")[2])
    if found is None:
        raise ConfigurationError(
            f"{name}={value!r}: know Agrona's Backoff-, Yielding-, BusySpin-, NoOp-, Sleeping- and"
            " SleepingMillisIdleStrategy",
            name,
        )
    return found


def _threading_mode(name: str, value: str) -> str:
    if value not in ("SHARED", "DEDICATED"):
        raise ConfigurationError(f"{name}={value!r} must be SHARED or DEDICATED", name)
    return value


_INT32 = _integer(-_MAX_INT - 1, _MAX_INT)
_INT64 = _integer(-(1 << 63), (1 << 63) - 1)
_COUNT = _integer(0, _MAX_INT)
_SYNC_LEVEL = _integer(0, 2)

_PROPERTIES: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    USERS_FILE: ("users_file", _optional_path),
} | {
    ARCHIVE_PREFIX + name: (attribute, parse)
    for name, attribute, parse in (
        ("dir", "archive_dir", _path),
        ("mark.file.dir", "mark_file_dir", _optional_path),
        ("dir.delete.on.start", "delete_archive_on_start", _boolean),
        ("id", "archive_id", _INT64),
        ("control.channel.enabled", "control_channel_enabled", _boolean),
        ("control.channel", "control_channel", _text),
        ("control.stream.id", "control_stream_id", _INT32),
        ("local.control.channel", "local_control_channel", _text),
        ("local.control.stream.id", "local_control_stream_id", _INT32),
        # These three are of the archive's own client, which replicates.
        ("control.response.channel", "control_response_channel", _text),
        ("control.response.stream.id", "control_response_stream_id", _INT32),
        ("message.timeout", "message_timeout_ns", parse_duration_ns),
        ("control.term.buffer.sparse", "control_term_buffer_sparse", _boolean),
        ("control.term.buffer.length", "control_term_buffer_length", _size_int),
        ("control.mtu.length", "control_mtu_length", _size_int),
        ("recording.events.enabled", "recording_events_enabled", _boolean),
        ("recording.events.channel", "recording_events_channel", _text),
        ("recording.events.stream.id", "recording_events_stream_id", _INT32),
        ("replication.channel", "replication_channel", _text),
        ("segment.file.length", "segment_file_length", _size_int),
        ("file.io.max.length", "file_io_max_length", _size_int),
        ("file.sync.level", "file_sync_level", _SYNC_LEVEL),
        ("catalog.file.sync.level", "catalog_file_sync_level", _SYNC_LEVEL),
        ("catalog.capacity", "catalog_capacity", parse_size),
        ("low.storage.space.threshold", "low_storage_space_threshold", parse_size),
        ("record.checksum", "record_checksum", _checksum),
        ("replay.checksum", "replay_checksum", _checksum),
        ("threading.mode", "threading_mode", _threading_mode),
        ("idle.strategy", "idle", _idle),
        ("recorder.idle.strategy", "recorder_idle", _idle),
        ("replayer.idle.strategy", "replayer_idle", _idle),
        ("max.concurrent.recordings", "max_concurrent_recordings", _COUNT),
        ("max.concurrent.replays", "max_concurrent_replays", _COUNT),
        ("connect.timeout", "connect_timeout_ns", parse_duration_ns),
        (
            "session.liveness.check.interval",
            "session_liveness_check_interval_ns",
            parse_duration_ns,
        ),
        ("replay.linger.timeout", "replay_linger_timeout_ns", parse_duration_ns),
        ("conductor.cycle.threshold", "conductor_cycle_threshold_ns", parse_duration_ns),
        ("recorder.cycle.threshold", "recorder_cycle_threshold_ns", parse_duration_ns),
        ("replayer.cycle.threshold", "replayer_cycle_threshold_ns", parse_duration_ns),
        ("error.buffer.length", "error_buffer_length", _size_int),
        ("authenticator.supplier", "authenticator_supplier", _text),
        ("authorisation.service.supplier", "authorisation_service_supplier", _text),
    )
}

_CLIENT_ONLY = "it is a setting of archive clients"
_NATIVE_THREADS = "the native threads do not take it"
_WITHOUT_EFFECT: Mapping[str, str] = {
    ARCHIVE_PREFIX + name: reason
    for name, reason in (
        ("message.retry.attempts", _CLIENT_ONLY),
        ("client.name", _CLIENT_ONLY),
        ("conductor.cpu.affinity", _NATIVE_THREADS),
        ("recorder.cpu.affinity", _NATIVE_THREADS),
        ("replayer.cpu.affinity", _NATIVE_THREADS),
        ("max.catalog.entries", "the catalog grows; see aeron.archive.catalog.capacity"),
    )
}
