"""Benchmark: what is recorded of messages accepted before a stop, ours against the Java archive.

    python bench/stopping.py [--runs 200] [--archive aerotape java]
                                   [--what start extend running] [--channel ipc udp spy]
                                   [--threading SHARED|DEDICATED]

Each run sends 20 messages of 500 bytes, each accepted by the publication, then stops the recording.
`start`: the recording was requested just before; `extend`: so was the extension of a recording;
`running`: the recording runs since 50 ms. The table has the number of runs after which all, a part
or nothing of these messages was recorded. Both archives run with an embedded driver (C in ours,
Java in theirs), with the same client, one at a time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.daemon.archives import serve
from support.daemon.recording import await_listed
from support.processes import free_port

import aerotape
from aerotape.codecs.generated.archive import SourceLocation

MESSAGES, LENGTH = 20, 500
TIMEOUT_NS = 20_000_000_000
GRACE_S = 2.0


class Run:
    """One stream that is recorded and stopped."""

    def __init__(self, client: aerotape.ArchiveClient, kind: str, stream_id: int) -> None:
        udp = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.client, self.stream_id = client, stream_id
        self.channel = "aeron:ipc" if kind == "ipc" else udp
        self.location = SourceLocation.REMOTE if kind == "udp" else SourceLocation.LOCAL

    def _send_and_stop(self, channel: str, wait_s: float = 0.0) -> tuple[int, int]:
        """Return the start of the publication, and the end of the messages that it has accepted."""
        add = self.client.aeron.add_exclusive_publication
        with add(channel, self.stream_id) as publication:
            begin = publication.position
            if wait_s:
                await_listed(self.client, self.stream_id)
                time.sleep(wait_s)
            for _ in range(MESSAGES):
                publication.send(bytes(LENGTH), timeout_ns=TIMEOUT_NS)
            self.client.stop_recording(self.channel, self.stream_id)
            return begin, publication.position

    def _outcome(self, begin: int, accepted: int) -> str:
        deadline_s = time.monotonic() + GRACE_S
        while True:
            found = list(self.client.list_recordings_for_uri("", self.stream_id))
            end = found[0].stop_position if found else begin
            if end >= accepted:
                return "all"
            # Recordings without a stop position are not over; too late counts as none.
            if time.monotonic() >= deadline_s:
                return "part" if end > begin else "none"
            time.sleep(0.01)

    def start(self, wait_s: float = 0.0) -> str:
        self.client.start_recording(self.channel, self.stream_id, self.location)
        return self._outcome(*self._send_and_stop(self.channel, wait_s))

    def running(self) -> str:
        return self.start(0.05)

    def extend(self) -> str:
        if self.running() != "all":
            raise RuntimeError("the recording to extend was not recorded: run it again")
        recording_id = await_listed(self.client, self.stream_id)
        descriptor = self.client.list_recording(recording_id)
        assert descriptor is not None
        channel = aerotape.extension_channel(descriptor, self.channel)
        self.client.extend_recording(recording_id, self.channel, self.stream_id, self.location)
        return self._outcome(*self._send_and_stop(channel))


RUNS: dict[str, Callable[[Run], str]] = {
    "start": Run.start,
    "extend": Run.extend,
    "running": Run.running,
}


def measure(archive: str, what: str, channel: str, runs: int, threading: str) -> Counter[str]:
    """Count the outcomes of a number of runs on a new archive."""
    properties = {
        "aeron.spies.simulate.connection": "true",
        "aeron.archive.threading.mode": threading,
        "aeron.archive.max.concurrent.recordings": "1000",
    }
    seen: Counter[str] = Counter()
    with serve(archive, properties) as served, served.connect() as client:  # type: ignore[arg-type]
        for index in range(runs):
            try:
                seen[RUNS[what](Run(client, channel, 1_000 + index))] += 1
            except RuntimeError:
                seen["not begun"] += 1
    return seen


def main() -> None:
    """Measure, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--archive", nargs="+", default=["aerotape", "java"])
    parser.add_argument("--what", nargs="+", default=list(RUNS), choices=list(RUNS))
    parser.add_argument("--channel", nargs="+", default=["ipc"], choices=["ipc", "udp", "spy"])
    parser.add_argument("--threading", default="DEDICATED", choices=["SHARED", "DEDICATED"])
    options = parser.parse_args()
    print("| archive | channel | stopped after | runs | all | part | none |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for channel in options.channel:
        for what in options.what:
            for archive in options.archive:
                seen = measure(archive, what, channel, options.runs, options.threading)
                cells = [seen[each] for each in ("all", "part", "none")]
                row = [archive, channel, what, sum(cells), *cells]
                print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
