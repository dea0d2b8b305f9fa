"""Demonstrate the whole system on real Aeron streams, with throughput figures: `make demo`.

Two publishers (UDP and IPC) are recorded with CRC-32C; the recordings are listed and one is
replayed from its middle and compared; the archive is killed while it records a third stream,
started again, and its repair is shown; the directory is verified; Spark turns it into Parquet,
which is read back and compared with what was published. The exit code is 0 if all data was equal.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from market import Digest, messages

import aerotape
from aerotape.catalog.recovery.outcomes import Outcome
from aerotape.catalog.recovery.suspect_marks import mark_file_name
from aerotape.replay.offline.directory import open_directory

HERE = Path(__file__).parent
CHECKSUM = "io.aeron.archive.checksum.Crc32c"
UDP_STREAM, IPC_STREAM, CRASH_STREAM = 1001, 1002, 1003
# The age of a killed archive's activity timestamp at which another archive may start.
MARK_FILE_LIVENESS_S = 10.0
STARTED_AT = time.perf_counter()


class DemoError(Exception):
    """A step of the demo had an unexpected result."""


def say(text: str) -> None:
    """Print a line with the seconds since the start."""
    print(f"[{time.perf_counter() - STARTED_AT:6.1f} s] {text}", flush=True)


def check(holds: bool, what: str) -> None:
    """Print a successful check; raise DemoError for a failed one."""
    if not holds:
        raise DemoError(what)
    say(f"  ok: {what}")


def free_udp_port() -> int:
    """Find an unused UDP port on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """A child process that is ended with the demo."""

    def __init__(self, *arguments: str, ready: str | None = None) -> None:
        self.child = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ready_line = ""
        if ready is not None:
            self.ready_line = self._out().readline().strip()
            if not self.ready_line:
                raise DemoError(f"{ready} did not start: exit code {self.child.wait(10)}")

    def _out(self) -> Any:
        return self.child.stdout

    def report(self) -> dict[str, Any]:
        """Read the JSON object that the process prints."""
        line = self._out().readline()
        if not line:
            raise DemoError(f"{self.child.args!r} ended with {self.child.wait(10)} and no report")
        return dict(json.loads(line))

    def close_input(self) -> None:
        if self.child.stdin is not None and not self.child.stdin.closed:
            self.child.stdin.close()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait."""
        if self.child.poll() is None:
            self.child.send_signal(number)
        return self.child.wait(30)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an aerotape command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "aerotape", *arguments], capture_output=True, text=True, check=False
    )


class Demo:
    """The steps of the demo and their shared state."""

    def __init__(self, folder: Path, message_count: int) -> None:
        self.aeron_dir = Path("/dev/shm" if Path("/dev/shm").is_dir() else folder) / (
            f"aerotape-demo-{os.getpid()}"
        )
        self.archive_dir = folder / "archive"
        self.parquet_dir = folder / "parquet"
        self.each = message_count // 2
        self.control_channel = f"aeron:udp?endpoint=localhost:{free_udp_port()}"
        self.processes: list[Process] = []
        self.published: dict[int, dict[str, Any]] = {}

    # -- processes ---------------------------------------------------------------------------

    def start(self, *arguments: str, ready: str | None = None) -> Process:
        process = Process(*arguments, ready=ready)
        self.processes.append(process)
        return process

    def archive_command(self) -> list[str]:
        return [
            *("-m", "aerotape", "archive", "--dir", str(self.archive_dir)),
            *("--aeron-dir", str(self.aeron_dir), "--driver", "external"),
            f"-Daeron.archive.control.channel={self.control_channel}",
            "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
            f"-Daeron.archive.record.checksum={CHECKSUM}",
            f"-Daeron.archive.replay.checksum={CHECKSUM}",
            "-Daeron.archive.segment.file.length=16m",
        ]

    def start_archive(self) -> Process:
        return self.start(*self.archive_command(), ready="the archive")

    def publisher(self, channel: str, stream_id: int, count: int) -> Process:
        script = str(HERE / "publisher.py")
        return self.start(
            script, str(self.aeron_dir), channel, str(stream_id), str(stream_id), str(count)
        )

    def connect(self) -> aerotape.ArchiveClient:
        return aerotape.connect(
            aeron_dir=str(self.aeron_dir),
            control_request_channel=self.control_channel,
            control_response_channel="aeron:udp?endpoint=localhost:0",
        )

    def close(self) -> None:
        for process in reversed(self.processes):
            process.close_input()
            process.end()
        shutil.rmtree(self.aeron_dir, ignore_errors=True)

    # -- steps -------------------------------------------------------------------------------

    def run(self) -> None:
        self.start(
            "-m",
            "aerotape",
            "driver",
            f"-Daeron.dir={self.aeron_dir}",
            "-Daeron.dir.delete.on.start=true",
            "-Daeron.dir.delete.on.shutdown=true",
            "-Daeron.term.buffer.sparse.file=true",
            ready="the media driver",
        )
        archive = self.start_archive()
        say(f"media driver and archive are up: {archive.ready_line}")
        self.record_two_streams()
        archive = self.crash_and_restart(archive)
        self.verify()
        self.to_parquet()
        code = archive.end()
        check(code == 0, f"the archive stops cleanly (exit code {code})")

    def record_two_streams(self) -> None:
        udp = f"aeron:udp?endpoint=localhost:{free_udp_port()}|term-length=1m"
        ipc = "aeron:ipc?term-length=4m"
        with self.connect() as client:
            client.start_recording(udp, UDP_STREAM, aerotape.SourceLocation.REMOTE)
            client.start_recording(ipc, IPC_STREAM, aerotape.SourceLocation.LOCAL)
            say(f"two publishers send {self.each:,} messages each")
            publishers = {
                UDP_STREAM: self.publisher(udp, UDP_STREAM, self.each),
                IPC_STREAM: self.publisher(ipc, IPC_STREAM, self.each),
            }
            for stream_id, process in publishers.items():
                sent = self.published[stream_id] = process.report()
                say(
                    f"  stream {stream_id}: {sent['count']:,} messages, {sent['bytes']:,} bytes "
                    f"in {sent['seconds']:.1f} s ({sent['count'] / sent['seconds']:,.0f} /s)"
                )
            for stream_id, sent in self.published.items():
                self.await_recorded(client, stream_id, sent["position"])
            for process in publishers.values():
                process.close_input()
            client.stop_recording(udp, UDP_STREAM)
            client.stop_recording(ipc, IPC_STREAM)
            say("the recordings, listed through the control channel:")
            for each in client.list_recordings():
                say(
                    f"  recording {each.recording_id}: stream {each.stream_id}, positions "
                    f"{each.start_position:,} to {each.stop_position:,}, {each.stripped_channel}"
                )
            self.replay_from_middle(client, UDP_STREAM)

    def await_recorded(self, client: aerotape.ArchiveClient, stream_id: int, position: int) -> None:
        recording_id = self.recording_id(client, stream_id)
        deadline = time.monotonic() + 30
        while client.recording_position(recording_id) < position:
            if time.monotonic() > deadline:
                raise DemoError(f"stream {stream_id} was not recorded up to {position} in 30 s")
            time.sleep(0.01)

    def recording_id(self, client: aerotape.ArchiveClient, stream_id: int) -> int:
        found = [each for each in client.list_recordings() if each.stream_id == stream_id]
        if not found:
            raise DemoError(f"stream {stream_id} has no recording")
        return found[-1].recording_id

    def replay_from_middle(self, client: aerotape.ArchiveClient, stream_id: int) -> None:
        sent = self.published[stream_id]
        recording_id = self.recording_id(client, stream_id)
        position = sent["middle_position"]
        expected = itertools.islice(messages(stream_id, self.each), self.each // 2, None)
        started_at = time.perf_counter()
        compared = size_bytes = 0
        with client.replay(recording_id, position=position) as replay:
            for message in replay:
                if message.payload != next(expected, None):
                    raise DemoError(
                        f"message {compared} of the replay differs from the published one"
                    )
                compared += 1
                size_bytes += len(message.payload)
        seconds = time.perf_counter() - started_at
        check(
            compared == self.each - self.each // 2,
            f"replay of recording {recording_id} from position {position:,}: {compared:,} messages "
            f"({size_bytes:,} bytes) equal to the published ones, in {seconds:.1f} s",
        )

    def crash_and_restart(self, archive: Process) -> Process:
        channel = "aeron:ipc?term-length=1m"
        with self.connect() as client:
            client.start_recording(channel, CRASH_STREAM, aerotape.SourceLocation.LOCAL)
            publisher = self.publisher(channel, CRASH_STREAM, 0)
            recording_id = self.await_recording(client, CRASH_STREAM)
            time.sleep(1.5)
            promised = client.recording_position(recording_id)
            say(f"recording {recording_id} is at {promised:,}: SIGKILL to the archive")
            archive.end(signal.SIGKILL)
        publisher.close_input()
        sent = publisher.report()
        before = open_directory(self.archive_dir).recording(recording_id).descriptor
        check(before.stop_position == -1, "after the crash the recording has no stop position")
        say("restart: the mark file of a killed archive is stale after 10 s")
        archive = self.restart()
        with self.connect() as client:
            after = client.list_recording(recording_id)
        if after is None:
            raise DemoError(f"recording {recording_id} is gone after the restart")
        check(
            promised <= after.stop_position <= sent["position"],
            f"the restart found the stop position {after.stop_position:,} (the archive reported "
            f"{promised:,}; the publisher was at {sent['position']:,})",
        )
        self.judge_tail(recording_id, after.stop_position)
        return archive

    def judge_tail(self, recording_id: int, stop_position: int) -> None:
        """Remove the mark of a frame whose write was interrupted; it was not recorded yet."""
        notes = open_directory(self.archive_dir).suspect_notes().get(recording_id, [])
        if not notes:
            return
        (note,) = notes
        check(
            (note.outcome, note.position) == (Outcome.SUSPECT_TORN_TAIL, stop_position),
            f"the kill interrupted the write of a frame after that: {note.detail}",
        )
        (self.archive_dir / mark_file_name(recording_id)).unlink()

    def await_recording(self, client: aerotape.ArchiveClient, stream_id: int) -> int:
        deadline = time.monotonic() + 10
        while True:
            try:
                return self.recording_id(client, stream_id)
            except DemoError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def restart(self) -> Process:
        refused = self.archive_command()
        first = subprocess.run(
            [sys.executable, *refused], capture_output=True, text=True, timeout=30, check=False
        )
        check(first.returncode == 1, f"an immediate restart is refused: {first.stderr.strip()}")
        time.sleep(MARK_FILE_LIVENESS_S)
        return self.start_archive()

    def verify(self) -> None:
        verified = run("tool", str(self.archive_dir), "verify", "-a", "-checksum", CHECKSUM)
        print(verified.stdout, end="")
        check(verified.returncode == 0, "every frame of every segment has a valid CRC-32C")

    def to_parquet(self) -> None:
        started_at = time.perf_counter()
        done = run("parquet", str(self.archive_dir), str(self.parquet_dir), "--json")
        if done.returncode != 0:
            raise DemoError(f"the Spark job failed: {done.stderr}")
        say(f"Spark wrote Parquet in {time.perf_counter() - started_at:.1f} s")
        for recording in open_directory(self.archive_dir).recordings():
            stream_id = recording.descriptor.stream_id
            rows = self.read_back(recording.descriptor.recording_id)
            if stream_id in self.published:
                sent = self.published[stream_id]
                expected = (sent["count"], sent["digest"])
            else:
                whole = Digest(messages(stream_id, rows.count))
                expected = (rows.count, str(whole))
                check(rows.count > 0, f"stream {stream_id} survived the crash in part")
            check(
                (rows.count, str(rows)) == expected,
                f"Parquet of recording {recording.descriptor.recording_id}: {rows.count:,} rows, "
                f"digest {rows} equals that of the published messages",
            )

    def read_back(self, recording_id: int) -> Digest:
        """Read the payloads of one recording from the Parquet files, in order of position."""
        import pyarrow.dataset as dataset

        files = dataset.dataset(self.parquet_dir, format="parquet")
        table = files.to_table(
            columns=["position", "payload"], filter=dataset.field("recording_id") == recording_id
        ).sort_by("position")
        digest = Digest()
        for batch in table.to_batches(max_chunksize=10_000):
            for payload in batch.column("payload").to_pylist():
                digest.add(payload)
        return digest


def main() -> int:
    """Run the demo; return 0 if all checks succeeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--messages",
        type=int,
        default=1_200_000,
        help="total number of messages (default: 1200000)",
    )
    parser.add_argument("--keep", type=Path, help="use this folder and do not delete it")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="aerotape-demo-"))
    demo = Demo(folder, options.messages)
    try:
        demo.run()
        say("the demo is done: all data was equal to the published data")
        return 0
    except (DemoError, aerotape.AerotapeError) as error:
        print(f"demo failed: {error}", file=sys.stderr)
        return 1
    finally:
        demo.close()
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
