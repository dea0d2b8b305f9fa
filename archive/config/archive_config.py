"""The archive's configuration: every supported `aeron.archive.*` property.

Names, defaults and value syntax are those of the Java archive (Archive.Configuration and
AeronArchive.Configuration), so that its properties files can be used unchanged; the control and the
replication channel have defaults too. Other properties that begin with `aeron.` are the driver's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from aerotape.archive.config.property_table import (
    AERON_DIR,
    ARCHIVE_PREFIX,
    CLIENT_PROPERTIES,
    DRIVER_TIMEOUT,
    OWN_PREFIX,
    PROPERTIES,
    USERS_FILE,
    WITHOUT_EFFECT,
    nearest,
)
from aerotape.archive.config.values import (
    BACKOFF,
    COUNT,
    DURATION,
    MAX_INT,
    SIZE,
    Idle,
)
from aerotape.archive.security.plugins import DEFAULT_AUTHENTICATOR
from aerotape.catalog import layout
from aerotape.catalog.layout import ChecksumName
from aerotape.channel_uri import ChannelUri
from aerotape.errors import ConfigurationError

MARK_FILE_UPDATE_INTERVAL_MS = 1_000
LIVENESS_TIMEOUT_MS = 10 * MARK_FILE_UPDATE_INTERVAL_MS

TERM_MIN_LENGTH_BYTES = 64 * 1024
TERM_MAX_LENGTH_BYTES = 1 << 30


# Properties whose default is the value of a media driver property.
DERIVED = {
    "aeron.archive.control.mtu.length": ("aeron.mtu.length", SIZE),
    "aeron.archive.replay.linger.timeout": ("aeron.publication.linger.timeout", DURATION),
}


@dataclass(slots=True)
class ArchiveConfig:
    """The settings of an archive. Field defaults are those of the Java archive.

    Attributes:
        driver_properties: `aeron.*` properties for the media driver, as given.
        warnings: messages about settings that have no effect.
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
    idle: Idle = BACKOFF
    recorder_idle: Idle | None = None
    replayer_idle: Idle | None = None
    conductor_cpu: int = -1
    recorder_cpu: int = -1
    replayer_cpu: int = -1
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
    mirror_secret_file: Path | None = None
    mirror_channels: tuple[str, ...] = ()
    control_addresses: tuple[str, ...] = ()
    recording_signals: Literal["requester", "all"] = "requester"
    # 0 disables the time index.
    time_index_interval_ns: int = 100_000_000
    time_index_length: int = 64 * 1024
    retention_file: Path | None = None
    retention_interval_ns: int = 300_000_000_000

    driver_properties: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], origins: Mapping[str, str] | None = None
    ) -> ArchiveConfig:
        """Build a configuration from property names and their text values, and check it.

        Args:
            origins: the sources of properties, for errors.

        Raises:
            ConfigurationError: an invalid value; the message has the property and the value.
        """
        config = cls()
        try:
            for name, value in properties.items():
                config._take(name, value.strip())
            config._derive(properties)
            config.validate()
        except ConfigurationError as error:
            origin = (origins or {}).get(error.name)
            if origin is None:
                raise
            raise ConfigurationError(f"{error} (from {origin})", error.name) from error
        return config

    def _take(self, name: str, value: str) -> None:
        if name in PROPERTIES:
            known = PROPERTIES[name]
            setattr(self, known.attribute, known.kind.parse(name, value))
        elif name in WITHOUT_EFFECT:
            if value:
                self.warnings.append(f"{name} has no effect: {WITHOUT_EFFECT[name]}")
        elif name.startswith((ARCHIVE_PREFIX, OWN_PREFIX)):
            if name not in CLIENT_PROPERTIES:
                hint = nearest(name, [*PROPERTIES, *WITHOUT_EFFECT])
                self.warnings.append(f"{name} is not a property of the archive, ignored{hint}")
        elif name == AERON_DIR:
            self.aeron_dir = value
        elif name.startswith("aeron."):
            self._take_driver_property(name, value)
        else:
            hint = nearest(name, [*PROPERTIES, *WITHOUT_EFFECT])
            self.warnings.append(f"{name} is not an Aeron property, ignored{hint}")

    def _take_driver_property(self, name: str, value: str) -> None:
        if name == DRIVER_TIMEOUT:
            self.driver_timeout_ms = COUNT.parse(name, value)
        # The media driver silently accepts unknown names.
        hint = nearest(name, PROPERTIES, cutoff=0.9)
        if hint:
            self.warnings.append(
                f"{name} is not a property of the archive, passed to the media driver{hint}"
            )
        self.driver_properties[name] = value

    def _derive(self, properties: Mapping[str, str]) -> None:
        """Set the defaults that depend on settings of the media driver."""
        for name, (driver_name, kind) in DERIVED.items():
            if name not in properties and driver_name in properties:
                value = kind.parse(driver_name, properties[driver_name].strip())
                setattr(self, PROPERTIES[name].attribute, value)

    def validate(self) -> None:
        """Check ranges and combinations of values.

        Raises:
            ConfigurationError: an invalid value or combination; the message has the property.
        """
        if self.catalog_file_sync_level < self.file_sync_level:
            raise ConfigurationError(
                f"{ARCHIVE_PREFIX}catalog.file.sync.level={self.catalog_file_sync_level}: must not"
                f" be less than aeron.archive.file.sync.level={self.file_sync_level}",
                f"{ARCHIVE_PREFIX}catalog.file.sync.level",
            )
        for suffix, is_valid, expected in _RANGES:
            name = ARCHIVE_PREFIX + suffix
            value = getattr(self, PROPERTIES[name].attribute)
            if not is_valid(value):
                raise ConfigurationError(f"{name}={value}: must be {expected}", name)
        if self.users_file is not None and self.authenticator_supplier != DEFAULT_AUTHENTICATOR:
            raise ConfigurationError(
                f"{USERS_FILE}={self.users_file} and aeron.archive.authenticator.supplier="
                f"{self.authenticator_supplier} both set the authenticator: give one",
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


_RANGES: tuple[tuple[str, Callable[[int], bool], str], ...] = (
    ("segment.file.length", _is_term_length, "a power of two, 64k to 1g"),
    ("control.term.buffer.length", _is_term_length, "a power of two, 64k to 1g"),
    (
        "file.io.max.length",
        lambda value: _is_power_of_two(value) and value >= TERM_MIN_LENGTH_BYTES,
        "a power of two, 64k or more",
    ),
    (
        "control.mtu.length",
        lambda value: 32 < value <= 65504 and value % 32 == 0,
        "a multiple of 32 from 64 to 65504",
    ),
    ("error.buffer.length", lambda value: 1 << 20 <= value <= MAX_INT - 8192, "1m or more"),
    (
        "catalog.capacity",
        lambda value: layout.MIN_CAPACITY_BYTES <= value <= layout.MAX_CAPACITY_BYTES,
        f"from {layout.MIN_CAPACITY_BYTES} to {layout.MAX_CAPACITY_BYTES} bytes",
    ),
)
