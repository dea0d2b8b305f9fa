"""Benchmark: listing all recordings, ours against the Java archive, in the same run.

    python tests/bench/listing.py [--rounds N] [--recordings 1000 10000] [--json]

One Java client lists the whole catalog again and again, over IPC and over UDP, and then asks for
each recording by its id, once and in no order (`by id`); both archives serve a catalog of the same
recordings, on the same kind of media driver, and take turns. Figures are medians of descriptors a
second; the ratio is that of the rounds, ours to theirs (above 1: we are faster).
"""

from __future__ import annotations

import shutil
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.archives import BenchedArchive, media_driver, run_java_client
from bench.running import NAMES, Report, median_ratio, memory_folder, options_parser, turns

from aerotape.catalog.catalog import Catalog

IPC = "aeron:ipc"
WAYS = ("all", "by id")
LINE = (
    "{media} {recordings:6} recordings, {way:5}: aerotape {aerotape_per_s:9.0f}/s, "
    "Java {java_per_s:9.0f}/s, ratio {ratio:.2f}"
)
RESPONSE_CHANNELS = {"ipc": IPC, "udp": "aeron:udp?endpoint=localhost:0"}


def make_catalog(archive_dir: Path, recordings: int) -> None:
    """Make an archive directory with empty recordings that have been stopped."""
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


def descriptors_per_s(
    name: str, media: str, recordings: int, folder: Path, warm_up_s: float, measure_s: float
) -> dict[str, float]:
    """Start an archive on a catalog and have the Java client list it, in each way."""
    aeron_dir, archive_dir = folder / "aeron", folder / "archive"
    make_catalog(archive_dir, recordings)
    try:
        with media_driver(aeron_dir):
            archive = BenchedArchive(name, aeron_dir, archive_dir)
            with archive.start("external", {}):
                channel = IPC if media == "ipc" else archive.control_channel
                printed = run_java_client(
                    "Listing",
                    aeron_dir,
                    channel,
                    RESPONSE_CHANNELS[media],
                    recordings,
                    warm_up_s,
                    measure_s,
                    timeout_s=120,
                )
    finally:
        shutil.rmtree(archive_dir)
    return dict(zip(WAYS, map(float, printed.split()), strict=True))


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
                rates: dict[str, list[dict[str, float]]] = {name: [] for name in NAMES}
                for name in turns(options.rounds):
                    rate = descriptors_per_s(
                        name, media, recordings, folder, options.warm_up, options.measure
                    )
                    rates[name].append(rate)
                for way in WAYS:
                    ours, theirs = ([rate[way] for rate in rates[name]] for name in NAMES)
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
