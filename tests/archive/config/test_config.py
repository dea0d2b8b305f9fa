"""Properties: values and files are parsed as by the Java archive; invalid ones are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aerotape.archive.archive import Archive
from aerotape.archive.config import values as kinds
from aerotape.archive.config.archive_config import ArchiveConfig
from aerotape.archive.config.property import properties_of
from aerotape.archive.features.built_in import SECTIONS
from aerotape.errors import ConfigurationError

PROPERTIES = properties_of(ArchiveConfig, *SECTIONS)


def config(**properties: str) -> ArchiveConfig:
    """A configuration from `aeron.archive.*` names with `_` for the dots."""
    return ArchiveConfig.from_properties(
        {f"aeron.archive.{name.replace('_', '.')}": value for name, value in properties.items()}
    )


def test_values_are_read_by_their_kind() -> None:
    """Sizes, durations, booleans, Java class names and ids are converted by their kind."""
    made = config(
        segment_file_length="1g",
        connect_timeout="250ms",
        dir_delete_on_start="true",
        record_checksum="io.aeron.archive.checksum.Crc32c",
        replay_checksum="CRC-32",
        threading_mode="SHARED",
        id="-42",
        recorder_idle_strategy="org.agrona.concurrent.YieldingIdleStrategy",
    )
    assert made.segment_file_length == 1 << 30
    assert made.connect_timeout_ns == 250_000_000
    assert made.delete_archive_on_start is True
    assert (made.record_checksum, made.replay_checksum) == ("crc-32c", "crc-32")
    assert (made.threading_mode, made.archive_id) == ("SHARED", -42)
    assert made.recorder_idle is not None and made.recorder_idle[0] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.file.length", "100m"),
        ("segment.file.length", "32k"),
        ("segment.file.length", "2g"),
        ("file.io.max.length", "1k"),
        ("control.mtu.length", "1400"),
        ("control.term.buffer.length", "65k"),
        ("control.channel", "aeron:ipc"),
        ("control.channel", "nonsense"),
        ("local.control.channel", "aeron:udp?endpoint=localhost:1"),
        ("file.sync.level", "3"),
        ("connect.timeout", "5 minutes"),
        ("record.checksum", "md5"),
        ("threading.mode", "INVOKER"),
        ("idle.strategy", "com.example.Mine"),
        ("max.concurrent.replays", "-1"),
        ("max.concurrent.replays", "1_0"),
        ("id", "first"),
        ("dir.delete.on.start", "yes"),
        ("error.buffer.length", "1k"),
        ("dir", ""),
        ("catalog.capacity", "4g"),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    """The error names the property and shows the value."""
    with pytest.raises(ConfigurationError) as caught:
        ArchiveConfig.from_properties({f"aeron.archive.{name}": value})
    assert caught.value.name == f"aeron.archive.{name}"
    assert f"aeron.archive.{name}" in str(caught.value)


def test_the_callers_thread_drives_neither_archive_nor_driver(tmp_path: Path) -> None:
    """INVOKER mode is refused before anything is started; the error names the alternatives."""
    for name in ("aeron.archive.threading.mode", "aeron.threading.mode"):
        with pytest.raises(ConfigurationError, match=r"=INVOKER.*SHARED") as no:
            Archive.launch(tmp_path, tmp_path / "aeron", properties={name: "INVOKER"})
        assert no.value.name == name
    assert not (tmp_path / "aeron").exists()


FREE_TEXT = {kinds.TEXT, kinds.PATH, kinds.OPTIONAL_PATH, kinds.USERS_FILE}
CHANNELS = [name for name in PROPERTIES if name.endswith(".channel")]


@pytest.mark.parametrize(
    "name", [name for name, known in PROPERTIES.items() if known.kind not in FREE_TEXT]
)
def test_every_property_refuses_nonsense(name: str) -> None:
    """The error is one line with the property and, if known, the source of the value."""
    for nonsense in ("~", "-99999999999999999999", "1x"):
        with pytest.raises(ConfigurationError) as caught:
            ArchiveConfig.from_properties({name: nonsense}, {name: "here"}, SECTIONS)
        assert caught.value.name == name
        assert str(caught.value).startswith(f"{name}=")
        assert str(caught.value).endswith(" (from here)")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", CHANNELS)
def test_every_channel_is_checked(name: str) -> None:
    """Channels are checked at the start, not when the first client connects."""
    properties = {name: "aeron:udp?endpoint", "aeron.archive.recording.events.enabled": "true"}
    with pytest.raises(ConfigurationError) as caught:
        ArchiveConfig.from_properties(properties)
    assert caught.value.name == name


def test_catalog_sync_level_is_at_least_that_of_the_files() -> None:
    """As in the reference, descriptors are at least as durable as the data they describe."""
    with pytest.raises(ConfigurationError, match=r"catalog\.file\.sync\.level=0"):
        config(file_sync_level="1")
    assert config(file_sync_level="1", catalog_file_sync_level="2").file_sync_level == 1


def test_unknown_archive_properties_are_warned_about_and_driver_ones_passed_on() -> None:
    """A misspelt property is reported, and driver properties are passed to the driver."""
    made = ArchiveConfig.from_properties(
        {
            "aeron.archive.segment.file.lenght": "64k",
            "aeron.archive.max.catalog.entries": "1",
            "aeron.archve.dir": "x",
            "aerotape.user": "alice",
            "aeron.term.buffer.length": "64k",
            "aeron.dir": "/dev/shm/x",
            "java.io.tmpdir": "/tmp",
        }
    )
    warnings = "\n".join(made.warnings)
    assert "aeron.archive.segment.file.lenght" in warnings
    assert "lenght is not a property of the archive, ignored: did you mean" in warnings
    assert "did you mean aeron.archive.segment.file.length?" in warnings
    assert "max.catalog.entries has no effect: the catalog grows" in warnings
    assert "passed to the media driver: did you mean aeron.archive.dir?" in warnings
    assert "alice" not in warnings and "aerotape.user" not in warnings
    assert "java.io.tmpdir" in warnings
    assert made.driver_properties == {"aeron.term.buffer.length": "64k", "aeron.archve.dir": "x"}
    assert made.aeron_dir == "/dev/shm/x"


def test_recording_events_need_a_channel() -> None:
    """The channel of recording events has no default."""
    channel = "aeron:udp?control-mode=dynamic|control=localhost:8030"
    made = config(recording_events_enabled="true", recording_events_channel=channel)
    assert made.recording_events_channel == channel
    assert (made.recording_events_stream_id, made.warnings) == (30, [])
    with pytest.raises(ConfigurationError, match=r"aeron\.archive\.recording\.events\.channel"):
        config(recording_events_enabled="true")


def test_settings_of_the_driver_are_the_defaults_of_the_archives() -> None:
    """MTU and linger of control and replay streams follow the driver's, unless given."""
    driver = {"aeron.mtu.length": "4k", "aeron.publication.linger.timeout": "1s"}
    made = ArchiveConfig.from_properties(driver)
    assert (made.control_mtu_length, made.replay_linger_timeout_ns) == (4096, 1_000_000_000)
    given = ArchiveConfig.from_properties({**driver, "aeron.archive.control.mtu.length": "8k"})
    assert given.control_mtu_length == 8192


def test_own_properties_are_documented_with_their_defaults() -> None:
    """docs/configuration.md has a row for each property of this package, with its default."""
    page = Path(__file__).parents[3] / "docs" / "configuration.md"
    rows = re.findall(
        r"^\| `(aerotape\.[a-z.]+)` \| aerotape only: (.*) \|$", page.read_text(), re.M
    )
    own = {name: known for name, known in PROPERTIES.items() if name.startswith("aerotape.")}
    assert dict(rows).keys() == own.keys()
    defaults = ArchiveConfig.defaults(SECTIONS)
    for name, text in rows:
        default = own[name].kind.write(defaults.value(name))
        assert "default:" in text if default == "" else re.search(rf"\b{default}\b", text), name
