"""Benchmark: what the web service costs the archive beside it, and how fast it answers.

    python bench/web.py [--measure rates|load|pages] [--rounds N] [--bytes N] [--readers N] [--json]

Each of the measurements, or one:

- `rates`: the recording rate of our archive alone, with one scrape of /metrics a second, with
  readers that request pages and metrics without a pause, with readers of a service that is stopped
  (SIGSTOP), and with a service that is killed and started again all the time, in turns; medians.
- `load`: the rates at which 20,000 messages a second are published and recorded with and without a
  crowd of bad clients, in turns; medians; the longest response of /healthz and /metrics beside the
  crowd, and the memory of the service.
- `pages`: times of /metrics with 1,000 recordings, and of pages and the first event of the stream
  with 10,000; the processor time of the service with 50 live views.
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

from support.beside import working
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder
from support.steady_publisher import SteadyPublisher
from support.web import basic

import aerotape
from aerotape.catalog.file.catalog import Catalog
from bench.running import memory_folder, options_parser

PAYLOAD = bytes(1024)


@contextmanager
def service(directory: Path, *options: str) -> Iterator[tuple[str, int, int]]:
    """Run `aerotape web`; yield host, port and process id."""
    command = [sys.executable, "-m", "aerotape", "web", str(directory), "--http", "0", "--json"]
    command += options
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = urlsplit(json.loads(process.stdout.readline())["url"])
        assert url.hostname is not None and url.port is not None
        yield url.hostname, url.port, process.pid
    finally:
        process.terminate()
        process.wait()


def get(where: tuple[str, int, int], path: str, authorization: str = "") -> float:
    """Make a request, and return how long it took, seconds."""
    begun_s = time.perf_counter()
    connection = http.client.HTTPConnection(where[0], where[1], timeout=60)
    connection.request("GET", path, headers={"Authorization": authorization})
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

    def run(done: threading.Event) -> None:
        while not done.is_set():
            with service(directory) as where:
                done.wait(0.5)
                os.kill(where[2], signal.SIGKILL)

    with working(run):
        yield


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


CROWD = """
import base64, socket, sys, threading, time
host, port, path = sys.argv[1:]
def header(secret):
    return "Authorization: Basic " + base64.b64encode(b"alice:" + secret).decode()
def connected(request):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect((host, int(port)))
    made.sendall(request.encode())
    return made
large = f"GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n{header(b'wonderland')}\\r\\n\\r\\n"
held = []
def again():
    while True:
        for made in held:
            made.close()
        held[:] = [connected("") for _ in range(1_000)]
        slow = [connected(large) for _ in range(100)]
        held.extend(slow)
        held.extend(connected(large) for _ in range(60))
        for number in range(45):
            wrong = header(b"%d" % time.monotonic_ns())
            held.append(connected(f"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n{wrong}\\r\\n\\r\\n"))
        for made in slow:
            made.setblocking(False)
        for _ in range(20):
            time.sleep(0.25)
            for made in slow:
                try:
                    made.recv(4_096)
                except OSError:
                    pass
