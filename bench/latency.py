"""Benchmark: latency and price of recording at fixed rates, ours against the Java archive.

    python bench/latency.py [--rounds N] [--rates 50000 1000 …] [--seconds N] [--json]

A Java publisher offers messages of 256 bytes over IPC at a fixed rate, and polls the recording
position counter: the latency is the time from an offer until the counter has passed its message.
The price is the processor time of the archive's process meanwhile, in cores, and how often its
threads were woken. Both archives use an external C media driver and run alternately. Figures are
medians of the rounds.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.jvm.java import JavaClient

from bench.archives import BenchedArchive, java_client_command, media_driver
from bench.running import Report, in_turns, memory_folder, options_parser

CHANNEL = "aeron:ipc?term-length=16m"
STREAM_ID = 1001
LENGTH = 256
WARM_UP_S = 2
LINE = (
    "{rate:6} msg/s: "
    "aerotape p50 {aerotape_p50_us:5.1f} p99 {aerotape_p99_us:6.1f} us {aerotape_cores:.2f} cores "
    "{aerotape_wake_ups_per_s:.0f} wake-ups/s, "
    "Java p50 {java_p50_us:5.1f} p99 {java_p99_us:6.1f} us {java_cores:.2f} cores "
    "{java_wake_ups_per_s:.0f} wake-ups/s"
)


class Paced(NamedTuple):
    """Latencies in microseconds, the archive's processor time in cores, and its wake-ups."""

    p50_us: float
    p99_us: float
    cores: float
    wake_ups_per_s: float


def measure(name: str, rate: int, seconds: float, threading: str, folder: Path) -> Paced:
    """Record at a rate with a fresh archive."""
    aeron_dir, archive_dir = folder / "aeron", folder / "archive"
    with media_driver(aeron_dir):
        archive = BenchedArchive(name, aeron_dir, archive_dir)
        properties = {"aeron.archive.threading.mode": threading}
        with archive.start("external", properties) as child:
            client = JavaClient(aeron_dir)
            try:
                client.connect(archive.control_channel)
                client.call("startRecording", CHANNEL, STREAM_ID, "LOCAL")
                publisher = subprocess.Popen(
                    java_client_command(
                        "Pace", aeron_dir, CHANNEL, STREAM_ID, LENGTH, rate, WARM_UP_S, seconds,
                    ),
                    stdout=subprocess.PIPE,
                    text=True,
                )  # fmt: skip
                with publisher:
                    assert publisher.stdout is not None
                    publisher.stdout.readline()
                    cpu_s, began = child.cpu_seconds(), time.perf_counter()
                    wake_ups = child.wake_ups()
                    p50_ns, p99_ns = map(int, publisher.stdout.readline().split())
                    took_s = time.perf_counter() - began
                    cpu_s = child.cpu_seconds() - cpu_s
                    wake_ups = child.wake_ups() - wake_ups
            finally:
                client.close()
    shutil.rmtree(archive_dir)
    return Paced(p50_ns / 1000, p99_ns / 1000, cpu_s / took_s, wake_ups / took_s)


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=[50_000, 10_000, 1_000, 100, 10])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--threading", choices=("SHARED", "DEDICATED"), default="SHARED")
    options = parser.parse_args()
    report = Report("latency", LINE, as_json=options.json)
    with memory_folder() as folder:
        for rate in options.rates:
            once = partial(
                measure,
                rate=rate,
                seconds=options.seconds,
                threading=options.threading,
                folder=folder,
            )
            row: dict[str, Any] = {"rate": rate}
            for name, found in in_turns(options.rounds, once).items():
                for field, values in zip(Paced._fields, zip(*found, strict=True), strict=True):
                    row[f"{name}_{field}"] = statistics.median(values)
            report.add(row)
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
