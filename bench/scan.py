"""Benchmark: recordings into Arrow without Spark, on one processor.

    python bench/scan.py [--bytes N] [--rounds N] [--cases TEXT …] [--json]

Recordings are written into memory (`/dev/shm`), so that reading them is bound by the processor.
Each case is measured in a separate process on one processor, after one warm-up that does not
count; figures are medians of the rounds. GB/s count the bytes of the segment files, including
frame headers; the memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "demo"))

import pyarrow
from market_data import Quote
from support.builders.long_recording import write_recording
from support.builders.market_schema import MARKET_SCHEMA, MARKET_VALUES

from aerotape.codecs.payload_encoder import PayloadEncoder
from aerotape.codecs.payloads import PayloadSchema
from aerotape.codecs.schema_files import schema_of
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._live_archive import counting_payload, frame_bytes
from bench.running import Report, memory_folder, options_parser

if TYPE_CHECKING:
    from aerotape.codecs.payload_plan import Types
    from aerotape.frame_header import ChecksumName

SCHEMA = Path(__file__).resolve().parents[1] / "tests" / "demo" / "market-data.xml"
QUOTE = Quote(7, 1_700_000_000_000_000_000, 42, 300, 200, 101_250_000, 101_270_000).encode()
SEQUENCE_AT = 8
REFRESH = PayloadEncoder(schema_of(MARKET_SCHEMA.encode(), "market"), "Refresh").encode(
    MARKET_VALUES
)
# Of the field `length`, which is not read.
LENGTH_AT = 110
PRICES = ("position", "transactTime", "price", "high", "sent", "eventTime")
LINE = (
    "| {name} | {message_bytes} B | {m_messages_per_s:.1f} | {gb_per_s:.2f} | "
    "{peak_memory_mib:.0f} MiB |"
)


@dataclass(frozen=True)
class Case:
    """A measurement.

    Attributes:
        columns: None for all; of a quote or refresh typed ones.
        decode_only: payloads that are in memory already are decoded.
        types: of the columns of refreshes, which have prices and times.
    """

    name: str
    message_bytes: int
    columns: tuple[str, ...] | None = None
    checksum: ChecksumName = "none"
    quotes: bool = False
    decode_only: bool = False
    types: Types | None = None


CASES = (
    Case("scan, all columns", 32),
    Case("scan, position and payload", 32, ("position", "payload")),
    Case("scan, all columns", 256),
    Case("scan, position and payload", 256, ("position", "payload")),
    Case("scan, all columns, CRC-32C", 256, checksum="crc-32c"),
    Case("scan, all columns", 1024),
    Case("scan and decode, all fields and position", len(QUOTE), None, quotes=True),
    Case("scan and decode, two fields", len(QUOTE), ("bidPrice", "askPrice"), quotes=True),
    Case("decode only, all fields", len(QUOTE), quotes=True, decode_only=True),
    Case("scan and decode, prices and times", len(REFRESH), PRICES, types="semantic"),
    Case("the same as numbers", len(REFRESH), PRICES, types="wire"),
)
QUOTE_COLUMNS = (
    "position", "sequence", "eventTime", "instrumentId", "bidSize", "askSize", "bidPrice",
    "askPrice",
)  # fmt: skip


def measure(case: Case, archive_dir: Path, rounds: int) -> dict[str, Any]:
    """Read the recording of a case repeatedly; return the values of its row."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    recording = open_directory(archive_dir).recording(0)
    schema = PayloadSchema.from_file(SCHEMA, "Quote") if case.quotes else None
    if case.types is not None:
        market = archive_dir / "market.xml"
        market.write_text(MARKET_SCHEMA)
        schema = PayloadSchema.from_file(market, "Refresh", types=case.types)
    arguments: dict[str, Any] = {"checksum": case.checksum, "columns": case.columns}
    if schema is not None:
        arguments |= {"schema": schema, "columns": case.columns or QUOTE_COLUMNS}
    payloads: list[pyarrow.Array] = []
    if case.decode_only:
        # A few batches are enough: in a scan the decoded data is in the cache, too.
        limit = recording.start_position + min(recording.recorded_position, 64 << 20)
        scanned = recording.to_batches(to_position=limit, columns=["payload"])
        payloads = [batch.column("payload") for batch in scanned]
    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        messages = 0
        if schema is not None and case.decode_only:
            for array in payloads:
                messages += schema.decode_payloads(array).num_rows
        else:
            messages = sum(batch.num_rows for batch in recording.to_batches(**arguments))
        times.append(time.perf_counter() - begin)
    length = messages * frame_bytes(case.message_bytes)
    seconds = statistics.median(times[1:])
    return {
        "messages": messages,
        "m_messages_per_s": messages / seconds / 1e6,
        "gb_per_s": length / seconds / 1e9,
        "fastest_m_messages_per_s": messages / min(times[1:]) / 1e6,
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def run(case: Case, folder: Path, length: int, rounds: int) -> dict[str, Any]:
    """Write the recording of a case and measure it in a separate process."""
    archive_dir = folder / "archive"
    if case.quotes:
        payload, counted_at = QUOTE, SEQUENCE_AT
    elif case.types is not None:
        payload, counted_at = REFRESH, LENGTH_AT
    else:
        payload, counted_at = counting_payload(case.message_bytes), 0
    try:
        _, messages = write_recording(archive_dir, payload, length, case.checksum, counted_at)
        done = subprocess.run(
            [
                sys.executable, __file__, "--measure", str(CASES.index(case)), str(folder),
                "--rounds", str(rounds),
            ],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(archive_dir, ignore_errors=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    measured: dict[str, Any] = json.loads(done.stdout)
    if not case.decode_only and measured["messages"] != messages:
        raise RuntimeError(f"{case.name}: read {measured['messages']} of {messages} messages")
    return asdict(case) | measured


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--bytes", type=int, default=1 << 30, help="bytes of each recording")
    parser.add_argument("--cases", nargs="+", default=[""], help="parts of their names")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        index, where = options.measure
        case = CASES[int(index)]
        print(json.dumps(measure(case, Path(where) / "archive", options.rounds)))
        return 0
    report = Report("scan", LINE, as_json=options.json)
    with memory_folder() as folder:
        report.say("| what | message | M messages/s | GB/s | memory |")
        report.say("| --- | --- | --- | --- | --- |")
        for case in CASES:
            if any(text in case.name for text in options.cases):
                report.add(run(case, folder, options.bytes, options.rounds))
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
