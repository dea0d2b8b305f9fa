"""Benchmark: what the web service costs the archive beside it, and how fast it answers.

    python bench/web.py [--rounds N] [--bytes N] [--readers N] [--json]

The recording rate of our archive alone, with one scrape of /metrics a second, with readers that
request pages and metrics without a pause, with readers of a service that is stopped (SIGSTOP), and
with a service that is killed and started again all the time, in turns; medians. Then the times of
/metrics with 1,000 recordings, and of pages and the first event of the stream with 10,000, and the
processor time of the service with 50 live views.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder

import aerotape
from aerotape.catalog.file.catalog import Catalog
from bench.running import memory_folder, options_parser

PAYLOAD = bytes(1024)


@contextmanager
def service(directory: Path) -> Iterator[tuple[str, int, int]]:
    """Run `aerotape web`; yield host, port and process id."""
    command = [sys.executable, "-m", "aerotape", "web", str(directory), "--http", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = urlsplit(json.loads(process.stdout.readline())["url"])
        assert url.hostname is not None and url.port is not None
        yield url.hostname, url.port, process.pid
    finally:
        process.terminate()
        process.wait()


def get(where: tuple[str, int, int], path: str) -> float:
    """Make a request, and return how long it took, seconds."""
    begun_s = time.perf_counter()
    connection = http.client.HTTPConnection(where[0], where[1], timeout=60)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()
    return time.perf_counter() - begun_s


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def recorded(archive: aerotape.Archive, length: int) -> float:
    """Record messages of 1 KiB, and return the rate, MB of payloads a second."""
    with (
        aerotape.connect(aeron_dir=archive.aeron_dir) as client,
        aerotape.Aeron(archive.aeron_dir) as aeron,
    ):
        client.start_recording("aeron:ipc?term-length=16m", 1001)
        publication = aeron.add_publication("aeron:ipc?term-length=16m", 1001)
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        begun_s = time.perf_counter()
        end = 0
        for _ in range(length // len(PAYLOAD)):
            end = publication.send(PAYLOAD)
        while client.recording_position(recording_id) < end:
            time.sleep(0.001)
        took_s = time.perf_counter() - begun_s
        publication.close()
        client.await_signal(aerotape.RecordingSignal.STOP)
        client.stop_recording("aeron:ipc?term-length=16m", 1001)
        client.purge_recording(recording_id)
    return length / took_s / 1e6


READERS = """
import http.client, sys, threading, time
host, port, count, pause_s, *paths = sys.argv[1:]
def read():
    while True:
        for path in paths:
            connection = http.client.HTTPConnection(host, int(port), timeout=60)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
        time.sleep(float(pause_s))
for _ in range(int(count)):
    threading.Thread(target=read).start()
"""


@contextmanager
def readers(where: tuple[str, int, int], count: int, pause_s: float, *paths: str) -> Iterator[None]:
    """Request paths in threads of another process, with the least priority."""
    arguments = (where[0], str(where[1]), str(count), str(pause_s), *paths)
    process = subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", READERS, *arguments])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Let a process stand still: connections to it are accepted and get no answer."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def crashing(directory: Path) -> Iterator[None]:
    """Run a further service that is killed half a second after each start."""
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            with service(directory) as where:
                done.wait(0.5)
                os.kill(where[2], signal.SIGKILL)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def beside(folder: Path, rounds: int, length: int, count: int) -> dict[str, float]:
    """Return the median rates of recording, by what the service does meanwhile."""
    flood = (count, 0.0, "/metrics", "/", "/recordings")
    with (
        aerotape.Archive.launch(
            folder / "archive",
            folder / "aeron",
            properties={
                "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0",
                "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
                "aeron.archive.threading.mode": "SHARED",
            },
        ) as archive,
        service(folder / "archive") as where,
    ):
        ways: dict[str, Callable[[], AbstractContextManager[None]]] = {
            "alone": nullcontext,
            "scraped": lambda: readers(where, 1, 1.0, "/metrics"),
            "flooded": lambda: readers(where, *flood),
            "crashing": lambda: crashing(folder / "archive"),
        }
        rates: dict[str, list[float]] = {name: [] for name in (*ways, "stopped")}
        recorded(archive, length)
        for _ in range(rounds):
            for name, begin in ways.items():
                with begin():
                    rates[name].append(recorded(archive, length))
            with stopped(where[2]), readers(where, *flood):
                rates["stopped"].append(recorded(archive, length))
    return {name: statistics.median(found) for name, found in rates.items()}


def event(where: tuple[str, int, int], path: str) -> float:
    """Return how long the first event of a stream took, seconds."""
    begun_s = time.perf_counter()
    connection = http.client.HTTPConnection(where[0], where[1], timeout=60)
    connection.request("GET", path)
    connection.getresponse().readline()
    connection.close()
    return time.perf_counter() - begun_s


def with_recordings(folder: Path, count: int, *paths: str) -> list[float]:
    """Return the median times of requests beside a directory with recordings, ms.

    The recording in the middle has 1,000 messages, the others have none.
    """
    directory = folder / f"of-{count}"
    directory.mkdir()
    with Catalog.open(directory, create=True) as catalog:
        for number in range(count):
            stream = SegmentBuilder(recording_id=number)
            if number == count // 2:
                for _ in range(1_000):
                    stream.message(PAYLOAD)
                stream.write(directory)
            recording_id = add_entry(catalog, stream)
            catalog.recording_stopped(recording_id, stream.position, 1)
    medians = []
    with service(directory) as where:
        for path in paths:
            take = event if path == "/live" else get
            take(where, path)
            times = []
            for _ in range(9):
                time.sleep(0.6)  # what was read before is no longer fresh
                times.append(take(where, path))
            medians.append(statistics.median(times) * 1e3)
    return medians


def live_views(folder: Path, count: int) -> float:
    """Return the processor time of the service with live views, cores."""
    with service(folder / "of-1000") as where:
        held = [http.client.HTTPConnection(where[0], where[1], timeout=60) for _ in range(count)]
        for connection in held:
            connection.request("GET", "/live")
            connection.getresponse().readline()
        before_s, begun_s = cpu_s(where[2]), time.monotonic()
        time.sleep(10)
        cores = (cpu_s(where[2]) - before_s) / (time.monotonic() - begun_s)
        for connection in held:
            connection.close()
    return cores


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--bytes", type=int, default=2_000_000_000)
    parser.add_argument("--readers", type=int, default=8)
    args = parser.parse_args()
    with memory_folder() as folder:
        rates = beside(folder, args.rounds, args.bytes, args.readers)
        found = {f"recording_{name}_mb_per_s": rate for name, rate in rates.items()}
        [found["metrics_of_1000_ms"]] = with_recordings(folder, 1_000, "/metrics")
        pages = {"overview": "/", "list": "/recordings", "recording": "/recordings/5000"}
        pages["event"] = "/live"
        times = with_recordings(folder, 10_000, *pages.values())
        for name, taken_ms in zip(pages, times, strict=True):
            found[f"{name}_of_10000_ms"] = taken_ms
        found["live_views_50_cores"] = live_views(folder, 50)
    if args.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:28} {value:10.2f}")


if __name__ == "__main__":
    main()
