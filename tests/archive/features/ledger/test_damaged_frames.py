"""Damaged frame headers in the recording of a ledger, as the clients of an archive see them."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.daemon.recording import wait_until
from support.ledger.flipped_bits import flip, zero

import aerotape
from aerotape import QualifiedId, _native, aio
from aerotape.archive.features.ledger.metadata_store import FILE_NAME
from aerotape.errors import EntryDigestError
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.tools._cli.main import main

CHANNEL = "aeron:ipc?term-length=64k"
SENT = [b"<%04d>" % index * 20 for index in range(1_000)]
PROPERTIES = {
    "aeron.archive.segment.file.length": "128k",
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.archive.control.channel.enabled": "false",
}


@contextmanager
def running(
    driver: _native.MediaDriver, archive_dir: Path
) -> Iterator[aerotape.ArchiveClient]:
    """An archive on a directory, and a client of it."""
    with (
        aerotape.Archive.launch(archive_dir, driver.aeron_dir, "external", PROPERTIES),
        aerotape.connect(aeron_dir=driver.aeron_dir) as client,
    ):
        yield client


def read_past_damage(
    client: aerotape.ArchiveClient, ledger: QualifiedId, first: int = 0
) -> dict[int, bytes]:
    """Read all entries from one on; those that are damaged are left out."""
    reader = client.open_ledger_read_only(ledger)
    found: dict[int, bytes] = {}
    while True:
        try:
            for entry in reader.read(first):
                found[entry.entry_id] = entry.payload
                first = entry.entry_id + 1
            return found
        except EntryDigestError as error:
            assert f"entry {first} " in str(error)
            first += 1


def read_in_a_loop(aeron_dir: str, ledger: QualifiedId) -> int:
    """Return how many entries the asyncio client reads before the damaged one."""

    async def read() -> int:
        count = 0
        async with aio.connect(aeron_dir=aeron_dir) as client:
            reader = await client.open_ledger_read_only(ledger)
            with pytest.raises(EntryDigestError):
                async for _ in reader.read():
                    count += 1
        return count

    return asyncio.run(read())


# Of the length and the flags of a frame; of the id of an entry.
@pytest.mark.parametrize(("offset", "bit"), [(1, 7), (5, 7), (5, 6), (47, 3)])
@pytest.mark.parametrize("number", [0, 500, 999])
def test_one_flipped_bit_of_a_header(
    driver: _native.MediaDriver, tmp_path: Path, offset: int, bit: int, number: int
) -> None:
    """One entry is damaged, the others are read, and a writer continues after the last one."""
    with running(driver, tmp_path) as client:
        writer = client.create_ledger(channel=CHANNEL)
        writer.add_many(SENT)
        writer.detach()
        ledger = writer.qualified_id
    [recording] = open_directory(tmp_path).recordings()
    messages = list(recording.messages())
    flip(tmp_path, recording.descriptor.recording_id, messages[number].position + offset, bit)
    expected = {index: sent for index, sent in enumerate(SENT) if index != number}
    with running(driver, tmp_path) as client:
        assert client.ledger_info(ledger).last_add_confirmed == 999
        assert read_past_damage(client, ledger) == expected
        assert read_in_a_loop(driver.aeron_dir, ledger) == number
        with client.open_ledger_writer(ledger, channel=CHANNEL) as again:
            assert again.add(b"again") == 1_000
        assert read_past_damage(client, ledger) == {**expected, 1_000: b"again"}


def killed(archive_dir: Path, copy: Path) -> None:
    """Copy the directory of a running archive, as it is after SIGKILL."""
    shutil.copytree(archive_dir, copy)
    (copy / "archive-mark.dat").unlink()


def cut_power(archive_dir: Path) -> None:
    """Have what was noted of the directory be of an earlier run of the machine."""
    with sqlite3.connect(archive_dir / FILE_NAME) as connection:
        connection.execute("UPDATE forced SET boot = 'earlier'")
    connection.close()


def synced_and_killed(
    driver: _native.MediaDriver, tmp_path: Path, kind: Any
) -> tuple[QualifiedId, Recording]:
    """Add entries and sync; `killed` is as the directory is after a SIGKILL then.

    Returns:
        The ledger, and its recording in the directory of the archive, which has stopped.
    """
    with running(driver, tmp_path / "archive") as client:
        writer = client.create_ledger(kind, channel=CHANNEL)
        writer.add_many(SENT)
        assert writer.sync() == 999
        killed(tmp_path / "archive", tmp_path / "killed")
        ledger = writer.qualified_id
    [recording] = open_directory(tmp_path / "archive").recordings()
    return ledger, recording


@pytest.mark.parametrize("size", [600, 1_200, 5_000])
@pytest.mark.parametrize("is_power_cut", [False, True])
def test_a_kill_after_an_entry_of_zeros(
    driver: _native.MediaDriver, tmp_path: Path, size: int, is_power_cut: bool
) -> None:
    """It is acknowledged, and does not count as torn because sectors of it are empty."""
    with running(driver, tmp_path / "archive") as client:
        writer = client.create_ledger(channel=CHANNEL)
        for index in range(12):
            assert writer.add(bytes(size)) == index
            killed(tmp_path / "archive", tmp_path / str(index))
        ledger = writer.qualified_id
    for index in range(12):
        if is_power_cut:
            cut_power(tmp_path / str(index))
        with running(driver, tmp_path / str(index)) as client:
            assert client.ledger_info(ledger).last_add_confirmed == index


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
@pytest.mark.parametrize("is_power_cut", [False, True])
@pytest.mark.parametrize("number", [900, 999])
@pytest.mark.parametrize(("offset", "bit"), [(1, 7), (5, 7), (47, 3)])
def test_one_flipped_bit_after_a_kill(
    driver: _native.MediaDriver,
    tmp_path: Path,
    kind: Any,
    is_power_cut: bool,
    number: int,
    offset: int,
    bit: int,
) -> None:
    """Nothing that was synced is cut at the start, and ids are not used again."""
    ledger, recording = synced_and_killed(driver, tmp_path, kind)
    position = list(recording.messages())[number].position
    flip(tmp_path / "killed", recording.descriptor.recording_id, position + offset, bit)
    if is_power_cut:
        cut_power(tmp_path / "killed")
    expected = {index: sent for index, sent in enumerate(SENT) if index != number}
    with running(driver, tmp_path / "killed") as client:
        assert client.ledger_info(ledger).last_add_confirmed == 999
        assert read_past_damage(client, ledger) == expected
        with client.open_ledger_writer(ledger, channel=CHANNEL) as again:
            assert again.add(b"again") == 1_000


def test_the_id_of_a_last_entry_without_a_digest(
    driver: _native.MediaDriver, tmp_path: Path
) -> None:
    """The ids of the entries before it show which one it had."""
    with running(driver, tmp_path) as client:
        writer = client.create_ledger(digest_type="DUMMY")
        writer.add_many(SENT)
        writer.detach()
        ledger = writer.qualified_id
    [recording] = open_directory(tmp_path).recordings()
    position = list(recording.messages())[-1].position
    # Of version 2: the id comes after scope and ledger.
    flip(tmp_path, recording.descriptor.recording_id, position + 32 + 8 + 8 + 8 + 7, 3)
    with running(driver, tmp_path) as client:
        assert client.ledger_info(ledger).last_add_confirmed == 999
        with client.open_ledger_writer(ledger) as again:
            assert again.add(b"again") == 1_000


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
@pytest.mark.parametrize("end", ["detach", "stop"])
@pytest.mark.parametrize("is_power_cut", [False, True])
def test_the_last_entries_are_lost(
    driver: _native.MediaDriver, tmp_path: Path, kind: Any, end: str, is_power_cut: bool
) -> None:
    """After an orderly end it is known which id the last one had, after each start."""
    with running(driver, tmp_path) as client:
        writer = client.create_ledger(kind, channel=CHANNEL)
        writer.add_many(SENT)
        writer.sync()
        ledger = writer.qualified_id
        if end == "detach":
            writer.detach()
    [recording] = open_directory(tmp_path).recordings()
    places = [each.position for each in recording.messages()]
    zero(tmp_path, recording.descriptor.recording_id, places[960], recording.recorded_position)
    if is_power_cut:
        cut_power(tmp_path)
    expected = dict(enumerate(SENT[:960]))
    for _ in range(2):
        with running(driver, tmp_path) as client:
            assert client.ledger_info(ledger).last_add_confirmed == 999
            assert read_past_damage(client, ledger) == expected
    with running(driver, tmp_path) as client:
        with client.open_ledger_writer(ledger, channel=CHANNEL) as again:
            assert again.add(b"again") == 1_000
        assert read_past_damage(client, ledger) == {**expected, 1_000: b"again"}


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
@pytest.mark.parametrize("is_power_cut", [False, True])
@pytest.mark.parametrize("first", [0, 585, 960, 999])
def test_the_last_entries_are_lost_after_a_kill(
    driver: _native.MediaDriver, tmp_path: Path, kind: Any, is_power_cut: bool, first: int
) -> None:
    """What was synced belongs to the ledger, also where whole segment files are zeros."""
    ledger, recording = synced_and_killed(driver, tmp_path, kind)
    place = list(recording.messages())[first].position
    zero(tmp_path / "killed", recording.descriptor.recording_id, place, recording.recorded_position)
    if is_power_cut:
        cut_power(tmp_path / "killed")
    sound = dict(enumerate(SENT[980:first], 980))
    for _ in range(2):
        with running(driver, tmp_path / "killed") as client:
            assert client.ledger_info(ledger).last_add_confirmed == 999
            assert read_past_damage(client, ledger, 980) == sound
    with running(driver, tmp_path / "killed") as client:
        with client.open_ledger_writer(ledger, channel=CHANNEL) as again:
            assert again.add(b"again") == 1_000
        assert read_past_damage(client, ledger, 980) == {**sound, 1_000: b"again"}
        if first:
            found = client.open_ledger_read_only(ledger).read(0, first - 1)
            assert [each.payload for each in found] == SENT[:first]


@pytest.mark.parametrize("is_power_cut", [False, True])
@pytest.mark.parametrize("what", ["a bit", "the end", "the file"])
def test_what_a_ledger_has_on_storage_is_noted_without_a_sync(
    driver: _native.MediaDriver, tmp_path: Path, is_power_cut: bool, what: str
) -> None:
    """An acknowledged entry is not cut, and its id is not used again, after about a second."""
    with running(driver, tmp_path / "archive") as client:
        writer = client.create_ledger(channel=CHANNEL)
        for sent in SENT[:20]:
            writer.add(sent)
        end = 20 * 224
        with closing(sqlite3.connect(tmp_path / "archive" / FILE_NAME)) as connection:
            noted = "SELECT position FROM forced"
            wait_until(lambda: connection.execute(noted).fetchone() == (end,), "a note")
        killed(tmp_path / "archive", tmp_path / "killed")
        ledger = writer.qualified_id
    if what == "a bit":
        flip(tmp_path / "killed", 0, end - 30, 0)
    elif what == "the end":
        zero(tmp_path / "killed", 0, 10 * 224, end)
    else:
        (tmp_path / "killed" / "0-0.rec").unlink()
    if is_power_cut:
        cut_power(tmp_path / "killed")
    expected = dict(enumerate(SENT[: {"a bit": 19, "the end": 10}.get(what, 0)]))
    with running(driver, tmp_path / "killed") as client:
        assert read_past_damage(client, ledger) == expected
        with client.open_ledger_writer(ledger, channel=CHANNEL) as again:
            new = again.add(b"again")
        # Of frames that are lost it is not known how many they were.
        assert new == 20 if what == "a bit" else 20 <= new <= 20 + 30
        assert read_past_damage(client, ledger) == {**expected, new: b"again"}


@pytest.mark.parametrize("number", [500, 999])
@pytest.mark.parametrize(
    ("is_killed", "is_lost"), [(False, False), (False, True), (True, False)]
)
def test_damage_with_metadata_that_cannot_be_read(
    driver: _native.MediaDriver, tmp_path: Path, number: int, is_killed: bool, is_lost: bool
) -> None:
    """Nothing is cut while it is not known what was on storage."""
    with running(driver, tmp_path / "archive") as client:
        writer = client.create_ledger(channel=CHANNEL)
        writer.add_many(SENT)
        writer.sync()
        ledger = writer.qualified_id
        if is_killed:
            killed(tmp_path / "archive", tmp_path / "after")
    if not is_killed:
        shutil.copytree(tmp_path / "archive", tmp_path / "after")
    [recording] = open_directory(tmp_path / "archive").recordings()
    flip(tmp_path / "after", 0, list(recording.messages())[number].position + 1, 7)
    metadata = tmp_path / "after" / FILE_NAME
    if is_lost:
        metadata.unlink()
    else:
        metadata.write_bytes(b"not a database" * 1_000)
    expected = {index: sent for index, sent in enumerate(SENT) if index != number}
    with running(driver, tmp_path / "after") as client:
        assert client.ledger_info(ledger).last_add_confirmed == 999
        assert read_past_damage(client, ledger) == expected
        with client.open_ledger_writer(ledger, channel=CHANNEL) as again:
            assert again.add(b"again") == 1_000


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("number", [500, 999])
def test_tools_do_not_cut_a_ledger(
    driver: _native.MediaDriver, tmp_path: Path, is_killed: bool, number: int
) -> None:
    """Damage becomes padding, also at the end, and the ids after it are not used again."""
    archive_dir = tmp_path / "archive"
    with running(driver, archive_dir) as client:
        writer = client.create_ledger(channel=CHANNEL)
        writer.add_many(SENT)
        writer.sync()
        ledger = writer.qualified_id
        if is_killed:
            killed(archive_dir, tmp_path / "killed")
    [recording] = open_directory(archive_dir).recordings()
    end, place = recording.recorded_position, list(recording.messages())[number].position
    archive_dir = tmp_path / "killed" if is_killed else archive_dir
    flip(archive_dir, 0, place + 1, 7)
    before = (archive_dir / "archive.catalog").read_bytes()
    assert main(["tool", str(archive_dir), "verify", "-a", "--yes"]) == 3
    assert main(["tool", str(archive_dir), "repair", "--cut"]) == 3
    assert (archive_dir / "archive.catalog").read_bytes() == before
    assert not (archive_dir / "aerotape-quarantine").exists()
    assert main(["tool", str(archive_dir), "repair"]) == 3
    expected = {index: sent for index, sent in enumerate(SENT) if index != number}
    with running(driver, archive_dir) as client:
        recorded = client.list_recording(0)
        assert recorded is not None
        assert recorded.stop_position == end
        assert client.ledger_info(ledger).last_add_confirmed == 999
        assert read_past_damage(client, ledger) == expected
        with client.open_ledger_writer(ledger, channel=CHANNEL) as again:
            assert again.add(b"again") == 1_000
