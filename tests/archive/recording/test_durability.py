"""The durability of a recording, named by a parameter of its channel."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.daemon.recording import wait_until

import aerotape
from aerotape import _native
from aerotape.counter_keys import CounterType
from aerotape.durability import Durability, durability_of
from aerotape.errors import ArchiveError, ConfigurationError

CHANNEL = "aeron:ipc?alias=orders|aerotape-durability=pd"
PROPERTIES = {
    "aeron.archive.segment.file.length": "1m",
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.archive.control.channel.enabled": "false",
}


def test_the_parameter_names_the_durability() -> None:
    """Only pd is one; a channel without the parameter has none."""
    found = durability_of(CHANNEL)
    assert isinstance(found, Durability) and found.sync == "pd" and len(found.key) == 16
    assert durability_of("aeron:ipc?alias=orders-pd") is None
    assert durability_of("aeron:ipc?alias=aerotape-durability") is None
    with pytest.raises(ConfigurationError, match="'vd' in channel=aeron:ipc"):
        durability_of("aeron:ipc?aerotape-durability=vd")


def confirmed(client: aerotape.ArchiveClient) -> int:
    """Return the number of recordings in progress with a confirmed position."""
    return len(list(client.aeron.counters().rows(CounterType.CONFIRMED_POSITION)))


def test_a_recording_keeps_the_durability_that_its_first_request_names(
    driver: _native.MediaDriver, tmp_path: Path
) -> None:
    """Also when a request without the parameter extends it, after a restart of the archive."""
    recording_id = -1
    for channel in (CHANNEL, "aeron:ipc?alias=orders"):
        with (
            aerotape.Archive.launch(tmp_path, driver.aeron_dir, "external", PROPERTIES),
            aerotape.connect(aeron_dir=driver.aeron_dir) as client,
        ):
            if recording_id < 0:
                client.start_recording(channel, 7, auto_stop=True)
                publication = client.aeron.add_exclusive_publication("aeron:ipc", 7)
            else:
                [recorded] = client.list_recordings()
                assert recorded.original_channel == CHANNEL
                assert "durability" not in recorded.stripped_channel
                client.extend_recording(recording_id, channel, 7, auto_stop=True)
                at_end = aerotape.extension_channel(recorded, "aeron:ipc")
                publication = client.aeron.add_exclusive_publication(at_end, 7)
            with publication:
                publication.wait_connected()
                publication.send(b"message")
                wait_until(lambda: confirmed(client) == 1, "the confirmed position")
                [recording_id] = [each.recording_id for each in client.list_recordings()]
            wait_until(lambda: confirmed(client) == 0, "the end of the recording")


def test_another_durability_is_refused(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """Nothing is recorded."""
    with (
        aerotape.Archive.launch(tmp_path, driver.aeron_dir, "external", PROPERTIES),
        aerotape.connect(aeron_dir=driver.aeron_dir) as client,
    ):
        with pytest.raises(ArchiveError, match="aerotape-durability='vd' in channel=aeron:ipc"):
            client.start_recording("aeron:ipc?aerotape-durability=vd", 7)
        assert list(client.list_recording_subscriptions()) == []
