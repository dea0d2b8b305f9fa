"""An archive directory in the directory of its media driver, which deletes that when it starts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.processes import free_port

from aerotape import Archive, MediaDriver, connect
from aerotape.errors import ConfigurationError
from aerotape.tools._cli.main import main


def launch(driver: Path, archive: Path, **properties: object) -> Archive:
    given = {
        "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
        "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
        "aeron.archive.segment.file.length": 131_072,
        "aeron.ipc.term.buffer.length": 65_536,
        **{name.replace("__", "."): value for name, value in properties.items()},
    }
    return Archive.launch(archive, driver, properties=given)


def record(archive: Archive) -> None:
    """Record a message."""
    with connect(
        aeron_dir=archive.aeron_dir, control_request_channel=archive.control_channel
    ) as client:
        client.start_recording("aeron:ipc", 7)
        with client.aeron.add_exclusive_publication("aeron:ipc", 7) as publication:
            end = publication.send(b"hello", timeout_ns=10_000_000_000)
            while not (ids := [each.recording_id for each in client.list_recordings()]):
                pass
            while client.max_recorded_position(ids[0]) < end:
                pass


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*.rec")
        if path.is_file()
    }


@pytest.fixture
def driver(aeron_dir: Path) -> Path:
    return aeron_dir


@pytest.mark.parametrize("inside", ["archive", "a/b/archive", "."])
def test_a_new_archive_can_be_there(driver: Path, inside: str) -> None:
    """As with Java's archive. Its recordings then keep any driver from being started there."""
    directory = driver / inside
    with launch(driver, directory) as archive:
        assert archive.archive_dir == directory.resolve()
        assert (directory / "archive.catalog").exists()
    # Without a recording there is nothing to lose.
    with launch(driver, directory) as archive:
        record(archive)
    before = tree(driver)
    assert before
    with pytest.raises(ConfigurationError) as refused:
        launch(driver, directory)
    assert f"aeron.archive.dir={directory} is in aeron.dir={driver}" in str(refused.value)
    with pytest.raises(ConfigurationError, match=f"aeron.dir={driver}: a media driver deletes"):
        MediaDriver.launch(driver)
    with pytest.raises(ConfigurationError, match="has recordings of an archive"):
        launch(driver, driver.parent / "other", aeron__dir__delete__on__start=True)
    assert main(["driver", "--aeron-dir", str(driver)]) == 2
    assert tree(driver) == before


@pytest.mark.parametrize("link", ["of the archive", "out of the driver", "of the driver"])
def test_links_that_lead_there_are_followed(tmp_path: Path, driver: Path, link: str) -> None:
    """Nothing is deleted: neither the recordings nor the link by which they are found."""
    with launch(tmp_path / "first", tmp_path / "recordings") as archive:
        record(archive)
    if link == "of the archive":
        driver.mkdir()
        shutil.move(tmp_path / "recordings", driver / "recordings")
        directory = tmp_path / "link"
        directory.symlink_to(driver / "recordings")
    elif link == "out of the driver":
        driver.mkdir()
        directory = driver / "link"
        directory.symlink_to(tmp_path / "recordings")
    else:
        (tmp_path / "real").mkdir()
        (tmp_path / "recordings").rename(tmp_path / "real/recordings")
        driver.symlink_to(tmp_path / "real")
        directory = driver / "recordings"
    before = sorted(os.walk(tmp_path)), sorted(os.walk(driver)), tree(directory)
    with pytest.raises(ConfigurationError, match=f"aeron.archive.dir={directory} is in aeron.dir"):
        launch(driver, directory)
    assert (sorted(os.walk(tmp_path)), sorted(os.walk(driver)), tree(directory)) == before


def test_recordings_in_the_directory_of_the_mark_file(tmp_path: Path, driver: Path) -> None:
    """The same for a mark file's directory that has recordings, here of another archive."""
    with launch(tmp_path / "first", tmp_path / "recordings") as archive:
        record(archive)
    driver.mkdir()
    shutil.move(tmp_path / "recordings", driver / "marks")
    before = tree(driver)
    with pytest.raises(ConfigurationError, match=f"aeron.archive.mark.file.dir={driver}/marks is"):
        launch(driver, tmp_path / "new", aeron__archive__mark__file__dir=driver / "marks")
    assert tree(driver) == before


def test_an_archive_that_deletes_its_directory_can_be_there(driver: Path) -> None:
    """aeron.archive.dir.delete.on.start gives its recordings up."""
    options: dict[str, Any] = {"aeron__archive__dir__delete__on__start": True}
    for _ in range(2):
        with launch(driver, driver / "archive", **options) as archive:
            assert not tree(driver)
            record(archive)
    assert tree(driver)


def test_recordings_survive_the_end_of_the_driver(driver: Path) -> None:
    """Although the driver is to delete its directory; without recordings it does."""
    options: dict[str, Any] = {"aeron__dir__delete__on__shutdown": True}
    launch(driver, driver / "archive", **options).close()
    assert not driver.exists()
    with launch(driver, driver / "archive", **options) as archive:
        record(archive)
    assert tree(driver)
