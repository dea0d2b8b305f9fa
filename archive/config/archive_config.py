"""The archive's configuration: every supported `aeron.archive.*` property.

Names, defaults and value syntax are those of Archive.Configuration and AeronArchive.Configuration
of Aeron 1.54, so that its properties files can be used unchanged; the control and the replication
channel have defaults too. Names that begin with `aerotape.` are properties of this package. Other
properties that begin with `aeron.` are the driver's.
"""

# ruff: noqa: RUF009  _property() returns a dataclass field

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from aerotape.archive.config import values as kinds
from aerotape.archive.config.property_names import (
    AERON_DIR,
    ARCHIVE_PREFIX,
    CLIENT_PROPERTIES,
    DRIVER_TIMEOUT,
    MIRROR_CHANNELS,
    OWN_PREFIX,
    RETENTION_FILE,
    THREAD_NAMING,
    USERS_FILE,
    WITHOUT_EFFECT,
    nearest,
)
from aerotape.archive.config.values import BACKOFF, COUNT, Idle, Kind
from aerotape.archive.security.plugins import DEFAULT_AUTHENTICATOR
from aerotape.archive.threads import ThreadNaming
from aerotape.catalog.layout import ChecksumName
from aerotape.channel_uri import ChannelUri
from aerotape.control_address import CONTROL_ADDRESSES
from aerotape.errors import ConfigurationError

