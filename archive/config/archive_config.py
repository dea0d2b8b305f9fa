"""The archive's configuration: every supported `aeron.archive.*` property, and those of features.

Names, defaults and value syntax are those of Archive.Configuration and AeronArchive.Configuration
of Aeron 1.54, so that its properties files can be used unchanged; the control and the replication
channel have defaults too. Names that begin with `aerotape.` are properties of this package. Other
properties that begin with `aeron.` are the driver's.
"""

# ruff: noqa: RUF009  define() returns a dataclass field

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from aerotape.archive.config import values as kinds
from aerotape.archive.config.property import Property, define, properties_of
from aerotape.archive.config.property_names import (
    AERON_DIR,
    ARCHIVE_PREFIX,
    CLIENT_PROPERTIES,
    DEFAULT_AUTHENTICATOR,
    DRIVER_TIMEOUT,
    OWN_PREFIX,
    RETENTION_FILE,
    THREAD_NAMING,
    USERS_FILE,
    WITHOUT_EFFECT,
    nearest,
)
from aerotape.archive.config.values import BACKOFF, COUNT, Idle, Kind
from aerotape.archive.threads import ThreadNaming
from aerotape.channel_uri import ChannelUri
from aerotape.control_address import CONTROL_ADDRESSES
from aerotape.errors import ConfigurationError
from aerotape.frame_header import ChecksumName

MARK_FILE_UPDATE_INTERVAL_MS = 1_000
LIVENESS_TIMEOUT_MS = 10 * MARK_FILE_UPDATE_INTERVAL_MS
_SectionT = TypeVar("_SectionT")


def _archive(suffix: str, kind: Kind, default: Any, driver_name: str | None = None) -> Any:
    return define(ARCHIVE_PREFIX + suffix, kind, default, driver_name)


@dataclass(slots=True)
class ArchiveConfig:
    """The settings of an archive: each property's field, name, syntax, range and default.

    Attributes:
        added: the settings of features, by their dataclasses.
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
    users_file: Path | None = define(USERS_FILE, kinds.USERS_FILE, None)
    control_addresses: tuple[str, ...] = define(CONTROL_ADDRESSES, kinds.ADDRESSES, ())
    recording_signals: Literal["requester", "all"] = define(
        "aerotape.recording.signals", kinds.RECORDING_SIGNALS, "requester"
    )
    # 0 disables the time index.
    time_index_interval_ns: int = define(
        "aerotape.time.index.interval", kinds.DURATION, 100_000_000
    )
    time_index_length: int = define("aerotape.time.index.length", kinds.SIZE, 64 * 1024)
    retention_file: Path | None = define(RETENTION_FILE, kinds.OPTIONAL_PATH, None)
    retention_interval_ns: int = define(
        "aerotape.retention.interval", kinds.TIMEOUT, 300_000_000_000
    )

    added: dict[type[Any], Any] = field(default_factory=dict)
    driver_properties: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        origins: Mapping[str, str] | None = None,
        sections: Iterable[type[Any]] = (),
    ) -> ArchiveConfig:
        """Build a configuration from property names and their text values, and check it.

        Args:
            origins: the sources of properties, for errors.
            sections: the dataclasses of features with their properties.

        Raises:
            ConfigurationError: an invalid value; the message has the property and the value.
        """
        config = cls.defaults(sections)
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

    @classmethod
    def defaults(cls, sections: Iterable[type[Any]]) -> ArchiveConfig:
        """Return the configuration without any given property."""
        return cls(added={each: each() for each in sections})

    @property
    def properties(self) -> Mapping[str, Property]:
        """All properties by name, those of features last."""
        return properties_of(ArchiveConfig, *self.added)

    def of(self, section: type[_SectionT]) -> _SectionT:
        """Return the settings of a feature, or these."""
        return cast(_SectionT, self if section is ArchiveConfig else self.added[section])

    def value(self, name: str) -> Any:
        """Return the value of a property."""
        known = self.properties[name]
        return getattr(self.of(known.section), known.attribute)

    def _set(self, known: Property, name: str, text: str) -> None:
        setattr(self.of(known.section), known.attribute, known.kind.parse(name, text))

    def _take(self, name: str, value: str) -> None:
        if name in self.properties:
            self._set(self.properties[name], name, value)
        elif name in WITHOUT_EFFECT:
            if value:
                self.warnings.append(f"{name} has no effect: {WITHOUT_EFFECT[name]}")
        elif name.startswith((ARCHIVE_PREFIX, OWN_PREFIX)):
            if name not in CLIENT_PROPERTIES:
                hint = nearest(name, [*self.properties, *WITHOUT_EFFECT])
                self.warnings.append(f"{name} is not a property of the archive, ignored{hint}")
        elif name == AERON_DIR:
            self.aeron_dir = value
        elif name.startswith("aeron."):
            self._take_driverdefine(name, value)
        else:
            hint = nearest(name, [*self.properties, *WITHOUT_EFFECT])
            self.warnings.append(f"{name} is not an Aeron property, ignored{hint}")

    def _take_driverdefine(self, name: str, value: str) -> None:
        if name == DRIVER_TIMEOUT:
            self.driver_timeout_ms = COUNT.parse(name, value)
        elif name == THREAD_NAMING:
            self.thread_naming = kinds.THREAD_NAMING.parse(name, value)
        # The media driver silently accepts unknown names.
        hint = nearest(name, self.properties, cutoff=0.9)
        if hint:
            self.warnings.append(
                f"{name} is not a property of the archive, passed to the media driver{hint}"
            )
        self.driver_properties[name] = value

    def _derive(self, properties: Mapping[str, str]) -> None:
        """Set the defaults that depend on settings of the media driver."""
        for name, known in self.properties.items():
            driver_name = known.driver_name
            if driver_name and driver_name in properties and name not in properties:
                self._set(known, driver_name, properties[driver_name].strip())

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
        for name, known in self.properties.items():
            value = self.value(name)
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
