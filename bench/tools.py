"""Benchmark: `aerotape tool` against ArchiveTool, in the same run.

    python bench/tools.py [--rounds N] [--bytes N] [--recordings N] [--json]

Two measurements: `verify -a` of one recording of 256-byte messages, with and without CRC-32C, and
`describe` of a catalog of many recordings. Times are those of whole processes including
the start; figures are medians, and the ratio is the median of the rounds, theirs to ours
(above 1: ours is faster). Files are in memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.builders.long_recording import write_recording
from support.builders.mark_files import leave
from support.jvm.java import JAVA_OPENS, java_command
from support.processes import ROOT

from aerotape.tools._live_archive import counting_payload
from bench.listing import make_catalog
from bench.running import (
    Report,
    compare_seconds,
    compile_package,
    memory_folder,
    options_parser,
)

PAYLOAD_LENGTH = 256
CRC_32C = "io.aeron.archive.checksum.Crc32c"
LINE = "{subject:32} aerotape {aerotape_s:6.2f} s, ArchiveTool {java_s:6.2f} s, ratio {ratio:.2f}"


def seconds(name: str, archive_dir: Path, arguments: list[str]) -> float:
    """Run a command of one of the tools; return the seconds that its process took."""
    if name == "aerotape":
        command = [sys.executable, "-m", "aerotape", "tool", str(archive_dir), *arguments]
    else:
        options = [each for each in arguments if each != "--json"]
        command = java_command(
            "io.aeron.archive.ArchiveTool", str(archive_dir), *options, options=JAVA_OPENS
        )
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


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--bytes", type=int, default=2_000_000_000, help="length of the recording")
    parser.add_argument("--recordings", type=int, default=10_000, help="for describe")
    options = parser.parse_args()
    compile_package()
    report = Report("tools", LINE, as_json=options.json)
    with memory_folder() as folder:
        write_recording(folder / "long", counting_payload(PAYLOAD_LENGTH), options.bytes, "crc-32c")
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
            measured = partial(seconds, archive_dir=folder / name, arguments=arguments)
            report.add({"subject": subject, **compare_seconds(options.rounds, measured)})
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
