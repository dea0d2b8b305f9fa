"""Benchmark: replaying over IPC or UDP, ours against the Java archive, in the same run.

    python bench/replaying.py [--rounds N] [--bytes N] [--sizes 256 1024 …] [--udp]
                                    [--checksum] [--json]

Both archives replay the same recording, alternately, on the same kind of C media driver, to a
native subscriber that only counts. Of each archive's two replays the second is measured: a JVM
compiles what it runs often. Figures are medians; the ratio is the median of the rounds, ours to
theirs (above 1: ours is faster). Also measured: the processor time of the archive's process per
GB of frames.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.processes import free_port

import aerotape
from aerotape.aeron import Aeron
from aerotape.frame_header import ChecksumName
from aerotape.tools._live_archive import CHANNEL, LiveArchive, replay_seconds
from bench.archives import BenchedArchive, media_driver
from bench.running import Report, in_turns, memory_folder, options_parser, rates_row

CRC_32C = "io.aeron.archive.checksum.Crc32c"
LINE = (
    "{message_length_bytes:6} B: "
    "aerotape {aerotape_mb_per_s:5.0f} MB/s {aerotape_cpu_s_per_gb:.2f} s/GB, "
    "Java {java_mb_per_s:5.0f} MB/s {java_cpu_s_per_gb:.2f} s/GB, ratio {ratio:.2f}"
)


def record(
    folder: Path, message_bytes: int, volume: int, checksum: ChecksumName
) -> tuple[Path, int]:
    """Record `volume` bytes; return the archive directory and the length of the recording."""
    archive_dir = folder / "archive"
    with LiveArchive(archive_dir, folder / "aeron", volume, message_bytes, checksum) as live:
        live.record()
        return live.folder, live.recorded_length


def replay_once(
    name: str, aeron_dir: Path, archive_dir: Path, length: int, channel: str, checksum: ChecksumName
) -> tuple[float, float]:
    """Replay recording 0 twice with a fresh archive; return bytes per second and processor seconds
    per 10^9 bytes of the second replay."""
    properties = {"aeron.archive.replay.checksum": CRC_32C} if checksum != "none" else {}
    with media_driver(aeron_dir):
        archive = BenchedArchive(name, aeron_dir, archive_dir)
        with (
            archive.start("external", properties) as child,
            Aeron(aeron_dir) as aeron,
            aerotape.connect(
                aeron=aeron,
                control_request_channel=archive.control_channel,
                control_response_channel="aeron:udp?endpoint=localhost:0",
            ) as client,
        ):
            replay_seconds(aeron, client, 0, length, channel)
            cpu_before_s = child.cpu_seconds()
            took_s = replay_seconds(aeron, client, 0, length, channel)
            return length / took_s, (child.cpu_seconds() - cpu_before_s) / (length / 1e9)


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__, rounds=9)
    parser.add_argument("--udp", action="store_true", help="replay over the loopback interface")
    parser.add_argument("--checksum", action="store_true", help="with CRC-32C of each frame")
    parser.add_argument("--bytes", type=int, default=512 << 20, help="frames, bytes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 1024, 8192])
    options = parser.parse_args()
    checksum: ChecksumName = "crc-32c" if options.checksum else "none"
    channel = f"aeron:udp?endpoint=localhost:{free_port()}" if options.udp else CHANNEL
    report = Report("replaying", LINE, as_json=options.json)
    for message_bytes in options.sizes:
        with memory_folder() as folder:
            archive_dir, length = record(folder, message_bytes, options.bytes, checksum)
            measure = partial(
                replay_once,
                aeron_dir=folder / "aeron",
                archive_dir=archive_dir,
                length=length,
                channel=channel,
                checksum=checksum,
            )
            replays = in_turns(options.rounds, measure)
        report.add({"message_length_bytes": message_bytes, **rates_row(replays)})
    report.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