MARK_FILE_UPDATE_INTERVAL_MS = 1_000
LIVENESS_TIMEOUT_MS = 10 * MARK_FILE_UPDATE_INTERVAL_MS


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the archive.

    Attributes:
        attribute: the field of `ArchiveConfig`.
        kind: the syntax and the range of its values.
        driver_name: the property of the media driver whose value, if given, is the default.
    """

    attribute: str
    kind: Kind
    driver_name: str | None = None


def _property(name: str, kind: Kind, default: Any, driver_name: str | None = None) -> Any:
    """Define a field that a property sets."""
    options = {"name": name, "kind": kind, "driver_name": driver_name}
    return field(default=default, metadata=options)


def _archive(suffix: str, kind: Kind, default: Any, driver_name: str | None = None) -> Any:
    return _property(ARCHIVE_PREFIX + suffix, kind, default, driver_name)


@dataclass(slots=True)
class ArchiveConfig:
    """The settings of an archive: each property's field, name, syntax, range and default.

    Attributes:
        driver_properties: `aeron.*` properties for the media driver, as given.
        warnings: messages about settings that have no effect.
    """

    aeron_dir: str = ""
    driver_timeout_ms: int = 10_000
    thread_naming: ThreadNaming = "classic"

    archive_dir: Path = _archive("dir", kinds.PATH, Path("aeron-archive"))
    mark_file_dir: Path | None = _archive("mark.file.dir", kinds.OPTIONAL_PATH, None)
    delete_archive_on_start: bool = _archive("dir.delete.on.start", kinds.BOOLEAN, False)
    archive_id: int = _archive("id", kinds.INT64, -1)
    control_channel_enabled: bool = _archive("control.channel.enabled", kinds.BOOLEAN, True)
    control_channel: str = _archive(
        "control.channel", kinds.TEXT, "aeron:udp?endpoint=localhost:8010"
    )
    control_stream_id: int = _archive("control.stream.id", kinds.INT32, 10)
    local_control_channel: str = _archive(
        "local.control.channel", kinds.TEXT, "aeron:ipc?term-length=64k"
    )
    local_control_stream_id: int = _archive("local.control.stream.id", kinds.INT32, 10)
    control_term_buffer_sparse: bool = _archive("control.term.buffer.sparse", kinds.BOOLEAN, True)
    control_term_buffer_length: int = _archive(
        "control.term.buffer.length", kinds.TERM_LENGTH, 64 * 1024
    )
    control_mtu_length: int = _archive(
        "control.mtu.length", kinds.MTU, 1408, driver_name="aeron.mtu.length"
    )
    recording_events_enabled: bool = _archive("recording.events.enabled", kinds.BOOLEAN, False)
    recording_events_channel: str = _archive("recording.events.channel", kinds.TEXT, "")
    recording_events_stream_id: int = _archive("recording.events.stream.id", kinds.INT32, 30)
    replication_channel: str = _archive(
        "replication.channel", kinds.TEXT, "aeron:udp?endpoint=localhost:0"
    )
    # These three are of the archive's own client, which replicates.
    control_response_channel: str = _archive("control.response.channel", kinds.TEXT, "")
    control_response_stream_id: int = _archive("control.response.stream.id", kinds.INT32, 20)
    message_timeout_ns: int = _archive("message.timeout", kinds.TIMEOUT, 10_000_000_000)
    segment_file_length: int = _archive("segment.file.length", kinds.TERM_LENGTH, 128 * 1024 * 1024)
    file_io_max_length: int = _archive("file.io.max.length", kinds.IO_LENGTH, 1024 * 1024)
    file_sync_level: int = _archive("file.sync.level", kinds.SYNC_LEVEL, 0)
    catalog_file_sync_level: int = _archive("catalog.file.sync.level", kinds.SYNC_LEVEL, 0)
    catalog_capacity: int = _archive("catalog.capacity", kinds.CATALOG_CAPACITY, 1024 * 1024)
    low_storage_space_threshold: int = _archive(
        "low.storage.space.threshold", kinds.LONG_SIZE, 128 * 1024 * 1024
    )
    record_checksum: ChecksumName = _archive("record.checksum", kinds.CHECKSUM, "none")
    replay_checksum: ChecksumName = _archive("replay.checksum", kinds.CHECKSUM, "none")
    threading_mode: Literal["SHARED", "DEDICATED"] = _archive(
        "threading.mode", kinds.THREADING_MODE, "DEDICATED"
    )
    idle: Idle = _archive("idle.strategy", kinds.IDLE, BACKOFF)
    recorder_idle: Idle | None = _archive("recorder.idle.strategy", kinds.OPTIONAL_IDLE, None)
    replayer_idle: Idle | None = _archive("replayer.idle.strategy", kinds.OPTIONAL_IDLE, None)
    conductor_cpu: int = _archive("conductor.cpu.affinity", kinds.CPU, -1)
    recorder_cpu: int = _archive("recorder.cpu.affinity", kinds.CPU, -1)
    replayer_cpu: int = _archive("replayer.cpu.affinity", kinds.CPU, -1)
    max_concurrent_recordings: int = _archive("max.concurrent.recordings", kinds.COUNT, 20)
    max_concurrent_replays: int = _archive("max.concurrent.replays", kinds.COUNT, 20)
    connect_timeout_ns: int = _archive("connect.timeout", kinds.TIMEOUT, 5_000_000_000)
    session_liveness_check_interval_ns: int = _archive(
        "session.liveness.check.interval", kinds.TIMEOUT, 1_000_000_000
    )
    replay_linger_timeout_ns: int = _archive(
        "replay.linger.timeout",
        kinds.DURATION,
        5_000_000_000,
        driver_name="aeron.publication.linger.timeout",
    )
    conductor_cycle_threshold_ns: int = _archive(
        "conductor.cycle.threshold", kinds.DURATION, 100_000_000
    )
    recorder_cycle_threshold_ns: int = _archive(
        "recorder.cycle.threshold", kinds.DURATION, 100_000_000
    )
    replayer_cycle_threshold_ns: int = _archive(
        "replayer.cycle.threshold", kinds.DURATION, 100_000_000
    )
    error_buffer_length: int = _archive(
        "error.buffer.length", kinds.ERROR_BUFFER_LENGTH, 1024 * 1024
    )
    authenticator_supplier: str = _archive(
        "authenticator.supplier", kinds.TEXT, DEFAULT_AUTHENTICATOR
    )
    authorisation_service_supplier: str = _archive("authorisation.service.supplier", kinds.TEXT, "")
    users_file: Path | None = _property(USERS_FILE, kinds.USERS_FILE, None)
    mirror_secret_file: Path | None = _property(
        "aerotape.mirror.secret.file", kinds.OPTIONAL_PATH, None
    )
    mirror_channels: tuple[str, ...] = _property(MIRROR_CHANNELS, kinds.CHANNELS, ())
    ledgers_restored: bool = _property("aerotape.ledgers.restored", kinds.BOOLEAN, False)
    control_addresses: tuple[str, ...] = _property(CONTROL_ADDRESSES, kinds.ADDRESSES, ())
    recording_signals: Literal["requester", "all"] = _property(
        "aerotape.recording.signals", kinds.RECORDING_SIGNALS, "requester"
    )
    # 0 disables the time index.
    time_index_interval_ns: int = _property(
        "aerotape.time.index.interval", kinds.DURATION, 100_000_000
    )
    time_index_length: int = _property("aerotape.time.index.length", kinds.SIZE, 64 * 1024)
    retention_file: Path | None = _property(RETENTION_FILE, kinds.OPTIONAL_PATH, None)
    retention_interval_ns: int = _property(
        "aerotape.retention.interval", kinds.TIMEOUT, 300_000_000_000
    )

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
        elif name == THREAD_NAMING:
            self.thread_naming = kinds.THREAD_NAMING.parse(name, value)
        # The media driver silently accepts unknown names.
        hint = nearest(name, PROPERTIES, cutoff=0.9)
        if hint:
            self.warnings.append(
                f"{name} is not a property of the archive, passed to the media driver{hint}"
            )
        self.driver_properties[name] = value

    def _derive(self, properties: Mapping[str, str]) -> None:
        """Set the defaults that depend on settings of the media driver."""
        for name, known in PROPERTIES.items():
            driver_name = known.driver_name
            if driver_name and driver_name in properties and name not in properties:
                value = known.kind.parse(driver_name, properties[driver_name].strip())
                setattr(self, known.attribute, value)

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
        for name, known in PROPERTIES.items():
            value = getattr(self, known.attribute)
            if not known.kind.is_valid(value):
                raise ConfigurationError(f"{name}={value}: must be {known.kind.expected}", name)
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


PROPERTIES: Final[Mapping[str, Property]] = {
    each.metadata["name"]: Property(each.name, each.metadata["kind"], each.metadata["driver_name"])
    for each in fields(ArchiveConfig)
    if each.metadata
}
"""The properties of the archive by name, in the order of the fields."""
