"""Damaged frame headers in the recording of a ledger, as the clients of an archive see them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.ledger.flipped_bits import flip

import aerotape
from aerotape import QualifiedId, _native, aio
from aerotape.errors import EntryDigestError
from aerotape.replay.offline.directory import open_directory

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


def read_past_damage(client: aerotape.ArchiveClient, ledger: QualifiedId) -> dict[int, bytes]:
    """Read all entries; those that are damaged are left out."""
    reader = client.open_ledger_read_only(ledger)
    found: dict[int, bytes] = {}
    first = 0
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
