"""A disk that stands still: the archive and the Python process that it runs in do not."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.daemon.daemon import AerotapeArchive
from support.daemon.recording import await_listed, new_stream_id, start_recording, stop, wait_until
from support.damage.still_disk import StillDisk, still_disk
from support.processes import ROOT, ChildProcess

import aerotape
from aerotape.catalog.mark.mark_file import MarkFile

pytestmark = pytest.mark.root
# `aerotape archive` beside a Python thread that appends a byte to a file fifty times a second.
_PROGRAM = """
import os, sys, threading, time
from aerotape.tools._cli.main import main

def count(file):
    while True:
        os.write(file, b".")
        time.sleep(0.02)

file = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
threading.Thread(target=count, args=(file,), daemon=True).start()
sys.exit(main(sys.argv[1:]))
"""


# Longer than the disk counts as responding after it did.
_PROBED_S = 0.1
_SMALL = {
    "aeron.archive.segment.file.length": "1m",
    "aeron.archive.low.storage.space.threshold": "1m",
}


class CountingArchive(AerotapeArchive):
    """An archive in a process with another Python thread."""

    @property
    def count(self) -> int:
        """How often that thread has run."""
        return self._counted.stat().st_size

    @property
    def _counted(self) -> Path:
        return self.aeron_dir.with_name("counted")

    def _launch(self) -> ChildProcess:
        command = [sys.executable, "-c", _PROGRAM, str(self._counted), "archive", "--json"]
        command += ["--dir", str(self.archive_dir), "--aeron-dir", str(self.aeron_dir)]
        command += [f"-D{name}={value}" for name, value in self._properties.items()]
        env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        return ChildProcess(command, env=env, dies_with_parent=True)

    def await_counting(self) -> None:
        """Wait until the thread has run some more."""
        count = self.count
        wait_until(lambda: self.count >= count + 5, "the other thread's work", 20.0)


@pytest.fixture
def still(tmp_path: Path) -> Iterator[StillDisk]:
    with still_disk(tmp_path / "still", 64 << 20) as disk:
        yield disk


@pytest.mark.parametrize("sync_level", [0, 1, 2])
def test_what_does_not_need_the_disk_goes_on(
    still: StillDisk, aeron_dir: Path, sync_level: int
) -> None:
    """While writes wait, other Python threads run, and pings, positions and lists are answered,
    also after the mark file was due and a recording has data; nothing is lost.
    """
    properties = {
        **_SMALL,
        "aeron.archive.file.sync.level": str(sync_level),
        "aeron.archive.catalog.file.sync.level": str(sync_level),
    }
    archive_dir = still.path / "archive"
    with CountingArchive(archive_dir, aeron_dir, properties=properties) as archive:
        client = archive.connect()
        made = start_recording(client, count=3)
        with still.frozen():
            # Longer than the interval at which the mark file is written.
            time.sleep(1.5)
            archive.await_counting()
            end = made.end
            made.send([b"while it stands still"] * 5)
            time.sleep(0.5)
            for _ in range(3):
                client.ping()
                assert client.recording_position(made.recording_id) == end
                [listed] = client.list_recordings()
                assert listed.recording_id == made.recording_id
                time.sleep(0.2)
            archive.await_counting()
        wait_until(lambda: client.recording_position(made.recording_id) == made.end, "recording")
        stop(client, made)
        client.close()
    [recording] = aerotape.open_directory(archive_dir).recordings()
    assert recording.descriptor.stop_position == made.end
    assert [each.payload for each in recording.messages()] == [sent[0] for sent in made.sent]
    assert not MarkFile.read(archive_dir).is_active()


@pytest.mark.parametrize("sync_level", [0, 2])
def test_changes_of_the_catalog_wait_alone(
    still: StillDisk, aeron_dir: Path, sync_level: int
) -> None:
    """While writes wait, a stop, a later start, a stream that begins and one that ends wait, and
    pings, positions and lists are answered; afterwards all are done, in their order.
    """
    properties = {**_SMALL, "aeron.archive.catalog.file.sync.level": str(sync_level)}
    archive_dir = still.path / "archive"
    with CountingArchive(archive_dir, aeron_dir, properties=properties) as archive:
        client, stopping, starting = (archive.connect() for _ in range(3))
        made, ended = (start_recording(client, count=3) for _ in range(2))
        begun = new_stream_id()
        client.start_recording("aeron:ipc", begun)
        with ThreadPoolExecutor() as threads, still.frozen():
            time.sleep(_PROBED_S)
            stop = threads.submit(stopping.stop_recording, "aeron:ipc", made.stream_id)
            time.sleep(0.1)
            start = threads.submit(starting.start_recording, "aeron:ipc", made.stream_id)
            publication = client.aeron.add_publication("aeron:ipc", begun)
            publication.wait_connected()
            end = ended.end
            ended.publication.close()
            for _ in range(3):
                time.sleep(0.2)
                client.ping()
                assert client.recording_position(made.recording_id) == made.end
                listed = {
                    each.recording_id: each.stop_position for each in client.list_recordings()
                }
                assert listed == {made.recording_id: -1, ended.recording_id: -1}
            archive.await_counting()
            assert not stop.done()
            assert not start.done()
        stop.result()
        start.result()
        wait_until(lambda: client.stop_position(made.recording_id) == made.end, "the stop")
        wait_until(lambda: client.stop_position(ended.recording_id) == end, "the end")
        begun_id = await_listed(client, begun)
        wait_until(lambda: len(list(client.list_recordings())) == 4, "the recording started again")
        for each in (client, stopping, starting):
            each.close()
    recordings = {
        each.recording_id: (each.descriptor.start_position, each.descriptor.stop_position)
        for each in aerotape.open_directory(archive_dir).recordings()
    }
    again = next(iter(recordings.keys() - {made.recording_id, ended.recording_id, begun_id}))
    assert recordings == {
        made.recording_id: (0, made.end),
        ended.recording_id: (0, end),
        begun_id: (0, 0),
        again: (made.end, made.end),
    }
    assert not MarkFile.read(archive_dir).is_active()


def test_a_request_of_a_closed_session_is_performed(still: StillDisk, aeron_dir: Path) -> None:
    """A stop that waits for the disk is performed although its client has closed."""
    with CountingArchive(still.path / "archive", aeron_dir, properties=_SMALL) as archive:
        client = archive.connect()
        hasty = archive.connect(timeout_ns=300_000_000)
        made = start_recording(client, count=3)
        recording_id = made.recording_id
        with still.frozen():
            time.sleep(_PROBED_S)
            with pytest.raises(aerotape.AeronTimeoutError):
                hasty.stop_recording_by_identity(recording_id)
            hasty.close()
            client.ping()
        wait_until(lambda: client.stop_position(recording_id) == made.end, "the stop position")
        made.publication.close()
        client.close()


def test_changes_that_wait_are_made_when_the_archive_closes(
    still: StillDisk, aeron_dir: Path
) -> None:
    """The stop position of a recording that ended while the disk stood still is written."""
    archive_dir = still.path / "archive"
    with CountingArchive(archive_dir, aeron_dir, properties=_SMALL) as archive:
        client = archive.connect()
        made = start_recording(client, count=3)
        with ThreadPoolExecutor() as threads, still.frozen():
            time.sleep(_PROBED_S)
            end = made.end
            made.publication.close()
            time.sleep(0.5)
            client.ping()
            client.close()
            stop = threads.submit(archive.stop)
            time.sleep(0.5)
        assert stop.result() == 0
    [recording] = aerotape.open_directory(archive_dir).recordings()
    assert recording.descriptor.stop_position == end
    assert not MarkFile.read(archive_dir).is_active()
