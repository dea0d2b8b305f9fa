"""A publisher in a separate process that offers a fixed rate, whatever its starter does meanwhile.

    steady_publisher.py AERON_DIR CHANNEL STREAM_ID RATE LENGTH

Sends messages of LENGTH bytes that begin with their number, RATE of them a second; those that are
late are sent at once. At the first line of its input it prints what it has sent, as JSON, and at
the end of its input it closes the publication, so that its recording can catch up in between.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Self

import aerotape

_ROOT = Path(__file__).resolve().parents[2]
_PAUSE_S = 0.001


class Published(NamedTuple):
    """The messages of a publisher.

    Attributes:
        messages: how many it has sent.
        position: the position after the last one, bytes.
        seconds: how long it took.
    """

    messages: int
    position: int
    seconds: float


class SteadyPublisher:
    """A publisher in a separate process. Use as a context manager."""

    def __init__(
        self, aeron_dir: Path | str, channel: str, stream_id: int, per_s: int, length: int
    ) -> None:
        """Start it.

        Args:
            aeron_dir: of the media driver.
            channel: of the stream.
            stream_id: of the stream.
            per_s: messages a second.
            length: of each message, bytes.
        """
        given = (aeron_dir, channel, stream_id, per_s, length)
        self._process = subprocess.Popen(
            [sys.executable, __file__, *map(str, given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
        )

    def stop(self) -> Published:
        """Send nothing further; the publication remains."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the publisher has ended with {self._process.wait()}"
        return Published(**json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)


def _publish(aeron_dir: str, channel: str, stream_id: int, per_s: int, length: int) -> None:
    with (
        aerotape.Aeron(aeron_dir) as aeron,
        aeron.add_publication(channel, stream_id) as publication,
    ):
        count = 0
        begun_s = time.perf_counter()
        while not select.select([sys.stdin], [], [], 0)[0]:
            due = int((time.perf_counter() - begun_s) * per_s)
            for number in range(count, due):
                publication.send((b"%d " % number).ljust(length, b"."))
            count = max(count, due)
            time.sleep(_PAUSE_S)
        seconds = time.perf_counter() - begun_s
        sent = Published(count, publication.position, seconds)
        print(json.dumps(sent._asdict()), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _publish(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
