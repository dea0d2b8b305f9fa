"""Large topics: reading in bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.daemon.archives import ServedArchive, serve
from support.entity.topics import new_topic
from support.jvm.java import ROOT

from aerotape.codecs.entity import Event

CHANNEL = "aeron:ipc?term-length=4m"
READER = """
import resource, sys
import aerotape

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

aeron_dir, control, topic, buffer_length = sys.argv[1:]
with (
    aerotape.connect(aeron_dir=aeron_dir, control_request_channel=control) as client,
    client.entities(topic, buffer_length=int(buffer_length), channel="CHANNEL") as journal,
):
    assert [record.seq_nr for record in journal.read("small")] == [1]
    before, count, last = peak(), 0, 0
    for record in journal.read("large"):
        assert record.seq_nr == last + 1
        last, count = record.seq_nr, count + 1
    print(count, (peak() - before) * 1024)
""".replace("CHANNEL", CHANNEL)


@pytest.fixture(scope="module")
def archive() -> Iterator[ServedArchive]:
    with serve("aerotape", {"aeron.archive.segment.file.length": "64m"}) as served:
        yield served


def read_in_a_process(archive: ServedArchive, topic: str, buffer_length: int) -> tuple[int, int]:
    """Read a journal; return its events and by how many bytes the process grew."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            READER,
            archive.aeron_dir,
            archive.control_channel,
            topic,
            str(buffer_length),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    count, grown = done.stdout.split()
    return int(count), int(grown)


def test_memory_of_a_reader_is_bounded(archive: ServedArchive, seeds: range) -> None:
    """A journal that is far larger than the buffer is read without growing."""
    topic, size, length = new_topic(), 8000, len(seeds) << 28
    payload = bytes(size)
    with archive.connect() as client, client.entities(topic, channel=CHANNEL) as journal:
        journal.append("small", [Event(1)])
        journal.append_many(
            ("large", [Event(number, payload, "binary")]) for number in range(1, length // size + 1)
        )
    count, grown = read_in_a_process(archive, topic, 1 << 20)
    assert count == length // size
    assert grown < 32 << 20
