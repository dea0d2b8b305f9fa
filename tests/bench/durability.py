"""Benchmark: recording onto a disk at sync levels 0 and 1, ours against the Java archive.

    python tests/bench/durability.py [--rounds N] [--bytes N] [--length N] [--streams 1 10 100]
                                     [--levels 0 1] [--dir DIR] [--json]

First it measures what the disk can do: sequential writing, with a fdatasync after each MiB and
without, and fdatasyncs per second of 1 and of 100 files at once, each after a write of a message.
Then one Java publisher floods several streams that are being recorded, until the recording
position counters of all have reached the end. The two archives run alternately, each after a
warm-up that does not count; figures are medians, and the ratio is the median of the rounds, ours
to theirs (above 1: ours is faster). Compare level 0 with level 0 and 1 with 1, never across.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.archives import BenchedArchive, media_driver, run_java_client
from bench.running import Report, in_turns, median_ratio, memory_folder, options_parser
from support.jvm.java import JavaClient

MIB = 1 << 20
FIRST_STREAM_ID = 1001
FRAME_HEADER_BYTES = 32
SYNCED_FILES = (1, 100)
SYNC_SECONDS = 2.0
LINE = (
    "level {sync_level} {streams:4} streams of {message_length_bytes} B: "
    "aerotape {aerotape_messages_per_s:9.0f} msg/s, Java {java_messages_per_s:9.0f} msg/s, "
    "ratio {ratio:.2f}"
)


def sequential_mb_per_s(path: Path, volume: int, *, is_synced: bool) -> float:
    """Write a file in blocks of a MiB; synced, each is forced to storage before the next."""
    block = os.urandom(MIB)
    began_at = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(volume // MIB):
            file.write(block)
            if is_synced:
                os.fdatasync(file.fileno())
    took_s = time.perf_counter() - began_at
    path.unlink()
    return volume / took_s / 1e6


def syncs_per_s(folder: Path, files: int, length: int) -> float:
    """Append to files and force them to storage, each in a thread, for a while."""
    counts = [0] * files
    end_at = time.perf_counter() + SYNC_SECONDS

    def append(number: int) -> None:
        path = folder / f"{number}.synced"
        with path.open("wb", buffering=0) as file:
            os.ftruncate(file.fileno(), 128 * MIB)  # sparse, as segment files are
            while time.perf_counter() < end_at:
                file.write(bytes(length))
                os.fdatasync(file.fileno())
                counts[number] += 1
        path.unlink()

    threads = [threading.Thread(target=append, args=(number,)) for number in range(files)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SYNC_SECONDS


def measure_disk(folder: Path, volume: int, length: int) -> dict[str, float]:
    """Return what the disk can do, by name."""
    figures = {
        f"sequential_{name}_mb_per_s": sequential_mb_per_s(
            folder / "sequential", volume, is_synced=is_synced
        )
        for name, is_synced in (("plain", False), ("synced", True))
    }
    for files in SYNCED_FILES:
        figures[f"syncs_per_s_{files}"] = syncs_per_s(folder, files, length)
    return figures


def record_once(
    name: str, level: int, streams: int, length: int, volume: int, memory: Path, disk: Path
) -> float:
    """Record two floods with a fresh archive; return the messages per second of the second."""
    count = volume // (length + FRAME_HEADER_BYTES) // streams
    channel = f"aeron:ipc?term-length={'16m' if streams == 1 else '1m'}"
    aeron_dir, archive_dir = memory / "aeron", disk / "archive"
    properties = {
        "aeron.archive.file.sync.level": str(level),
        "aeron.archive.catalog.file.sync.level": str(level),
        "aeron.archive.max.concurrent.recordings": str(streams),
    }
    arguments = (aeron_dir, channel, FIRST_STREAM_ID, length, count, streams)
    with media_driver(aeron_dir):
        archive = BenchedArchive(name, aeron_dir, archive_dir)
        with archive.start("external", properties):
            client = JavaClient(aeron_dir)
            try:
                client.connect(archive.control_channel)
                for stream_id in range(FIRST_STREAM_ID, FIRST_STREAM_ID + streams):
                    client.call("startRecording", channel, stream_id, "LOCAL")
                run_java_client("Flood", *arguments, timeout_s=300)
                took_ns = int(run_java_client("Flood", *arguments, timeout_s=300))
            finally:
                client.close()
    shutil.rmtree(archive_dir)
    return count * streams / (took_ns / 1e9)


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--bytes", type=int, default=1 << 30, help="frames in a flood, bytes")
    parser.add_argument("--length", type=int, default=256, help="of a message, bytes")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--dir", type=Path, help="a directory on the disk (default: temporary)")
    options = parser.parse_args()
    report = Report("durability", LINE, as_json=options.json)
    with (
        memory_folder() as memory,
        tempfile.TemporaryDirectory(prefix="aerotape-bench-", dir=options.dir) as disk,
    ):
        figures = measure_disk(Path(disk), options.bytes, options.length)
        for name, figure in figures.items():
            report.say(f"disk: {name} {figure:.0f}")
        for level in options.levels:
            for streams in options.streams:
                record = partial(
                    record_once,
                    level=level,
                    streams=streams,
                    length=options.length,
                    volume=options.bytes,
                    memory=memory,
                    disk=Path(disk),
                )
                rates = in_turns(options.rounds, record)
                report.add(
                    {
                        "sync_level": level,
                        "streams": streams,
                        "message_length_bytes": options.length,
                        "ratio": median_ratio(rates["aerotape"], rates["java"]),
                        **{
                            f"{name}_messages_per_s": statistics.median(measured)
                            for name, measured in rates.items()
                        },
                    }
                )
    report.close(disk=figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
