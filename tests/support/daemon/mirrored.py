"""Archives that mirror each other's ledgers, each a process that can be stopped and killed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aerotape
from aerotape.catalog.segment_files import list_segment_files
from aerotape.client.blocking.ledgers import LedgerWriter
from aerotape.client.ledger.requests import LedgerInfo
from aerotape.errors import ArchiveError
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.daemon.stopped import stopped
from support.processes import free_port

Properties = Mapping[str, str] | None


class Three:
    """A leader and two mirrors, and maybe more archives."""

    def __init__(self, folder: Path, count: int = 3, properties: Properties = None) -> None:
        """Start the archives, all at the same time, with these properties at each of their starts.

        Archives that are to be lost should have a short `connect.timeout` and `message.timeout`:
        the others wait for them that long.
        """
        self.folder = folder
        self.exits = ExitStack()
        self.ports = [free_port() for _ in range(count)]
        self._properties = {"aeron.archive.message.timeout": "5s", **(properties or {})}
        self.archives = [self._launched(index) for index in range(count)]
        for archive in self.archives:
            archive.await_ready()

    def start(self, index: int, properties: Properties = None) -> AerotapeArchive:
        """Start an archive, or start it again after it was killed."""
        return self._launched(index, properties).await_ready()

    def _launched(self, index: int, properties: Properties = None) -> AerotapeArchive:
        archive = AerotapeArchive(
            self.folder / f"archive{index}",
            self.folder / f"aeron{index}",
            control_port=self.ports[index],
            properties={**self._properties, **(properties or {})},
        )
        archive.launch()
        return self.exits.enter_context(archive)

    def stopped(self, index: int) -> AbstractContextManager[None]:
        """Stop all threads of an archive."""
        return stopped(self.archives[index].process.pid)

    def kill(self, index: int) -> None:
        self.archives[index].kill()

    def restart(self, index: int, properties: Properties = None) -> None:
        age_mark_file(self.archives[index].archive_dir)
        self.archives[index] = self.start(index, properties)

    @property
    def mirrors(self) -> list[str]:
        return [archive.control_channel for archive in self.archives[1:3]]

    @contextmanager
    def client(self, index: int = 0, timeout_s: float = 10.0) -> Iterator[aerotape.ArchiveClient]:
        archive = self.archives[index]
        with aerotape.connect(
            aeron_dir=archive.aeron_dir,
            control_request_channel=archive.control_channel,
            timeout_ns=int(timeout_s * 1e9),
        ) as client:
            yield client

    def create(
        self, client: aerotape.ArchiveClient, kind: Any, ack_quorum: int = 2, mirrors: int = 2
    ) -> LedgerWriter:
        """Create a ledger with so many of the mirrors."""
        return client.create_ledger(
            type=kind,
            write_quorum=mirrors + 1,
            ack_quorum=ack_quorum,
            mirrors=self.mirrors[:mirrors],
        )

    def entries(self, index: int, ledger: aerotape.QualifiedId) -> list[bytes]:
        """Read what an archive has, confirmed or not.

        Nothing before it knows the ledger, and while a mirror that returns drops entries: they may
        be gone between the request for the last one and the replay.
        """
        with self.client(index) as client:
            try:
                reader = client.open_ledger_read_only(ledger)
                return [entry.payload for entry in reader.read_unconfirmed()]
            except ArchiveError:
                return []

    def info(self, index: int, ledger: aerotape.QualifiedId) -> LedgerInfo:
        with self.client(index) as client:
            return client.ledger_info(ledger)

    def await_equal(self, ledger: aerotape.QualifiedId, expected: list[bytes]) -> None:
        """Wait until all archives have the same entries."""
        await_true(lambda: all(self.entries(index, ledger) == expected for index in range(3)))


def payloads(begin: int, end: int) -> list[bytes]:
    return [b"payload %d" % number * (number % 40) for number in range(begin, end)]


@contextmanager
def running(count: int = 3, properties: Properties = None) -> Iterator[Three]:
    """Run archives in a temporary directory, with properties."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base, prefix="aerotape-test-") as folder:
        three = Three(Path(folder), count, properties)
        with three.exits:
            yield three


def cut(archive_dir: Path, recording_id: int, position: int) -> None:
    """Drop what the segment files of a recording have from a position on, as a power cut can."""
    for segment in list_segment_files(archive_dir, recording_id):
        with segment.path.open("r+b") as file:
            length = file.seek(0, 2)
            file.seek(max(0, position - segment.base_position))
            file.write(bytes(max(0, length - file.tell())))
