"""Benchmark: recording, ours against the Java archive, in the same run.

    python bench/recording.py [--rounds N] [--bytes N] [--sizes 32 256 …] [--udp]
                                    [--streams 1 10] [--dir DIR] [--json]

For each message size, with and without CRC-32C, the same Java publisher floods streams that are
being recorded, over IPC or as a remote publisher over UDP on the loopback interface; the time ends
when the recording position counters have reached the end. The two
archives run alternately, each after a warm-up that does not count; figures are medians, and the
ratio is the median of the rounds, ours to theirs (above 1: ours is faster). Also measured: the
processor time of each archive's process per GB of frames, and when idle. The archive directory is
in memory, or a new folder in DIR; the media driver's is in memory.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.jvm.java import JavaClient, free_port

from bench.archives import BenchedArchive, idle_cpu_percent, media_driver, run_java_client
from bench.running import NAMES, Report, in_turns, memory_folder, options_parser, rates_row

CHECKSUMS = {"none": "", "crc-32c": "io.aeron.archive.checksum.Crc32c"}
TERMS = "term-length=16m"
STREAM_ID = 1001
FRAME_HEADER_BYTES = 32
LINE = (
    "{checksum:8} {streams:3} streams {message_length_bytes:6} B: "
    "aerotape {aerotape_mb_per_s:5.0f} MB/s {aerotape_cpu_s_per_gb:.2f} s/GB, "
    "Java {java_mb_per_s:5.0f} MB/s {java_cpu_s_per_gb:.2f} s/GB, ratio {ratio:.2f}"
)


class Streams(NamedTuple):
    """The streams to record, with stream ids from `STREAM_ID` on."""

    number: int
    is_udp: bool

    def channel(self) -> str:
        """Return a channel that is free."""
        return (
            f"aeron:udp?endpoint=localhost:{free_port()}|{TERMS}"
            if self.is_udp
            else f"aeron:ipc?{TERMS}"
        )


class Flooded(NamedTuple):
    """The cost of recording one flood.

    Attributes:
        bytes_per_s: frames recorded, by wall-clock time.
        cpu_s_per_gb: processor time of the archive's process for 10^9 bytes of frames.
    """

    bytes_per_s: float
    cpu_s_per_gb: float


def record_once(
    name: str,
    checksum: str,
    streams: Streams,
    length: int,
    volume: int,
    folder: Path,
    disk: Path | None = None,
) -> Flooded:
    """Record two floods with a fresh archive, in `disk` if it is given, and measure the second."""
    count = volume // (length + FRAME_HEADER_BYTES) // streams.number
    channel = streams.channel()
    aeron_dir = folder / "aeron"
    properties = {"aeron.archive.max.concurrent.recordings": str(max(20, streams.number))}
    if checksum != "none":
        properties["aeron.archive.record.checksum"] = CHECKSUMS[checksum]
    with (
        tempfile.TemporaryDirectory(prefix="aerotape-bench-", dir=disk or folder) as archive_dir,
        media_driver(aeron_dir),
    ):
        archive = BenchedArchive(name, aeron_dir, Path(archive_dir))
        with archive.start("external", properties) as child:
            client = JavaClient(aeron_dir)
            try:
                client.connect(archive.control_channel)
                source = "REMOTE" if streams.is_udp else "LOCAL"
                for number in range(streams.number):
                    client.call("startRecording", channel, STREAM_ID + number, source)
                flood = ("Flood", aeron_dir, channel, STREAM_ID, length, count, streams.number)
                # A warm-up without measuring: a JVM compiles what it runs often.
                run_java_client(*flood, timeout_s=120)
                cpu_before_s = child.cpu_seconds()
                took_ns = int(run_java_client(*flood, timeout_s=120))
                cpu_s = child.cpu_seconds() - cpu_before_s
            finally:
                client.close()
    frame_bytes = streams.number * count * (length + FRAME_HEADER_BYTES)
    return Flooded(frame_bytes / (took_ns / 1e9), cpu_s / (frame_bytes / 1e9))


def idle_once(name: str, folder: Path) -> float:
    """Percent of a core that an archive with its own driver uses when idle."""
    archive = BenchedArchive(name, folder / "aeron", folder / "archive")
    with archive.start("embedded", {"aeron.threading.mode": "SHARED"}) as child:
        percent = idle_cpu_percent(child, settle_s=3.0, window_s=8.0)
    shutil.rmtree(folder / "archive")
    return percent


def main() -> int:
    """Run the benchmark and print a table or JSON."""
    parser = options_parser(__doc__, rounds=9)
    parser.add_argument("--bytes", type=int, default=512 << 20, help="frames in a flood, bytes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 256, 1024, 8192, 65536])
    parser.add_argument("--udp", action="store_true", help="remote publishers over UDP")
    parser.add_argument("--streams", type=int, nargs="+", default=[1])
    parser.add_argument("--checksums", nargs="+", choices=CHECKSUMS, default=list(CHECKSUMS))
    parser.add_argument("--dir", type=Path, help="a folder on the disk to record onto")
    parser.add_argument("--no-idle", action="store_true", help="leave out the idle measurement")
    options = parser.parse_args()
    report = Report("recording", LINE, as_json=options.json)
    with memory_folder() as folder:
        for checksum, count, length in product(options.checksums, options.streams, options.sizes):
            # Small messages cost more: fewer bytes of them keep the runs about equally long.
            volume = options.bytes // 2 if length < 256 else options.bytes
            record = partial(
                record_once,
                checksum=checksum,
                streams=Streams(count, options.udp),
                length=length,
                volume=volume,
                folder=folder,
                disk=options.dir,
            )
            floods = in_turns(options.rounds, record)
            row = {"checksum": checksum, "streams": count, "message_length_bytes": length}
            report.add({**row, **rates_row(floods)})
        idle = {}
        if not options.no_idle:
            for name in NAMES:
                percents = [idle_once(name, folder) for _ in range(max(1, options.rounds // 2))]
                idle[name] = statistics.median(percents)
            report.say(
                f"idle: aerotape {idle['aerotape']:.1f} %, Java {idle['java']:.1f} % of a core"
            )
    report.close(idle_cpu_percent=idle)
    return 0


if __name__ == "__main__":
    sys.exit(main())
