"""Benchmark: recording over IPC, ours against the Java archive, in the same run.

    python tests/bench/recording.py [--rounds N] [--bytes N] [--sizes 32 256 …] [--json]

For each message size, with and without CRC-32C, the same Java publisher floods a stream that is
being recorded; the clock stops when the recording position counter has reached the end. The two
archives take turns; figures are medians and the ratio is ours to theirs (above 1: we are faster).
Also measured: processor time of each archive when idle.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.archives import BenchedArchive, idle_cpu_percent, media_driver
from support.java import AERON_ALL, JavaClient, find_jar

CHECKSUMS = {"none": "", "crc-32c": "io.aeron.archive.checksum.Crc32c"}
CHANNEL = "aeron:ipc?term-length=16m"
STREAM_ID = 1001
FRAME_HEADER_BYTES = 32


def flood_ns(aeron_dir: Path, length: int, count: int) -> int:
    """Publish `count` messages of `length` bytes; return how long recording them took."""
    source = Path(__file__).parent / "java" / "Flood.java"
    done = subprocess.run(
        [
            "java",
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "-cp",
            str(find_jar(AERON_ALL)),
            str(source),
            str(aeron_dir),
            CHANNEL,
            str(STREAM_ID),
            str(length),
            str(count),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return int(done.stdout)


def record_once(name: str, checksum: str, length: int, volume_bytes: int, folder: Path) -> float:
    """Record one flood with a fresh archive; return bytes of frames per second."""
    count = volume_bytes // (length + FRAME_HEADER_BYTES)
    aeron_dir, archive_dir = folder / "aeron", folder / "archive"
    properties = (
        {"aeron.archive.record.checksum": CHECKSUMS[checksum]} if checksum != "none" else {}
    )
    with media_driver(aeron_dir):
        archive = BenchedArchive(name, aeron_dir, archive_dir)
        with archive.start("external", properties):
            client = JavaClient(aeron_dir)
            try:
                client.connect(archive.control_channel)
                client.call("startRecording", CHANNEL, STREAM_ID, "LOCAL")
                took_ns = flood_ns(aeron_dir, length, count)
            finally:
                client.close()
    shutil.rmtree(archive_dir)
    return count * (length + FRAME_HEADER_BYTES) / (took_ns / 1e9)


def idle_once(name: str, folder: Path) -> float:
    """Percent of a core that an archive with its own driver uses when idle."""
    archive = BenchedArchive(name, folder / "aeron", folder / "archive")
    with archive.start("embedded", {"aeron.threading.mode": "SHARED"}) as child:
        percent = idle_cpu_percent(child, settle_s=3.0, window_s=8.0)
    shutil.rmtree(folder / "archive")
    return percent


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=1 << 30, help="frames in a flood, bytes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 256, 1024, 8192, 65536])
    parser.add_argument("--checksums", nargs="+", choices=CHECKSUMS, default=list(CHECKSUMS))
    parser.add_argument("--no-idle", action="store_true", help="leave out the idle measurement")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix=f"aerotape-bench-{os.getpid()}-", dir=base))
    rows = []
    try:
        for checksum in options.checksums:
            for length in options.sizes:
                # A small message costs more: keep the runs of about one length.
                volume = options.bytes // 2 if length < 256 else options.bytes
                rates: dict[str, list[float]] = {"aerotape": [], "java": []}
                for round_number in range(options.rounds):
                    names = list(rates) if round_number % 2 == 0 else list(rates)[::-1]
                    for name in names:
                        rates[name].append(record_once(name, checksum, length, volume, folder))
                ours, theirs = (statistics.median(rates[name]) for name in ("aerotape", "java"))
                row = {
                    "checksum": checksum,
                    "message_length_bytes": length,
                    "aerotape_mb_per_s": ours / 1e6,
                    "java_mb_per_s": theirs / 1e6,
                    "ratio": statistics.median(
                        a / b for a, b in zip(rates["aerotape"], rates["java"], strict=True)
                    ),
                }
                rows.append(row)
                if not options.json:
                    print(
                        f"{checksum:8} {length:6} B: aerotape {ours / 1e6:8.0f} MB/s, "
                        f"Java {theirs / 1e6:8.0f} MB/s, ratio {row['ratio']:.2f}",
                        flush=True,
                    )
        idle = {}
        if not options.no_idle:
            for name in ("aerotape", "java"):
                percents = [idle_once(name, folder) for _ in range(max(1, options.rounds // 2))]
                idle[name] = statistics.median(percents)
            if not options.json:
                print(
                    f"idle: aerotape {idle['aerotape']:.1f} %, Java {idle['java']:.1f} % of a core"
                )
        if options.json:
            print(json.dumps({"recording": rows, "idle_cpu_percent": idle}, indent=2))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
