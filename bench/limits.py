"""Benchmark: what the machine can do at most: writing files, and copying memory.

    python bench/limits.py [--dir DIR] [--bytes N] [--rounds N] [--json]

Writes as a recorder does, `pwrite` of blocks into segment files of 128 MiB in `--dir` (default: in
memory), with blocks from 64 KiB to 4 MiB: into new files, into files preallocated by `fallocate`,
and into files that were written before; then the time of one `fdatasync` of each file is added.
Last, a copy from memory to memory that both are in use. MB/s, medians.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.running import Report, memory_folder, options_parser

FILE_BYTES = 128 << 20
BLOCKS = (64 << 10, 256 << 10, 1 << 20, 4 << 20)
WAYS = ("new", "preallocated", "recycled")
LINE = (
    "{what:14} blocks of {block_kib:4} KiB: {mb_per_s:6.0f} MB/s, "
    "with a sync {synced_mb_per_s:6.0f}"
)


def written(folder: Path, way: str, block: int, length: int) -> tuple[float, float]:
    """Write files; return the rate, MB/s, and that with a sync of each."""
    data = memoryview(os.urandom(1 << 20) * max(1, block >> 20))[:block]
    write_s = sync_s = 0.0
    for number in range(length // FILE_BYTES):
        path = folder / f"{number}.rec"
        if way != "recycled":
            path.unlink(missing_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        begun_s = time.perf_counter()
        if way == "preallocated":
            os.posix_fallocate(file, 0, FILE_BYTES)
        elif way == "new":
            os.truncate(file, FILE_BYTES)
        for offset in range(0, FILE_BYTES, block):
            os.pwrite(file, data, offset)
        write_s += time.perf_counter() - begun_s
        begun_s = time.perf_counter()
        os.fdatasync(file)
        sync_s += time.perf_counter() - begun_s
        os.close(file)
    return length / write_s / 1e6, length / (write_s + sync_s) / 1e6


def copied(length: int) -> float:
    """Copy memory that is in use, 16 MiB at a time, as large as a term; return MB/s."""
    source, target = bytearray(os.urandom(16 << 20)), bytearray(16 << 20)
    begun_s = time.perf_counter()
    for _ in range(length >> 24):
        target[:] = source
    return length / (time.perf_counter() - begun_s) / 1e6


def medians(rounds: int, measure: Callable[[], tuple[float, ...]]) -> list[float]:
    measure()
    found = [measure() for _ in range(rounds)]
    return [statistics.median(each) for each in zip(*found, strict=True)]


def main() -> int:
    """Run the benchmark, and print a line for each way and block."""
    parser = options_parser(__doc__)
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    parser.add_argument("--bytes", type=int, default=512 << 20)
    options = parser.parse_args()
    report = Report("limits", LINE, as_json=options.json)
    with (
        memory_folder() as memory,
        tempfile.TemporaryDirectory(dir=options.dir or memory, prefix="aerotape-limits-") as name,
    ):
        for way in WAYS:
            for block in BLOCKS:
                measure = partial(written, Path(name), way, block, options.bytes)
                rate, synced = medians(options.rounds, measure)
                row = {"what": way, "block_kib": block >> 10}
                report.add({**row, "mb_per_s": rate, "synced_mb_per_s": synced})
        [rate] = medians(options.rounds, lambda: (copied(options.bytes),))
        report.say(f"memory to memory: {rate:6.0f} MB/s")
    report.close(memory_mb_per_s=rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
