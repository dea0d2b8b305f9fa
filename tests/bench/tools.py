"""Benchmark: `aerotape tool` against ArchiveTool, in the same run.

    python tests/bench/tools.py [--rounds N] [--bytes N] [--recordings N] [--json]

Two things: `verify -a` of one recording of 256-byte messages, with and without CRC-32C, and
`describe` of a catalog of many recordings. Times are those of whole processes, start-up included,
from the shell's side; medians of the rounds, the ratio is that of the rounds, theirs to ours
(above 1: we are faster). Files are in memory.
"""

from __future__ import annotations

import os
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.listing import make_catalog
from bench.running import NAMES, Report, median_ratio, memory_folder, options_parser, turns
from support.java import AERON_ALL, JAVA_OPENS, ROOT, find_jar
from support.mark_files import leave

from aerotape import _native
from aerotape.catalog.catalog import Catalog

TERM_LENGTH = 16 << 20
SEGMENT_LENGTH = 128 << 20
PAYLOAD_LENGTH = 256
FRAME_LENGTH = 32 + PAYLOAD_LENGTH
INITIAL_TERM_ID = 7
STREAM_ID = 1001
CRC_32C = "io.aeron.archive.checksum.Crc32c"
HEADER = struct.Struct("<iBBHiiiiq")
LINE = "{subject:32} aerotape {aerotape_s:6.2f} s, ArchiveTool {java_s:6.2f} s, ratio {ratio:.2f}"


def make_term() -> bytearray:
    """Return the frames of a term, but for its id, with their CRC-32C, and padding at its end."""
    term = bytearray(TERM_LENGTH)
    for offset in range(0, TERM_LENGTH - FRAME_LENGTH + 1, FRAME_LENGTH):
        payload = (offset * 2_654_435_761 % (1 << 32)).to_bytes(4, "little") * (PAYLOAD_LENGTH // 4)
        checksum = _native.checksum("crc-32c", payload)
        header = HEADER.pack(FRAME_LENGTH, 0, 0xC0, 1, offset, checksum, STREAM_ID, 0, 0)
        term[offset : offset + FRAME_LENGTH] = header + payload
    left = TERM_LENGTH % FRAME_LENGTH
    if left:
        header = HEADER.pack(left, 0, 0xC0, 0, TERM_LENGTH - left, 0, STREAM_ID, 0, 0)
        term[TERM_LENGTH - left : TERM_LENGTH - left + 32] = header
    return term


def make_recording(archive_dir: Path, length: int) -> None:
    """Make an archive directory with one recording of about `length` bytes, in whole terms."""
    archive_dir.mkdir(parents=True)
    term = make_term()
    terms = max(length // TERM_LENGTH, 1)
    for number in range(terms):
        for index, byte in enumerate((INITIAL_TERM_ID + number).to_bytes(4, "little")):
            places = range(20 + index, TERM_LENGTH, FRAME_LENGTH)
            term[places.start :: FRAME_LENGTH] = bytes([byte]) * len(places)
        position = number * TERM_LENGTH
        base = position - position % SEGMENT_LENGTH
        with (archive_dir / f"0-{base}.rec").open("ab") as file:
            file.write(term)
    # As a recorder leaves it: full length, and the next one begun when the last is full.
    for base in range(0, terms * TERM_LENGTH + 1, SEGMENT_LENGTH):
        with (archive_dir / f"0-{base}.rec").open("ab") as file:
            file.truncate(SEGMENT_LENGTH)
    with Catalog.open(archive_dir, create=True, checksum="crc-32c") as catalog:
        catalog.add_recording(
            start_position=0,
            stop_position=terms * TERM_LENGTH,
            start_timestamp_ms=1_700_000_000_000,
            stop_timestamp_ms=1_700_000_001_000,
            initial_term_id=INITIAL_TERM_ID,
            segment_file_length=SEGMENT_LENGTH,
            term_buffer_length=TERM_LENGTH,
            mtu_length=1408,
            session_id=1,
            stream_id=STREAM_ID,
            stripped_channel="aeron:ipc",
            original_channel="aeron:ipc",
            source_identity="aeron:ipc",
        )


def seconds(name: str, archive_dir: Path, arguments: list[str]) -> float:
    """Run a command of one of the tools, and return how long its process took."""
    if name == "aerotape":
        command = [sys.executable, "-m", "aerotape", "tool", str(archive_dir), *arguments]
    else:
        command = [
            "java",
            *JAVA_OPENS,
            "-cp",
            str(find_jar(AERON_ALL)),
            "io.aeron.archive.ArchiveTool",
            str(archive_dir),
            *[each for each in arguments if each != "--json"],
        ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started_at = time.perf_counter()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )
    taken = time.perf_counter() - started_at
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return taken


def compare(subject: str, archive_dir: Path, arguments: list[str], rounds: int) -> dict[str, Any]:
    """Run a command with both tools in turns."""
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    for name in turns(rounds):
        times[name].append(seconds(name, archive_dir, arguments))
    return {
        "subject": subject,
        "ratio": median_ratio(times["java"], times["aerotape"]),
        "aerotape_s": statistics.median(times["aerotape"]),
        "java_s": statistics.median(times["java"]),
    }


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--bytes", type=int, default=2_000_000_000, help="length of the recording")
    parser.add_argument("--recordings", type=int, default=10_000, help="for describe")
    options = parser.parse_args()
    report = Report("tools", LINE, as_json=options.json)
    with memory_folder() as folder:
        make_recording(folder / "long", options.bytes)
        make_catalog(folder / "many", options.recordings)
        for archive_dir in (folder / "long", folder / "many"):
            leave(archive_dir)
        size = f"{options.bytes / 1e9:g} GB"
        for subject, name, arguments in (
            (f"verify -a, {size}", "long", ["verify", "-a"]),
            (f"verify -a -checksum, {size}", "long", ["verify", "-a", "-checksum", CRC_32C]),
            (f"describe, {options.recordings} recordings", "many", ["describe"]),
            (f"describe --json, {options.recordings}", "many", ["describe", "--json"]),
        ):
            report.add(compare(subject, folder / name, arguments, options.rounds))
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
