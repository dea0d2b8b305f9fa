"""Benchmark: recordings to Parquet, the Spark job against programs without Spark.

    python bench/parquet.py [--bytes N …] [--rounds N] [--against avro pyarrow] [--json]

A recording is written into memory (`/dev/shm`). The job converts its files. For comparison, a Java
archive on the same directory replays it over IPC to a Java client, which appends each message with
parquet-avro (`avro`), or passes it through a pipe to a Python process that appends it with pyarrow
(`pyarrow`). All write the same columns with zstd, and run alternately. Times are those of whole
processes: for the job including the start of Spark, for the others including that of their JVM but
not of driver and archive; `steady` is the job's time without the start of Spark. Memory is the
peak sum over all processes of one side (proportional set size), and for the job also the largest
Python worker.

Tables are written into memory that is already allocated to the machine.

Payloads are similar to market data: half of their bytes are hard to compress.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import pyspark
from pyarrow import dataset
from support.builders.long_recording import TERM_LENGTH, write_recording
from support.jvm.java import AERON_ALL, JAVA_OPENS, PARQUET_AVRO, ROOT, find_jar

from bench.archives import BenchedArchive, media_driver
from bench.running import (
    Report,
    median_ratio,
    memory_folder,
    memory_in_use,
    options_parser,
    turns,
)

HERE = Path(__file__).resolve().parent
ALTERNATIVES = ("avro", "pyarrow")
LINE = (
    "{recording_bytes:14,} bytes {way:8}: {seconds:6.1f} s, steady {steady_s:6.1f} s, "
    "{rows_per_s:9,.0f} rows/s; {times_slower:5.2f} times aerotape's time, "
    "{times_slower_than_steady:5.2f} times its steady one; Parquet {parquet_share:.2f} of the "
    "payloads; peak {peak_mib:,.0f} MiB, worker {worker_mib:,.0f} MiB"
)


@dataclass(frozen=True)
class Run:
    """One conversion.

    Attributes:
        seconds: of the whole process.
        steady_s: time without the start of Spark.
        parquet_bytes: length of the files.
        peak_bytes: peak memory of all its processes together.
        worker_bytes: peak memory of one Python process below another.
    """

    seconds: float
    steady_s: float
    parquet_bytes: int
    peak_bytes: int
    worker_bytes: int


def payloads(length: int) -> list[bytes]:
    """Generate payloads of order book updates: ids, prices that move a little, names, checksums."""
    rng = random.Random(1)
    price = 100_000_000
    made = []
    for number in range(4096):
        price += rng.randrange(-50, 51) * 1000
        head = struct.pack("<qq", 1_700_000_000_000_000_000 + number * 1731, rng.getrandbits(62))
        levels = b"".join(
            struct.pack("<qi", price + level * 5000, rng.randrange(1, 500) * 10)
            for level in range(length // 32)
        )
        name = rng.choice((b"ESZ6.CME", b"NQZ6.CME", b"FDAX.EUX", b"FGBL.EUX"))
        made.append((head + name + levels + rng.randbytes(length))[:length])
    return made


class Memory:
    """Samples the memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self.worker_bytes = 0
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @classmethod
    @contextmanager
    def of(cls, pid: int) -> Iterator[Memory]:
        memory = cls(pid)
        memory._thread.start()
        try:
            yield memory
        finally:
            memory._done.set()
            memory._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(0.2):
            total = 0
            for pid in self._tree(self._pid):
                try:
                    fields = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
                    size = int(fields[fields.index("Pss:") + 1]) << 10
                    is_python = (
                        b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
                    )
                except (OSError, ValueError):
                    continue  # the process has ended
                total += size
                if is_python and pid != self._pid:
                    self.worker_bytes = max(self.worker_bytes, size)
            self.peak_bytes = max(self.peak_bytes, total)

    def _tree(self, pid: int) -> Iterator[int]:
        yield pid
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                children = path.read_text().split()
            except OSError:
                continue
            for child in children:
                yield from self._tree(int(child))


