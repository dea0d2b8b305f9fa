"""Ledgers over UDP from another media driver, and from another process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive

import aerotape
from aerotape import _native
from aerotape.errors import LedgerClosedError, UnconfirmedEntryError


@pytest.fixture
def remote(archive: ServedArchive, driver: _native.MediaDriver) -> Iterator[aerotape.ArchiveClient]:
    """A client with a media driver that is not the archive's."""
    with archive.connect(aeron_dir=Path(driver.aeron_dir)) as connected:
        yield connected


@pytest.mark.parametrize("kind", ["PD_JOURNAL", "VD_JOURNAL"])
def test_a_writer_on_another_driver(
    remote: aerotape.ArchiveClient, client: aerotape.ArchiveClient, kind: str
) -> None:
    """Without counters, adds are acknowledged by the archive, and LAC follows its type."""
    is_durable = kind == "PD_JOURNAL"
    written = [b"remote %d" % index for index in range(50)]
    with remote.create_ledger(kind) as writer:  # type: ignore[arg-type]
        assert writer._writing._confirmed_counter is None
        for payload in written[:10]:
            writer.add(payload)
        assert writer.last_add_confirmed == (9 if is_durable else -1)
        assert writer.add_many(written[10:]) == range(10, 50)
        assert writer.last_add_confirmed == (49 if is_durable else -1)
        with client.open_ledger_read_only(writer.qualified_id) as reader:
            assert [entry.payload for entry in reader.read_unconfirmed()] == written
            if not is_durable:
                with pytest.raises(UnconfirmedEntryError):
                    reader.read(0, 0)
        assert writer.sync() == writer.last_add_confirmed == 49
    with remote.open_ledger_read_only(writer.qualified_id) as reader:
        assert reader.is_closed
        assert [entry.payload for entry in reader.read()] == written


def test_fencing_a_writer_on_another_driver(
    remote: aerotape.ArchiveClient, client: aerotape.ArchiveClient
) -> None:
    """Its adds fail once the ledger is recovered; what it was acknowledged is there."""
    writer = remote.create_ledger()
    writer.add(b"acknowledged")
    with client.open_ledger(writer.qualified_id) as reader:
        with pytest.raises(LedgerClosedError):
            writer.add(b"late")
        assert [entry.payload for entry in reader.read()] == [b"acknowledged"]
    writer.close()


def test_detached_and_continued(
    remote: aerotape.ArchiveClient, client: aerotape.ArchiveClient
) -> None:
    """A ledger that began over UDP continues over IPC."""
    writer = remote.create_ledger()
    writer.add(b"over UDP")
    writer.detach()
    with client.open_ledger_writer(writer.qualified_id) as again:
        assert again.add(b"over IPC") == 1
    with remote.open_ledger_read_only(writer.qualified_id) as reader:
        assert [entry.payload for entry in reader.read()] == [b"over UDP", b"over IPC"]


WRITER = """
import sys
import aerotape

with aerotape.connect(aeron_dir=sys.argv[1]) as client:
    writer = client.create_ledger("VD_JOURNAL", sys.argv[2])
    for index in range(1_000):
        writer.add_async(b"%d" % index)
    print(writer.flush(), writer.sync(), writer.add(b"unconfirmed"), flush=True)
    sys.stdin.read()
"""


def test_a_writer_in_another_process(
    archive: ServedArchive, client: aerotape.ArchiveClient
) -> None:
    """Another process reads and recovers what a process writes that is killed then."""
    name = "00000000000000aa00000000000000bb"
    command = [sys.executable, "-c", WRITER, str(archive.aeron_dir), name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "999 999 1000\n"
        with client.open_ledger_read_only(name) as reader:
            assert reader.last_add_confirmed == 999
            assert len(list(reader.read())) == 1_000
            [last] = reader.read_unconfirmed(1_000)
            assert (last.payload, last.last_add_confirmed) == (b"unconfirmed", 999)
        process.kill()
    with client.open_ledger(name) as reader:
        assert [entry.entry_id for entry in reader.read()] == list(range(1_001))
