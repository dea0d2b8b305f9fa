"""Benchmark: listing all recordings, ours against the Java archive, in the same run.

    python tests/bench/listing.py [--rounds N] [--recordings 1000 10000] [--together] [--json]

One Java client lists the whole catalog repeatedly, over IPC and over UDP, then requests each
recording by its id, once and in random order (`by id`), and the recordings of one channel and
stream, one in seven (`for uri`). Both archives serve a catalog of the same recordings, on the same
kind of media driver, alternately: each with a separate driver and client, or, with `--together`,
both on one driver with one client, which removes differences between starts of a driver. Figures
are medians of descriptors per second; the ratio is the median of the rounds, ours to theirs (above
1: ours is faster).
"""

from __future__ import annotations

import shutil
import statistics
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.archives import BenchedArchive, media_driver, run_java_client
from bench.running import NAMES, Report, median_ratio, memory_folder, options_parser, turns

from aerotape.catalog.file.catalog import Catalog

IPC = "aeron:ipc"
# Control streams: over UDP, and over IPC, where each archive has its own.
STREAM_ID = 10
FIRST_LOCAL_STREAM_ID = 110
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
    names: Sequence[str], media: str, recordings: int, folder: Path, options: Namespace, turns: int
) -> dict[str, dict[str, list[float]]]:
    """Start archives on one driver, list them alternately by a Java client; return the rates."""
    aeron_dir = folder / "aeron"
    archive_dirs = [folder / f"archive-{name}" for name in names]
    try:
        with ExitStack() as stack:
            stack.enter_context(media_driver(aeron_dir))
            channels: list[object] = []
            for index, (name, archive_dir) in enumerate(zip(names, archive_dirs, strict=True)):
                make_catalog(archive_dir, recordings)
                archive = BenchedArchive(name, aeron_dir, archive_dir)
                local_stream_id = FIRST_LOCAL_STREAM_ID + index
                local = {"aeron.archive.local.control.stream.id": str(local_stream_id)}
                stack.enter_context(archive.start("external", local))
                channels += (
                    [IPC, local_stream_id]
                    if media == "ipc"
                    else [archive.control_channel, STREAM_ID]
                )
            printed = run_java_client(
                "Listing",
                aeron_dir,
                RESPONSE_CHANNELS[media],
                recordings,
                options.warm_up,
                options.measure,
                turns,
                *channels,
                timeout_s=120 + 10 * len(names) * turns * options.measure,
            )
    finally:
        for archive_dir in archive_dirs:
            shutil.rmtree(archive_dir, ignore_errors=True)
    rows = [[float(rate) for rate in line.split()] for line in printed.splitlines()]
    return {
        name: dict(zip(WAYS, (row[:-2], row[-2:-1], row[-1:]), strict=True))
        for name, row in zip(names, rows, strict=True)
    }


def measured(
    media: str, recordings: int, folder: Path, options: Namespace
) -> dict[str, dict[str, list[float]]]:
    """Return the rates of all rounds by archive and way."""
    if options.together:
        return list_recordings(NAMES, media, recordings, folder, options, options.rounds)
    rates: dict[str, dict[str, list[float]]] = {name: {way: [] for way in WAYS} for name in NAMES}
    for name in turns(options.rounds):
        found = list_recordings([name], media, recordings, folder, options, 1)
        for way in WAYS:
            rates[name][way] += found[name][way]
    return rates


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__)
    parser.add_argument("--recordings", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--media", nargs="+", choices=RESPONSE_CHANNELS, default=["ipc", "udp"])
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds")
    parser.add_argument("--measure", type=float, default=3.0, help="seconds")
    parser.add_argument("--together", action="store_true", help="both archives on one driver")
    options = parser.parse_args()
    report = Report("listing", LINE, as_json=options.json)
    with memory_folder() as folder:
        for media in options.media:
            for recordings in options.recordings:
                rates = measured(media, recordings, folder, options)
                for way in WAYS:
                    ours, theirs = (rates[name][way] for name in NAMES)
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
