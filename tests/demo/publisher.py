"""One publisher of the demo, a separate process: sends messages and reports what it sent.

    publisher.py AERON_DIR CHANNEL STREAM_ID SEED COUNT

Sends COUNT messages (0: until its input closes) and prints one JSON object: count, bytes, digest,
the position after the middle message and the last one, the seconds it took. Then it waits for its
input to close before it closes the publication, so that the recording can catch up.
"""

from __future__ import annotations

import json
import select
import sys
import time

from market import Digest, messages

import aerotape

SEND_TIMEOUT_NS = 20_000_000_000
FLOOD_PAUSE_S = 0.0005


def input_closed() -> bool:
    """Return whether the demo has closed standard input."""
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready) and not sys.stdin.read(1)


def main() -> int:
    """Publish; the exit code is 0 if all messages were sent."""
    aeron_dir, channel, stream_id, seed, count = sys.argv[1:6]
    total = int(count)
    sent = Digest()
    middle_position = position = 0
    with aerotape.Aeron(aeron_dir) as aeron:
        publication = aeron.add_publication(channel, int(stream_id))
        started_at = time.perf_counter()
        for payload in messages(int(seed), total or None):
            position = publication.send(payload, SEND_TIMEOUT_NS)
            if position < 0:
                print(f"publisher {channel}: offer answered {position}", file=sys.stderr)
                return 1
            sent.add(payload)
            if sent.count == total // 2:
                middle_position = position
            if not total and sent.count % 100 == 0:
                time.sleep(FLOOD_PAUSE_S)
                if input_closed():
                    break
        seconds = time.perf_counter() - started_at
        report = {
            "count": sent.count,
            "bytes": sent.size_bytes,
            "digest": str(sent),
            "middle_position": middle_position,
            "position": position,
            "seconds": seconds,
            "session_id": publication.session_id,
        }
        print(json.dumps(report), flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
