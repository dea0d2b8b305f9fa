"""SIGKILL during recording, at random moments: nothing that was recorded whole is lost.

The media driver and the publishers keep running in the process of the test. A round starts the
archive, checks the state after the previous kill, records two streams, each in a new recording or
in that of the previous round, notes the position counters, and kills the archive at a moment drawn
from the seed. Rounds and seed are options of pytest (`--seeds`, `--seed`).
"""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.model.placed_messages import PlacedPublisher, check_placed

import aerotape
from aerotape import _native
from aerotape.frame_header import ChecksumName
from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.crash

LATEST_KILL_S = 0.25
JAVA_NAMES = {"none": "", "crc-32c": "io.aeron.archive.checksum.Crc32c"}


_session_ids = itertools.count(1)


@dataclass
class Stream:
    """A stream that is being recorded, or was when the archive was killed."""

    stream_id: int
    recording_id: int
    counter_id: int
    publication: aerotape.ExclusivePublication
    publisher: PlacedPublisher
    reported: int = -1
    published: int = -1
    joins: tuple[int, ...] = ()

    def end(self) -> None:
        """Stop publishing."""
        self.publisher.stop()
        self.published = self.publication.position
        self.publication.close()


def begin(client: aerotape.ArchiveClient, stream_id: int, extended: Stream | None) -> Stream:
    """Publish a stream, and record it in a new recording, or extend the given one."""
    # Not the session of the previous round, which the driver still knows.
    channel = f"aeron:ipc?session-id={next(_session_ids)}"
    joins: tuple[int, ...] = ()
    if extended is None:
        client.start_recording(channel, stream_id)
    else:
        descriptor = client.list_recording(extended.recording_id)
        assert descriptor is not None
        channel = aerotape.extension_channel(descriptor, channel)
        client.extend_recording(extended.recording_id, channel, stream_id)
        joins = (*extended.joins, descriptor.stop_position)
    publication = client.aeron.add_exclusive_publication(channel, stream_id)
    publisher = PlacedPublisher(publication, stream_id)
    publisher.start()
    recording_id, counter_id = recording_counter(client.aeron, publication.session_id)
    return Stream(stream_id, recording_id, counter_id, publication, publisher, joins=joins)


def recording_counter(aeron: aerotape.Aeron, session_id: int) -> tuple[int, int]:
    """Return the ids of a session's recording and of its position counter, when they exist."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for counter_id, _, key, *_ in aeron.native.counters().rows(100):
            if int.from_bytes(key[8:12], "little", signed=True) == session_id:
                return int.from_bytes(key[:8], "little"), counter_id
        time.sleep(0.002)
    raise AssertionError("no recording has begun")


def check(archive_dir: Path, streams: list[Stream], checksum: ChecksumName, where: str) -> int:
    """Check each byte of the streams after a kill; return the number of messages."""
    count = 0
    for stream in streams:
        recording = open_directory(archive_dir).recording(stream.recording_id)
        stop = recording.descriptor.stop_position
        assert stream.reported <= stop <= stream.published, where
        count += check_placed(recording, checksum, where, joins=stream.joins)
    return count


@pytest.mark.parametrize("checksum", ["none", "crc-32c"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_kill_during_recording(
    driver: _native.MediaDriver,
    tmp_path: Path,
    level: int,
    checksum: ChecksumName,
    seeds: range,
) -> None:
    """After each kill the archive starts, and each recording equals what was published, at least up
    to the reported position."""
    rounds, seed = 2 * len(seeds), seeds.start
    draw = random.Random(f"{seed}/{level}/{checksum}")
    archive_dir, aeron_dir = tmp_path / "archive", Path(driver.aeron_dir)
    properties = {
        "aeron.archive.file.sync.level": str(level),
        "aeron.archive.catalog.file.sync.level": str(level),
        "aeron.archive.record.checksum": JAVA_NAMES[checksum],
    }
    checked = promised = 0
    streams: list[Stream] = []
    for number in range(rounds + 1):
        where = f"round {number} of --seed={seed}, checksum {checksum}, level {level}"
        archive = AerotapeArchive(archive_dir, aeron_dir, driver="external", properties=properties)
        with archive, aerotape.Aeron(aeron_dir) as aeron:
            checked += check(archive_dir, streams, checksum, where)
            if number == rounds:
                break
            with aerotape.connect(
                aeron=aeron, control_request_channel=archive.control_channel
            ) as client:
                before = {each.stream_id: each for each in streams}
                streams = [
                    begin(client, stream_id, before.get(stream_id) if draw.random() < 0.7 else None)
                    for stream_id in (1, 2)
                ]
                time.sleep(draw.uniform(0, LATEST_KILL_S))
                for each in streams:
                    each.reported = aeron.native.counters().value(each.counter_id)
                    promised += each.reported - (each.joins[-1] if each.joins else 0)
                archive.kill()
            for each in streams:
                each.end()
        age_mark_file(archive_dir)
    assert checked > 0
    assert promised > 0, "the counters have said nothing"
