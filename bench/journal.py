"""Benchmark: raft journals verified and iterated, against Zeebe 8.3.4 in the same run.

    python bench/journal.py [--bytes N] [--payload N] [--rounds N] [--json]

A journal of format 8.3 in segments of 128 MiB is written into memory (`/dev/shm`), with a batch of
application data in each record. What is measured, all with every checksum checked:

- process: `aerotape journal verify`, and a new process of Zeebe that opens the journal and reads it
  to its end, each including its start
- verify: `verify_journal`, on all processors
- iterate: `RaftJournal.batches` without payloads; index, asqn, term and type of each record are
  visited in Python

The latter two are compared with Zeebe in a process that is warm. Figures are medians of the rounds,
alternating; ratios are medians of the rounds, Zeebe's time to ours. GB/s count bytes of records.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.jvm.java import JAVA_OPENS
from support.jvm.zeebe import ZeebeJournals
from support.processes import ROOT

from aerotape.codecs.raft.entries import ApplicationEntry, InitialEntry, encode_entry
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.verify import verify_journal
from aerotape.codecs.raft_journal.writer import DEFAULT_SEGMENT_SIZE, JournalWriter
from bench.running import (
    Report,
    compile_package,
    median_ratio,
    memory_folder,
    options_parser,
    turns,
)

FORMAT = "8.3"
WARM_UP = 4
LINE = "| {subject} | {payload} B | {m_records_per_s:.2f} | {gb_per_s:.2f} | {ratio:.1f} |"


def write(folder: Path, length: int, payload: int) -> int:
    """Write a journal of about `length` bytes; return its records."""
    data = bytes(payload)
    with JournalWriter(folder, format=FORMAT) as journal:
        journal.append(encode_entry(InitialEntry(1)))
        for position in range(1, length // (payload + 94) + 1):
            entry = ApplicationEntry(1, position, position, data)
            journal.append(encode_entry(entry), position)
        return journal.next_index - 1


def verify(folder: Path) -> int:
    """Verify the journal; return its records."""
    check = verify_journal(folder)
    if check.findings:
        raise RuntimeError(str(check.findings[0]))
    return check.records


def iterate(folder: Path) -> int:
    """Visit index, asqn, term and type of each record; return their number."""
    count = 0
    for run in RaftJournal.open(folder).batches():
        for _index, _asqn, _term, _type in zip(
            run.index, run.asqn, run.term, run.entry_type, strict=True
        ):
            count += 1
    return count


def seconds(work: Callable[[Path], int], folder: Path, records: int) -> float:
    """Return the seconds that the work takes on the journal."""
    begin = time.perf_counter()
    if work(folder) != records:
        raise RuntimeError(f"{work.__name__}: not all of {records} records")
    return time.perf_counter() - begin


def zeebe_seconds(zeebe: ZeebeJournals, folder: Path, records: int) -> float:
    """Return the seconds that Zeebe takes to open the journal and to read it."""
    count, nanoseconds = zeebe.run(("time", str(folder), DEFAULT_SEGMENT_SIZE))[0].split()
    if int(count) != records:
        raise RuntimeError(f"Zeebe read {count} of {records} records")
    return int(nanoseconds) / 1e9


def process_seconds(folder: Path) -> float:
    """Return the seconds that `aerotape journal verify` takes, with its start."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "aerotape", "journal", "verify", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - begin


def zeebe_process_seconds(folder: Path, records: int) -> float:
    """Return the seconds that a new process of Zeebe takes, with its start."""
    begin = time.perf_counter()
    with ZeebeJournals(FORMAT, JAVA_OPENS) as zeebe:
        zeebe_seconds(zeebe, folder, records)
        return time.perf_counter() - begin


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--bytes", type=int, default=1 << 29, help="bytes of the journal's records")
    parser.add_argument("--payload", type=int, default=256, help="bytes of a record's payload")
    options = parser.parse_args()
    report = Report("journal", LINE, as_json=options.json)
    compile_package()
    with memory_folder() as folder, ZeebeJournals(FORMAT, JAVA_OPENS) as zeebe:
        journal = folder / "journal"
        records = write(journal, options.bytes, options.payload)
        measures: dict[str, Callable[[], float]] = {
            "process": lambda: process_seconds(journal),
            "zeebe process": lambda: zeebe_process_seconds(journal, records),
            "verify": lambda: seconds(verify, journal, records),
            "iterate": lambda: seconds(iterate, journal, records),
            "zeebe": lambda: zeebe_seconds(zeebe, journal, records),
        }
        for _ in range(WARM_UP):
            measures["zeebe"]()
        times: dict[str, list[float]] = {name: [] for name in measures}
        for name in turns(options.rounds, tuple(measures)):
            times[name].append(measures[name]())
        report.say("| what | payload | M records/s | GB/s | ratio to Zeebe |")
        report.say("| --- | --- | --- | --- | --- |")
        for name, taken in times.items():
            median = statistics.median(taken)
            over = times["zeebe process" if "process" in name else "zeebe"]
            report.add(
                {
                    "subject": name,
                    "payload": options.payload,
                    "records": records,
                    "m_records_per_s": records / median / 1e6,
                    "gb_per_s": records * (options.payload + 94) / median / 1e9,
                    "ratio": median_ratio(over, taken),
                }
            )
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
