"""SIGKILL during recording, at random moments: nothing that was recorded whole is lost.

The media driver and the publisher live on in the test's own process. A round: start the archive,
record, kill it at a moment drawn from the seed, start it again, and compare what is left with what
was published. Rounds and seed are options of pytest (`--kill-rounds`, `--kill-seed`).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon import AerotapeArchive, age_mark_file
from support.messages import message, messages

import aerotape
from aerotape import _native
from aerotape.catalog.directory import open_directory
from aerotape.replay.reader import read_messages

MAX_LENGTH = 6_000
MAX_FRAME = 1_408
LATEST_KILL_S = 0.25
CRC_32C = {"aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c"}


@pytest.fixture
def driver(aeron_dir: Path) -> Iterator[_native.MediaDriver]:
    """A media driver that outlives the archives."""
    running = _native.MediaDriver.launch(
        {
            "aeron.dir": str(aeron_dir),
            "aeron.threading.mode": "SHARED",
            "aeron.term.buffer.sparse.file": "true",
            "aeron.ipc.term.buffer.length": "65536",
        }
    )
    yield running
    running.close()


class Publisher(threading.Thread):
    """Publishes the messages of a seed until it is told to stop."""

    def __init__(self, publication: aerotape.ExclusivePublication, seed: int) -> None:
        super().__init__(daemon=True)
        self.publication = publication
        self.seed = seed
        self.stopped = threading.Event()

    def run(self) -> None:
        index = 0
        while not self.stopped.is_set():
            payload = message(self.seed, index, max_length=MAX_LENGTH)
            while self.publication.offer(payload) < 0 and not self.stopped.is_set():
                time.sleep(0.0002)
            index += 1


def recording_counter(aeron: aerotape.Aeron, session_id: int) -> int:
    """The position counter of a session's recording, once it is there."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for counter_id, _, key, *_ in aeron.native.counters().rows(100):
            if int.from_bytes(key[8:12], "little", signed=True) == session_id:
                return counter_id
        time.sleep(0.002)
    raise AssertionError("no recording has begun")


@pytest.mark.parametrize("checksum", ["crc-32c", "none"])
def test_kill_during_recording(
    driver: _native.MediaDriver,
    tmp_path: Path,
    checksum: _native.ChecksumName,
    request: pytest.FixtureRequest,
) -> None:
    """After each kill the archive starts, and the recording is what was published, up to the
    position that had been reported (without checksums a last frame that may be torn can go)."""
    rounds: int = request.config.getoption("--kill-rounds")
    seed: int = request.config.getoption("--kill-seed")
    moments = random.Random(f"{seed}/{checksum}")
    archive_dir = tmp_path / "archive"
    properties = CRC_32C if checksum == "crc-32c" else {}
    checked = 0

    for number in range(rounds):
        where = f"round {number} of --kill-seed={seed}, checksum {checksum}"
        archive = AerotapeArchive(
            archive_dir, Path(driver.aeron_dir), driver="external", properties=properties
        )
        with archive, aerotape.Aeron(driver.aeron_dir) as aeron:
            with aerotape.connect(
                aeron=aeron, control_request_channel=archive.control_channel
            ) as client:
                for descriptor in client.list_recordings():
                    assert descriptor.stop_position >= 0, where
                client.start_recording("aeron:ipc", number, "local")
                publication = aeron.add_exclusive_publication("aeron:ipc", number)
                publisher = Publisher(publication, number)
                publisher.start()
                counter_id = recording_counter(aeron, publication.session_id)
                time.sleep(moments.uniform(0, LATEST_KILL_S))
                reported = aeron.native.counters().value(counter_id)
                archive.kill()
            publisher.stopped.set()
            publisher.join()
            published = publication.position
            publication.close()
        age_mark_file(archive_dir)

        with AerotapeArchive(
            archive_dir, Path(driver.aeron_dir), driver="external", properties=properties
        ):
            recording = open_directory(archive_dir).recordings()[-1]
            assert recording.descriptor.stream_id == number, where
            stop = recording.descriptor.stop_position
            slack = 0 if checksum == "crc-32c" else MAX_FRAME
            assert max(reported - slack, 0) <= stop <= published, where
            kept = [each.payload for each in read_messages(recording, checksum=checksum)]
            assert kept == list(messages(number, len(kept), max_length=MAX_LENGTH)), where
            checked += len(kept)
    assert checked > 0