def run_job(archive_dir: Path, out: Path) -> Run:
    """Run `aerotape parquet`."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "aerotape", "parquet", str(archive_dir), str(out), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process,
        Memory.of(process.pid) as memory,
    ):
        report, _ = process.communicate()
    seconds = time.perf_counter() - begin
    if process.returncode != 0:
        raise RuntimeError(f"the job ended with {process.returncode}")
    steady_s = json.loads(report)["elapsed_s"]
    return Run(seconds, steady_s, size_of(out), memory.peak_bytes, memory.worker_bytes)


def run_alternative(
    name: str, classes: Path, aeron_dir: Path, control_channel: str, end_position: int, out: Path
) -> Run:
    """Replay to a Java client and append each message."""
    out.mkdir()
    file = out / "messages.parquet"
    java = [
        "java",
        *JAVA_OPENS,
        f"-Dlog4j2.configurationFile={classes / 'log4j2.properties'}",
        "-cp", os.pathsep.join([str(classes), *class_path()]),
        "ReplayToParquet", str(aeron_dir), control_channel, "0", str(end_position),
    ]  # fmt: skip
    begin = time.perf_counter()
    if name == "avro":
        with subprocess.Popen([*java, str(file)]) as process, Memory.of(process.pid) as memory:
            code = process.wait()
    else:
        script = str(HERE / "appending.py")
        with (
            subprocess.Popen([*java, "-"], stdout=subprocess.PIPE) as client,
            subprocess.Popen([sys.executable, script, str(file)], stdin=client.stdout) as process,
            Memory.of(process.pid) as memory,
        ):
            assert client.stdout is not None
            client.stdout.close()
            code = process.wait() or client.wait()
    seconds = time.perf_counter() - begin
    if code != 0:
        raise RuntimeError(f"{name} ended with {code}")
    return Run(seconds, seconds, size_of(out), memory.peak_bytes, 0)


def class_path() -> list[str]:
    """Return the class path; Spark includes all that parquet-avro needs."""
    spark = Path(pyspark.__file__).parent / "jars" / "*"
    return [str(find_jar(AERON_ALL)), str(find_jar(PARQUET_AVRO)), str(spark)]


def compile_client(folder: Path) -> Path:
    """Compile the Java client, once."""
    folder.mkdir()
    source = HERE / "java" / "ReplayToParquet.java"
    # javac knows `*` only as the last of a folder's class path, which it is.
    command = ["javac", "-nowarn", "-cp", os.pathsep.join(class_path()), "-d", str(folder)]
    subprocess.run([*command, str(source)], check=True)
    (folder / "log4j2.properties").write_text("rootLogger.level = error\n")
    return folder


def size_of(folder: Path) -> int:
    """Bytes of the Parquet files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def compare(
    folder: Path, length: int, message_bytes: int, rounds: int, against: list[str]
) -> list[dict[str, Any]]:
    """Convert one recording with each program; return a row for each."""
    archive_dir, aeron_dir, tables = folder / "archive", folder / "aeron", folder / "tables"
    tables.mkdir()
    _, messages = write_recording(archive_dir, payloads(message_bytes), length)
    end_position = -(-length // TERM_LENGTH) * TERM_LENGTH
    names = ["aerotape", *against]
    runs: dict[str, list[Run]] = {name: [] for name in names}
    classes = compile_client(folder / "classes")
    with media_driver(aeron_dir):
        archive = BenchedArchive("java", aeron_dir, archive_dir)
        for name in turns(rounds, names):
            out = tables / "out"
            if name == "aerotape":
                with memory_in_use(folder, length, tables):
                    runs[name].append(run_job(archive_dir, out))
            else:
                with archive.start("external", {}), memory_in_use(folder, length, tables):
                    runs[name].append(
                        run_alternative(
                            name, classes, aeron_dir, archive.control_channel, end_position, out
                        )
                    )
            rows = dataset.dataset(out, format="parquet").count_rows()
            if rows != messages:
                raise RuntimeError(f"{name} wrote {rows} rows of {messages}")
            shutil.rmtree(out)
    for used in (archive_dir, classes, tables):
        shutil.rmtree(used)
    return [row(name, runs, messages, end_position, message_bytes) for name in names]


def row(
    name: str, runs: dict[str, list[Run]], messages: int, length: int, message_bytes: int
) -> dict[str, Any]:
    """Summarise the rounds of one program; ratios are medians of the rounds."""
    ours, these = runs["aerotape"], runs[name]

    def ratio(field: str) -> float:
        return median_ratio([run.seconds for run in these], [getattr(run, field) for run in ours])

    seconds = statistics.median(run.seconds for run in these)
    steady_s = statistics.median(run.steady_s for run in these)
    return {
        "way": name,
        "recording_bytes": length,
        "messages": messages,
        "seconds": seconds,
        "steady_s": steady_s,
        "rows_per_s": messages / steady_s,
        "times_slower": ratio("seconds"),
        "times_slower_than_steady": ratio("steady_s"),
        "parquet_share": these[0].parquet_bytes / (messages * message_bytes),
        "peak_mib": max(run.peak_bytes for run in these) / (1 << 20),
        "worker_mib": max(run.worker_bytes for run in these) / (1 << 20),
    }


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__, rounds=2)
    parser.add_argument("--bytes", type=int, nargs="+", default=[1 << 30, 4 << 30])
    parser.add_argument("--message-bytes", type=int, default=256)
    parser.add_argument("--against", nargs="*", choices=ALTERNATIVES, default=list(ALTERNATIVES))
    options = parser.parse_args()
    report = Report("parquet", LINE, as_json=options.json)
    with memory_folder() as folder:
        for length in options.bytes:
            for row in compare(
                folder, length, options.message_bytes, options.rounds, options.against
            ):
                report.add(row)
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
