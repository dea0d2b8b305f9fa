"""Large topics: reading in bounded memory, and the rate of appends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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


@pytest.mark.parametrize(
    "length", [96 << 20, pytest.param(1 << 30, marks=pytest.mark.slow, id="1g")]
)
def test_memory_of_a_reader_is_bounded(archive: ServedArchive, length: int) -> None:
    """A journal that is far larger than the buffer is read without growing."""
    topic, size = new_topic(), 8000
    payload = bytes(size)
    with archive.connect() as client, client.entities(topic, channel=CHANNEL) as journal:
        journal.append("small", [Event(1)])
        journal.append_many(
            ("large", [Event(number, payload, "binary")]) for number in range(1, length // size + 1)
        )
    count, grown = read_in_a_process(archive, topic, 1 << 20)
    assert count == length // size
    assert grown < 32 << 20


def test_rate_of_appends(archive: ServedArchive) -> None:
    """Pipelined appends of 256 bytes are fast enough that encoding is cheap.

    The limit is low because the machine may be busy; the benchmark expects 100,000/s.
    """
    count = 50_000
    events = [Event(1, bytes(256), "binary")]
    with archive.connect() as client, client.entities(new_topic(), channel=CHANNEL) as journal:
        journal.append_many((f"id-{number}", events) for number in range(1000))
        begin = time.process_time()
        journal.append_many((f"id-{number % 1000}", events) for number in range(count))
        assert count / (time.process_time() - begin) > 10_000