again()
"""
STEADY_S = 10.0
STEADY_RATE = 20_000
CHANNEL = "aeron:ipc?term-length=16m"


def steady(archive: aerotape.Archive) -> tuple[float, float]:
    """Publish 20,000 messages of 1 KiB a second for 10 s, in a separate process.

    Returns:
        The messages published and recorded, each a second.
    """
    with aerotape.connect(aeron_dir=archive.aeron_dir) as client:
        client.start_recording(CHANNEL, 1002)
        begun_s = time.perf_counter()
        with SteadyPublisher(
            archive.aeron_dir, CHANNEL, 1002, STEADY_RATE, len(PAYLOAD)
        ) as publisher:
            recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
            begun_s = time.perf_counter()
            time.sleep(STEADY_S)
            sent = publisher.stop()
            while client.recording_position(recording_id) < sent.position:
                time.sleep(0.001)
            took_s = time.perf_counter() - begun_s
        client.await_signal(aerotape.RecordingSignal.STOP)
        client.stop_recording(CHANNEL, 1002)
        client.purge_recording(recording_id)
    return sent.messages / sent.seconds, sent.messages / max(took_s, sent.seconds)


@contextmanager
def monitored(where: tuple[str, int, int], authorization: str) -> Iterator[list[float]]:
    """Request /healthz and /metrics ten times a second; yield the longest time so far, seconds."""
    longest = [0.0]

    def run(done: threading.Event) -> None:
        while not done.wait(0.1):
            for path in ("/healthz", "/metrics"):
                longest[0] = max(longest[0], get(where, path, authorization))

    with working(run):
        yield longest


@contextmanager
def crowd(where: tuple[str, int, int], path: str) -> Iterator[None]:
    """Run the bad clients in a process with the least priority."""
    arguments = (where[0], str(where[1]), path)
    process = subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", CROWD, *arguments])
    try:
        time.sleep(1)
        yield
    finally:
        process.kill()
        process.wait()


def crowded(folder: Path, rounds: int) -> dict[str, float]:
    """Return the rates of a steady recording without and with a crowd, and those of the service.

    The crowd: 1,000 idle connections, 100 slow readers, 60 that never read, 45 wrong secrets,
    opened anew each 5 s.
    """
    users, secret = folder / "users", folder / "secret"
    secret.write_text("wonderland\n")
    secret.chmod(0o600)
    command = [sys.executable, "-m", "aerotape", "users", str(users), "add", "alice"]
    subprocess.run([*command, "--secret-file", str(secret)], check=True, capture_output=True)
    rates: dict[str, list[tuple[float, float]]] = {"alone": [], "crowded": []}
    longest = 0.0
    with (
        aerotape.Archive.launch(
            folder / "crowded",
            folder / "crowded-aeron",
            properties={
                "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0",
                "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
                "aeron.archive.threading.mode": "SHARED",
            },
        ) as archive,
        service(folder / "crowded", "--users", str(users)) as where,
        aerotape.connect(aeron_dir=archive.aeron_dir) as client,
        aerotape.Aeron(archive.aeron_dir) as aeron,
    ):
        client.start_recording(CHANNEL, 1001)
        publication = aeron.add_publication(CHANNEL, 1001)
        recording_id = client.await_signal(aerotape.RecordingSignal.START).recording_id
        for _ in range(8_000):
            publication.send(PAYLOAD)
        path = f"/api/v1/recordings/{recording_id}/messages?limit=1000"
        for _ in range(rounds):
            rates["alone"].append(steady(archive))
            with crowd(where, path), monitored(where, basic("alice", "wonderland")) as found:
                rates["crowded"].append(steady(archive))
            longest = max(longest, found[0])
        lines = Path(f"/proc/{where[2]}/status").read_text().splitlines()
        [peak] = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
        publication.close()
    measured = {"crowded_monitoring_ms": longest * 1e3, "crowded_memory_mb": peak * 1024 / 1e6}
    for name, each in rates.items():
        published, recorded_per_s = zip(*each, strict=True)
        measured[f"published_{name}_per_s"] = statistics.median(published)
        measured[f"recorded_{name}_per_s"] = statistics.median(recorded_per_s)
    return measured


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


def pages(folder: Path) -> dict[str, float]:
    """Return times of pages and metrics, and the processor time of live views."""
    [metrics_ms] = with_recordings(folder, 1_000, "/metrics")
    found = {"metrics_of_1000_ms": metrics_ms}
    paths = {"overview": "/", "list": "/recordings", "recording": "/recordings/5000"}
    paths["event"] = "/live"
    times = with_recordings(folder, 10_000, *paths.values())
    for name, taken_ms in zip(paths, times, strict=True):
        found[f"{name}_of_10000_ms"] = taken_ms
    return {**found, "live_views_50_cores": live_views(folder, 50)}


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--measure", choices=("rates", "load", "pages"))
    parser.add_argument("--bytes", type=int, default=2_000_000_000)
    parser.add_argument("--readers", type=int, default=8)
    args = parser.parse_args()
    found: dict[str, float] = {}
    with memory_folder() as folder:
        if args.measure in (None, "rates"):
            rates = beside(folder, args.rounds, args.bytes, args.readers)
            found |= {f"recording_{name}_mb_per_s": rate for name, rate in rates.items()}
        if args.measure in (None, "load"):
            found |= crowded(folder, args.rounds)
        if args.measure in (None, "pages"):
            found |= pages(folder)
    if args.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:28} {value:10.2f}")


if __name__ == "__main__":
    main()
