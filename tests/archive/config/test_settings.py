"""Settings from all sources: their priority and their origins."""

from __future__ import annotations

from pathlib import Path

import pytest

from aerotape.archive.config.archive_config import ArchiveConfig
from aerotape.archive.config.properties_file import read_properties_file
from aerotape.archive.config.property import properties_of
from aerotape.archive.config.property_names import variable
from aerotape.archive.config.settings import Settings, effective
from aerotape.archive.features.built_in import SECTIONS
from aerotape.errors import ConfigurationError

SEGMENT = "aeron.archive.segment.file.length"


def file(path: Path, text: str) -> str:
    """A file of properties."""
    path.write_text(text, encoding="latin-1")
    return str(path)


def test_later_sources_win(tmp_path: Path) -> None:
    """The environment, files in order, then -D: later ones override; each origin is recorded."""
    settings = Settings()
    settings.take_environment(
        {
            variable(SEGMENT): "64k",
            "AERON_ARCHIVE_CONTROL_STREAM_ID": "11",
            "AERON_ARCHIVE_FILE_IO_MAX_LENGTH": "2m",
            "AERON_ARCHIVE_ID": "5",
            "AERON_ARCHIVE_DIR": "",
            "AERON_DIR": "/dev/shm/here",
        }
    )
    first = file(tmp_path / "first", f"{SEGMENT}=128k\naeron.archive.control.stream.id=12\n")
    second = file(tmp_path / "second", f"{SEGMENT}=256k\naeron.mtu.length=4k\n")
    settings.take_files([first, second])
    settings.put("aeron.archive.id", "6", "-D")
    config = settings.config()
    assert (config.segment_file_length, config.control_stream_id) == (256 * 1024, 12)
    assert (config.file_io_max_length, config.archive_id) == (2 * 1024 * 1024, 6)
    assert config.aeron_dir == "/dev/shm/here"
    rows = {row.name: row for row in effective(config, settings, "/default")}
    shown = {
        name: (rows[name].value, rows[name].origin, rows[name].default)
        for name in (
            SEGMENT,
            "aeron.archive.control.stream.id",
            "aeron.archive.file.io.max.length",
            "aeron.archive.id",
            "aeron.archive.dir",
            "aeron.archive.control.mtu.length",
            "aeron.dir",
            "aeron.mtu.length",
        )
    }
    assert shown == {
        SEGMENT: ("256k", second, "128m"),
        "aeron.archive.control.stream.id": ("12", first, "10"),
        "aeron.archive.file.io.max.length": (
            "2m",
            "environment AERON_ARCHIVE_FILE_IO_MAX_LENGTH",
            "1m",
        ),
        "aeron.archive.id": ("6", "-D", "-1"),
        "aeron.archive.dir": ("aeron-archive", "default", "aeron-archive"),
        "aeron.archive.control.mtu.length": ("4k", f"aeron.mtu.length from {second}", "1408"),
        "aeron.dir": ("/dev/shm/here", "environment AERON_DIR", "/default"),
        "aeron.mtu.length": ("4k", second, None),
    }


def test_shown_values_can_be_read(tmp_path: Path) -> None:
    """Every value, default or not, is read back unchanged; an empty value counts as not set."""
    given = {
        "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c",
        "aeron.archive.idle.strategy": "org.agrona.concurrent.NoOpIdleStrategy",
        "aeron.archive.recorder.idle.strategy": "sleep-ms",
        "aeron.archive.connect.timeout": "1500ms",
        "aeron.archive.catalog.capacity": "1048608",
        "aeron.archive.mark.file.dir": str(tmp_path),
        "aeron.archive.control.channel.enabled": "false",
        "aerotape.users.file": "users",
        "aerotape.ledgers.restored": "true",
    }
    for properties in ({}, given):
        settings = Settings(dict(properties), dict.fromkeys(properties, "-D"), sections=SECTIONS)
        config = settings.config()
        shown = {row.name: row.value for row in effective(config, settings, "/x")}
        assert set(properties_of(ArchiveConfig, *SECTIONS)) <= set(shown)
        del shown["aeron.dir"]
        if not shown["aerotape.users.file"]:
            del shown["aerotape.users.file"]
        assert ArchiveConfig.from_properties(shown, sections=SECTIONS) == config


def test_the_environment_of_the_media_driver_counts_where_the_archive_uses_it() -> None:
    """Variables that the embedded media driver reads itself set what the archive derives too."""
    settings = Settings()
    settings.take_environment(
        {
            "AERON_MTU_LENGTH": "4k",
            "AERON_PUBLICATION_LINGER_TIMEOUT": "2s",
            "AERON_DRIVER_TIMEOUT": "7000",
            "AERON_THREAD_NAMING": "new",
        }
    )
    config = settings.config()
    assert config.control_mtu_length == 4096
    assert config.replay_linger_timeout_ns == 2_000_000_000
    assert config.driver_timeout_ms == 7_000
    assert config.thread_naming == "new"


def test_the_environment_names_unknown_settings_of_the_archive() -> None:
    """A misspelt setting is a warning with the right name; settings of clients are ignored."""
    settings = Settings()
    settings.take_environment(
        {
            "AERON_ARCHIVE_SEGMENT_FILE_LENGHT": "64k",
            "AERON_ARCHIVE_MESSAGE_RETRY_ATTEMPTS": "5",
            "AERON_TERM_BUFFER_LENGTH": "64k",
            "AEROTAPE_JARS": "/jars",
            "AEROTAPE_USER": "alice",
            "HOME": "/",
        }
    )
    assert settings.values == {}
    (warning,) = settings.config().warnings
    assert "AERON_ARCHIVE_SEGMENT_FILE_LENGHT" in warning
    assert "did you mean AERON_ARCHIVE_SEGMENT_FILE_LENGTH?" in warning


def test_an_error_names_the_source_of_the_value(tmp_path: Path) -> None:
    """The error is one line with the file or the variable."""
    settings = Settings()
    place = file(tmp_path / "archive.properties", f"{SEGMENT}=3k\n")
    settings.take_files([place])
    with pytest.raises(ConfigurationError) as caught:
        settings.config()
    assert str(caught.value) == f"{SEGMENT}=3072: must be a power of two, 64k to 1g (from {place})"
    assert caught.value.name == SEGMENT


def test_a_bad_file_is_named_with_the_line(tmp_path: Path) -> None:
    """Malformed escapes, and files that cannot be read, are refused."""
    place = file(tmp_path / "bad", "a=1\nb=2\\\n  \\u12\n")
    with pytest.raises(ConfigurationError, match=rf"^properties file {place}: line 2: "):
        read_properties_file(place)
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_properties_file(tmp_path)


def test_files_may_be_file_urls(tmp_path: Path) -> None:
    """`file:` URLs are read as Java does; an `http:` URL and a missing file are one-line errors."""
    place = Path(file(tmp_path / "the archive.properties", "aeron.archive.id=7\n"))
    assert read_properties_file(place.as_uri()) == {"aeron.archive.id": "7"}
    for missing in ("file:///none", "file:", "file://["):
        with pytest.raises(ConfigurationError, match="cannot be read: ") as caught:
            read_properties_file(missing)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="not a local file; download it first"):
        read_properties_file("http://127.0.0.1:1/archive.properties")
