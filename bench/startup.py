"""Benchmark: from the start of an archive until a client is connected, ours against Java's.

    python bench/startup.py [--rounds N] [--recordings 0 1000 10000] [--unclean N] [--json]

Both archives start on the same kind of C media driver, which runs already, in a directory of the
same recordings, some of which were not stopped and need recovery. Figures are medians in
seconds; the ratio is the median of the rounds, theirs to ours (above 1: ours is faster).
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder

import aerotape
from aerotape.catalog.file.catalog import Catalog
from bench.archives import BenchedArchive, media_driver
from bench.listing import make_catalog
from bench.running import (
    Report,
    compare_seconds,
    compile_package,
    memory_folder,
    options_parser,
)

SEGMENT_LENGTH = 16 << 20
UNCLEAN_LENGTH = 1 << 20
LINE = (
    "{recordings:6} recordings, {unclean:3} unclean: aerotape {aerotape_s:.2f} s, "
    "Java {java_s:.2f} s, ratio {ratio:.2f}"
)


def make_directory(archive_dir: Path, recordings: int, unclean: int) -> None:
    """Create a directory of recordings, of which the last ones were not stopped."""
    unclean = min(unclean, recordings)
    make_catalog(archive_dir, recordings - unclean)
    content = SegmentBuilder(term_length=SEGMENT_LENGTH, segment_length=SEGMENT_LENGTH)
    while content.position < UNCLEAN_LENGTH:
        content.message(b"x" * 1000)
    data = b"".join(content.frames.values())
    with Catalog.open(archive_dir) as catalog:
        for _ in range(unclean):
            recording_id = add_entry(
                catalog,
                content,
                start_timestamp_ms=1_700_000_000_000,
                segment_file_length=SEGMENT_LENGTH,
                term_buffer_length=SEGMENT_LENGTH,
            )
            with (archive_dir / f"{recording_id}-0.rec").open("wb") as file:
                file.write(data)
                file.truncate(SEGMENT_LENGTH)


def seconds(name: str, folder: Path, catalog: bytes) -> float:
    """Start an archive in the restored directory; return the seconds until a client is
    connected."""
    archive_dir, aeron_dir = folder / "archive", folder / "aeron"
    (archive_dir / "archive.catalog").write_bytes(catalog)
    (archive_dir / "archive-mark.dat").unlink(missing_ok=True)
    with media_driver(aeron_dir):
        archive = BenchedArchive(name, aeron_dir, archive_dir)
        started_at = time.perf_counter()
        # The client waits for the archive without polling in intervals.
        with (
            archive.start("external", {}, await_ready=False),
            aerotape.connect(
                aeron_dir=str(aeron_dir),
                control_request_channel=archive.control_channel,
                control_response_channel="aeron:udp?endpoint=localhost:0",
                timeout_ns=60_000_000_000,
            ),
        ):
            return time.perf_counter() - started_at


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--recordings", type=int, nargs="+", default=[0, 1_000, 10_000])
    parser.add_argument("--unclean", type=int, default=100)
    options = parser.parse_args()
    compile_package()
    report = Report("startup", LINE, as_json=options.json)
    for recordings in options.recordings:
        with memory_folder() as folder:
            make_directory(folder / "archive", recordings, options.unclean)
            catalog = (folder / "archive" / "archive.catalog").read_bytes()
            measured = partial(seconds, folder=folder, catalog=catalog)
            row = compare_seconds(options.rounds, measured)
        unclean = min(options.unclean, recordings)
        report.add({"recordings": recordings, "unclean": unclean, **row})
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
