"""Aliases of ledgers' recordings: reserved in requests, and without a meaning of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.daemon.recording import wait_until

import aerotape
from aerotape import QualifiedId, _native
from aerotape.archive.features.ledger.metadata_store import FILE_NAME
from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import ArchiveError, UnknownLedgerError
from aerotape.replay.offline.directory import open_directory

PROPERTIES = {
    "aeron.archive.segment.file.length": "1m",
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.archive.control.channel.enabled": "false",
}
LEDGER = QualifiedId(0, 7)
ALIASED = f"aeron:ipc?alias=ledger-{LEDGER}-pd"


@contextmanager
def running(driver: _native.MediaDriver, archive_dir: Path) -> Iterator[aerotape.ArchiveClient]:
    """An archive on a directory, and a client of it."""
    with (
        aerotape.Archive.launch(archive_dir, driver.aeron_dir, "external", PROPERTIES),
        aerotape.connect(aeron_dir=driver.aeron_dir) as client,
    ):
        yield client


def record(client: aerotape.ArchiveClient, stream_id: int) -> int:
    """Record one message, and return the id of the recording."""
    before = {each.recording_id for each in client.list_recordings()}
    subscription_id = client.start_recording("aeron:ipc", stream_id)
    with client.aeron.add_exclusive_publication("aeron:ipc", stream_id) as publication:
        publication.wait_connected()
        end = publication.send(b"message")
        wait_until(lambda: len(list(client.list_recordings())) > len(before), "the recording")
        [recording_id] = {each.recording_id for each in client.list_recordings()} - before
        wait_until(lambda: client.max_recorded_position(recording_id) == end, "the message")
    client.stop_recording_subscription(subscription_id)
    wait_until(lambda: client.stop_position(recording_id) == end, "the end of the recording")
    return recording_id


def forge(archive_dir: Path, recording_id: int) -> None:
    """Give a recording the alias of the ledger, as a replicated copy has it."""
    with Catalog.open(archive_dir) as catalog:
        catalog.replace_channel(recording_id, stripped_channel=ALIASED, original_channel=ALIASED)


@pytest.mark.parametrize("end", ["", "-closed", "-password", "-password-closed"])
def test_the_alias_of_a_ledger_is_reserved(
    driver: _native.MediaDriver, tmp_path: Path, end: str
) -> None:
    """A start, an extension and another channel with it are refused; nothing is recorded."""
    channel = ALIASED + end
    with running(driver, tmp_path) as client:
        recording_id = record(client, 7)
        requests: list[Callable[[], object]] = [
            lambda: client.start_recording(channel, 7),
            lambda: client.start_recording(channel, 7, auto_stop=True),
            lambda: client.extend_recording(recording_id, channel, 7),
            lambda: client.extend_recording(recording_id, channel, 7, auto_stop=True),
            lambda: client.update_channel(recording_id, channel),
        ]
        for request in requests:
            with pytest.raises(ArchiveError, match="is reserved for the recordings of ledgers"):
                request()
        assert list(client.list_recording_subscriptions()) == []
        [descriptor] = client.list_recordings()
        assert descriptor.original_channel == "aeron:ipc"


def test_metadata_protects_and_an_alias_does_not(
    driver: _native.MediaDriver, tmp_path: Path
) -> None:
    """Beside a ledger, a recording with its alias is a plain one; the ledger's is protected.

    It is so with the writer, without one, and after a restart.
    """
    with running(driver, tmp_path) as client:
        copy = record(client, 7)
        client.create_ledger(qualified_id=LEDGER).detach()
    forge(tmp_path, copy)
    with running(driver, tmp_path) as client:
        writer = client.open_ledger_writer(LEDGER)
        writer.add(b"entry")
        recording_id = client.ledger_info(LEDGER).recording_id
        for _ in range(2):
            for request in (
                lambda: client.purge_recording(recording_id),
                lambda: client.truncate_recording(recording_id, 0),
                lambda: client.extend_recording(recording_id, "aeron:ipc", 8),
                lambda: client.update_channel(recording_id, "aeron:ipc"),
                lambda: client.replicate(copy, "aeron:ipc", dst_recording_id=recording_id),
            ):
                with pytest.raises(ArchiveError, match=f"is that of ledger {LEDGER}"):
                    request()
            writer.detach()
        client.purge_recording(copy)
        client.delete_ledger(LEDGER)
        assert list(client.list_recordings()) == []


def test_the_first_recording_is_the_ledger_of_rebuilt_metadata(
    driver: _native.MediaDriver, tmp_path: Path
) -> None:
    """A later recording with its alias is reported, and stays a plain one."""
    with running(driver, tmp_path) as client:
        with client.create_ledger(qualified_id=LEDGER) as writer:
            writer.add(b"entry")
        copy = record(client, 7)
    forge(tmp_path, copy)
    (tmp_path / FILE_NAME).unlink()
    with running(driver, tmp_path) as client:
        assert [each.payload for each in client.open_ledger(LEDGER).read()] == [b"entry"]
        client.purge_recording(copy)
        client.delete_ledger(LEDGER)
        with pytest.raises(UnknownLedgerError):
            client.ledger_info(LEDGER)
    errors = [each.text for each in open_directory(tmp_path).mark_file().errors]
    assert any(f"recording {copy} has the alias of ledger {LEDGER}" in each for each in errors)
