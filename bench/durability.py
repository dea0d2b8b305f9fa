"""Benchmark: recording onto a disk, plain streams at sync levels 0 and 1 and ledgers.

    python bench/durability.py [--parts disk java streaming one beside] [--rounds N]
                                     [--bytes N] [--measure S] [--length N] [--streams 1 10 100]
                                     [--levels 0 1] [--earlier CHECKOUT] [--dir DIR] [--json]

- disk: what the disk can do, sequential writing, with a fdatasync after each MiB and without, and
  fdatasyncs per second of 1 and of 100 files at once, each after a write of a message.
- java: one Java publisher floods several streams that are being recorded, until the recording
  position counters of all have reached the end, ours against the Java archive. Both are warmed up.
  Ratios are ours to theirs (above 1: ours is faster). Compare level 0 with level 0 and 1 with 1.
- streaming: a flood of plain streams at level 0 and 1 and of ledgers of both types, until all is
  acknowledged, with the publisher of `adding.py`. A ledger's frames are longer than plain ones by
  the entry's header and digest, 36 bytes.
- one: the same streams with one message outstanding in each, against that many threads that write
  an entry's frame to their file and call fdatasync. Streams at level 0 are left out.
- beside: a flood of a plain stream at level 0, alone and while another process adds to a
  PD_JOURNAL ledger with one entry outstanding.

What is compared runs alternately, after a warm-up; figures are medians of the rounds, and ratios
medians of the ratios of rates to those of the first in the same round. `--earlier` is the
checkout of another version: its archive is measured at level 1, too.
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
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.jvm.java import JavaClient
from support.processes import ROOT

from aerotape.frame_header import align_frame
from bench.archives import BenchedArchive, Child, media_driver, run_java_client
from bench.running import Report, in_turns, median_ratio, memory_folder, options_parser, turns

PARTS = ("disk", "java", "streaming", "one", "beside")
PUBLISHER = Path(__file__).with_name("adding.py")
MIB = 1 << 20
FIRST_STREAM_ID = 1001
FRAME_HEADER_BYTES = 32
ENTRY_FRAME_BYTES = 68
"""Headers of frame and entry, and a digest CRC32C."""
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


def sync_files(folder: Path, files: int, length: int, seconds: float) -> dict[str, float]:
    """Append to files and force them to storage, each in a thread, for a while.

    Returns:
        Syncs per second of all, the median and the 99th percentile of a sync in microseconds.
    """
    taken_ns: list[array[int]] = [array("q") for _ in range(files)]
    begun = threading.Barrier(files)

    def append(number: int) -> None:
        path, block, taken = folder / f"{number}.synced", bytes(length), taken_ns[number]
        with path.open("wb", buffering=0) as file:
            os.ftruncate(file.fileno(), 128 * MIB)  # sparse, as segment files are
            begun.wait()
            end_ns = time.perf_counter_ns() + int(seconds * 1e9)
            while (begin_ns := time.perf_counter_ns()) < end_ns:
                file.write(block)
                os.fdatasync(file.fileno())
                taken.append(time.perf_counter_ns() - begin_ns)
        path.unlink()

    threads = [threading.Thread(target=append, args=(number,)) for number in range(files)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ordered = sorted(chain.from_iterable(taken_ns))
    return {
        "per_s": len(ordered) / seconds,
        "median_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[len(ordered) * 99 // 100] / 1e3,
    }


def measure_disk(folder: Path, volume: int, length: int) -> dict[str, float]:
    """Return the figures of the disk, by name."""
    figures = {
        f"sequential_{name}_mb_per_s": sequential_mb_per_s(
            folder / "sequential", volume, is_synced=is_synced
        )
        for name, is_synced in (("plain", False), ("synced", True))
    }
    for files in SYNCED_FILES:
        figures[f"syncs_per_s_{files}"] = sync_files(folder, files, length, SYNC_SECONDS)["per_s"]
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


class Recorded(NamedTuple):
    """A kind of stream, and the archive that records it.

    Attributes:
        kind: PLAIN, PD_JOURNAL or VD_JOURNAL.
        level: the sync level of the archive.
        is_earlier: whether the archive is that of the earlier version.
    """

    kind: str
    level: int = 0
    is_earlier: bool = False


KINDS = {
    "plain_0": Recorded("PLAIN"),
    "volatile": Recorded("VD_JOURNAL"),
    "plain_1": Recorded("PLAIN", 1),
    "persistent": Recorded("PD_JOURNAL"),
    "earlier_1": Recorded("PLAIN", 1, is_earlier=True),
}


class Ledgers:
    """Measures ledgers and plain streams, published by the same loop in its own process."""

    def __init__(self, options: argparse.Namespace, memory: Path, disk: Path) -> None:
        self._options = options
        self._aeron_dir = memory / "aeron"
        self._disk = disk
        self.rows: list[dict[str, Any]] = []

    @contextmanager
    def archive(self, recorded: Recorded, streams: int) -> Iterator[str]:
        """Start a driver and an archive; yields its control channel."""
        directory = self._disk / "archive"
        properties = {
            "aeron.archive.file.sync.level": str(recorded.level),
            "aeron.archive.catalog.file.sync.level": str(recorded.level),
            "aeron.archive.max.concurrent.recordings": str(streams + 1),
        }
        earlier = self._options.earlier if recorded.is_earlier else None
        archive = BenchedArchive("aerotape", self._aeron_dir, directory, earlier)
        with media_driver(self._aeron_dir), archive.start("external", properties):
            yield archive.control_channel
        shutil.rmtree(directory)

    def publisher(
        self, control_channel: str, kind: str, streams: int, mode: str, amount: float
    ) -> list[str]:
        """Return the command of a publisher."""
        arguments = (self._aeron_dir, control_channel, kind, streams, self._options.length)
        return [sys.executable, str(PUBLISHER), *map(str, (*arguments, mode, amount))]

    def publish(self, *arguments: Any) -> dict[str, float]:
        """Run a publisher and return what it has measured."""
        done = subprocess.run(
            self.publisher(*arguments),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
            timeout=300,
            check=True,
        )
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return result

    def count(self, streams: int) -> int:
        """Messages of each stream in a flood."""
        frames: int = self._options.bytes // (self._options.length + FRAME_HEADER_BYTES)
        return frames // streams

    def flood(self, name: str, streams: int) -> dict[str, float]:
        """Return the rates of a flood with a fresh archive."""
        recorded, count = KINDS[name], self.count(streams)
        with self.archive(recorded, streams) as control_channel:
            return self.publish(control_channel, recorded.kind, streams, "flood", count)

    def one_each(self, name: str, writers: int) -> dict[str, float]:
        """Return the acknowledgements per second with one message outstanding in each stream."""
        seconds, recorded = self._options.measure, KINDS.get(name)
        if recorded is None:
            length = align_frame(self._options.length + ENTRY_FRAME_BYTES)
            return sync_files(self._disk, writers, length, seconds)
        with self.archive(recorded, writers) as control_channel:
            return self.publish(control_channel, recorded.kind, writers, "one", seconds)

    def beside(self, name: str, streams: int) -> dict[str, float]:
        """Return the rates of plain streams, alone or beside a busy ledger."""
        count, seconds = self.count(streams), 3600
        with self.archive(KINDS["plain_0"], streams + 1) as control_channel:
            busy = self.publisher(control_channel, "PD_JOURNAL", 1, "one", seconds)
            with Child(busy) if name == "beside" else nullcontext():
                return self.publish(control_channel, "PLAIN", streams, "flood", count)

    def measure(self, say: Callable[[str], None]) -> None:
        """Measure what was asked for."""
        options = self._options
        names = [name for name in KINDS if name != "earlier_1" or options.earlier]
        if "streaming" in options.parts:
            for streams in options.streams:
                self._add(say, "streaming", streams, names, self.flood)
        if "one" in options.parts:
            waiting = ["disk", *(name for name in names if name not in ("plain_0", "volatile"))]
            for writers in options.streams:
                self._add(say, "one", writers, waiting, self.one_each)
        if "beside" in options.parts:
            self._add(say, "beside", 1, ["alone", "beside"], self.beside)

    def _add(
        self,
        say: Callable[[str], None],
        part: str,
        streams: int,
        names: Sequence[str],
        measure: Callable[[str, int], dict[str, float]],
    ) -> None:
        """Measure alternately after a warm-up, and add a row with medians of the rounds."""
        measure(names[0], streams)
        results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for name in turns(self._options.rounds, names):
            results[name].append(measure(name, streams))
        row: dict[str, Any] = {"part": part, "streams": streams}
        say(f"{part}, {streams} streams of {self._options.length} B:")
        reference = [each["per_s"] for each in results[names[0]]]
        for name, measured in results.items():
            figures = {
                figure: statistics.median(each[figure] for each in measured)
                for figure in measured[0]
            }
            ratio = median_ratio([each["per_s"] for each in measured], reference)
            shown = (f"{figure} {value:,.0f}" for figure, value in figures.items())
            say(f"  {name:10} {', '.join(shown)}, ratio {ratio:.2f}")
            row |= {f"{name}_{figure}": value for figure, value in figures.items()}
            row[f"{name}_ratio"] = ratio
        self.rows.append(row)


def compare_with_java(
    options: argparse.Namespace, report: Report, memory: Path, disk: Path
) -> None:
    """Measure floods of plain streams, ours against the Java archive."""
    for level in options.levels:
        for streams in options.streams:
            record = partial(
                record_once,
                level=level,
                streams=streams,
                length=options.length,
                volume=options.bytes,
                memory=memory,
                disk=disk,
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


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--bytes", type=int, default=1 << 30, help="frames in a flood, bytes")
    parser.add_argument("--measure", type=float, default=4.0, help="of part one, seconds")
    parser.add_argument("--length", type=int, default=256, help="of a message, bytes")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 1], help="of part java")
    parser.add_argument("--dir", type=Path, help="a directory on the disk (default: temporary)")
    parser.add_argument(
        "--earlier", type=Path, help="a checkout with .venv of another version, for level 1"
    )
    options = parser.parse_args()
    report = Report("durability", LINE, as_json=options.json)
    figures: dict[str, float] = {}
    with (
        memory_folder() as memory,
        tempfile.TemporaryDirectory(prefix="aerotape-bench-", dir=options.dir) as disk,
    ):
        if "disk" in options.parts:
            figures = measure_disk(Path(disk), options.bytes, options.length)
            for name, figure in figures.items():
                report.say(f"disk: {name} {figure:.0f}")
        if "java" in options.parts:
            compare_with_java(options, report, memory, Path(disk))
        ledgers = Ledgers(options, memory, Path(disk))
        ledgers.measure(report.say)
    report.close(disk=figures, ledgers=ledgers.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
