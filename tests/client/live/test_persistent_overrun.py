"""A persistent subscription that cannot keep up with another subscriber of its live stream."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.daemon.live import poll_until
from support.daemon.recording import start_recording, stop, wait_until
from support.jvm.java import free_port

import aerotape
from aerotape import _native
from aerotape.client.live.persistent_types import PersistentEvent

_FRAME = 1024
_OVER_RUNS = "Flow control over runs"


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """A running archive, with a driver that closes lost streams after a second."""
    with serve(request.param, {"aeron.image.liveness.timeout": "1s"}) as served:
        yield served


def _over_runs(client: aerotape.ArchiveClient) -> int:
    """The datagrams that the archive's driver discarded because they were past a window."""
    rows = client.aeron.native.counters().rows(0)
    return next(row[-1] for row in rows if _OVER_RUNS in str(row))


# Half a term of 32 messages is the window of a receiver.
@pytest.mark.parametrize("count", [44, 80])
def test_overrun_by_a_faster_subscriber(
    archive: ServedArchive, driver: _native.MediaDriver, count: int
) -> None:
    """With max flow control, what was missed is sent again, or replayed: nothing is lost."""
    control = f"aeron:udp?control=localhost:{free_port()}"
    channel = f"{control}|control-mode=dynamic|fc=max|ssc=true|term-length=64k"
    events: list[PersistentEvent] = []
    received: list[aerotape.Message] = []
    with archive.connect() as client, aerotape.Aeron(driver.aeron_dir) as other:
        made = start_recording(client, channel)
        made.send([b"a" * (_FRAME - 32)] * 5)
        with (
            client.persistent_subscription(
                made.recording_id,
                f"{control}|endpoint=localhost:0",
                start="start",
                on_event=events.append,
            ) as subscription,
            other.add_subscription(f"{control}|endpoint=localhost:0", made.stream_id) as fast,
        ):
            poll_until(subscription, received, lambda: subscription.is_live)
            wait_until(lambda: fast.image_count == 1, "the image of the faster subscriber")
            before = _over_runs(client)
            fast_count = 0
            for index in range(count):
                payload = bytes([index]) * (_FRAME - 32)
                while (position := made.publication.offer(payload)) < 0:
                    fast_count += len(fast.poll())
                made.sent.append((payload, position, 0))

            def has_all() -> bool:
                nonlocal fast_count
                fast_count += len(fast.poll())
                # All that is past the window has arrived.
                return fast_count == count and _over_runs(client) >= before + count - 32

            wait_until(has_all, "the reception by the faster subscriber")
            assert not [each for each in received if each.end_position > 5 * _FRAME]
            poll_until(subscription, received, lambda: len(received) == 5 + count)
            poll_until(subscription, received, lambda: subscription.is_live)
            made.send([b"last"])
            poll_until(subscription, received, lambda: len(received) == 6 + count)
        stop(client, made)
    assert [(each.payload, each.end_position) for each in received] == [
        each[:2] for each in made.sent
    ]
    kinds = [each.kind for each in events if each.kind != "error"]
    # The driver retransmits what is less than a term behind, as far as its windows reach.
    assert kinds == (
        ["live-joined"] if count == 44 else ["live-joined", "live-left", "live-joined"]
    )
