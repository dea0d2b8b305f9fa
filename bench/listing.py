"""Benchmark: listing all recordings, ours against the Java archive, in the same run.

    python bench/listing.py [--rounds N] [--recordings 1000 10000] [--json]

One Java client lists the whole catalog repeatedly, over IPC and over UDP, then requests each
recording by its id, once and in random order (`by id`), and the recordings of one channel and
stream, one in seven (`for uri`). Each archive serves a catalog of the same recordings, with a
separate driver and client, alternately. Figures are medians of descriptors per second; the ratio is
the median of the rounds, ours to theirs (above 1: ours is faster).
"""

from __future__ import annotations

import shutil
import statistics
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from aerotape.catalog.file.catalog import Catalog
from bench.archives import IPC, BenchedArchive, media_driver, run_java_client
from bench.running import NAMES, Report, in_turns, median_ratio, memory_folder, options_parser

WAYS = ("all", "by id", "for uri")
LINE = (
    "{media} {recordings:6} recordings, {way:7}: aerotape {aerotape_per_s:9.0f}/s, "
    "Java {java_per_s:9.0f}/s, ratio {ratio:.2f}"
)
RESPONSE_CHANNELS = {"ipc": IPC, "udp": "aeron:udp?endpoint=localhost:0"}


def make_catalog(archive_dir: Path, recordings: int) -> None:
    """Create an archive directory with empty stopped recordings."""
    archive_dir.mkdir(parents=True)
    with Catalog.open(archive_dir, create=True) as catalog:
        for number in range(recordings):
            catalog.add_recording(
                start_position=0,
                stop_position=0,
                start_timestamp_ms=1_700_000_000_000 + number,
                stop_timestamp_ms=1_700_000_001_000 + number,
                initial_term_id=number,
                segment_file_length=128 << 20,
                term_buffer_length=16 << 20,
                mtu_length=1408,
                session_id=number,
                stream_id=1001 + number % 7,
                stripped_channel="aeron:udp?endpoint=localhost:40456",
                original_channel="aeron:udp?endpoint=localhost:40456|alias=market-data",
                source_identity="127.0.0.1:40456",
            )


def list_recordings(
    name: str, media: str, recordings: int, folder: Path, options: Namespace
) -> list[float]:
    """Start an archive, and list its recordings by a Java client; return the rates by way."""
    aeron_dir, archive_dir = folder / "aeron", folder / f"archive-{name}"
    make_catalog(archive_dir, recordings)
    archive = BenchedArchive(name, aeron_dir, archive_dir)
    try:
        with media_driver(aeron_dir), archive.start("external", {}):
            printed = run_java_client(
                "Listing",
                aeron_dir,
                RESPONSE_CHANNELS[media],
                recordings,
                options.warm_up,
                options.measure,
                *archive.control_address(media),
                timeout_s=120 + 10 * options.measure,
            )
    finally:
        shutil.rmtree(archive_dir, ignore_errors=True)
    return [float(rate) for rate in printed.split()]


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--recordings", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--media", nargs="+", choices=RESPONSE_CHANNELS, default=["ipc", "udp"])
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds")
    parser.add_argument("--measure", type=float, default=3.0, help="seconds")
    options = parser.parse_args()
    report = Report("listing", LINE, as_json=options.json)
    with memory_folder() as folder:
        for media in options.media:
            for recordings in options.recordings:
                measure = partial(
                    list_recordings,
                    media=media,
                    recordings=recordings,
                    folder=folder,
                    options=options,
                )
                rates = in_turns(options.rounds, measure)
                for number, way in enumerate(WAYS):
                    ours, theirs = ([each[number] for each in rates[name]] for name in NAMES)
                    report.add(
                        {
                            "media": media,
                            "recordings": recordings,
                            "way": way,
                            "ratio": median_ratio(ours, theirs),
                            "aerotape_per_s": statistics.median(ours),
                            "java_per_s": statistics.median(theirs),
                        }
                    )
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
