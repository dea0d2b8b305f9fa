"""Live publications that are recorded, for subscribers that start in the recording."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import aerotape
from aerotape import PersistentSubscription
from aerotape.aeron import ADMIN_ACTION
from support.beside import working
from support.daemon.recording import Made, start_recording
from support.jvm.java import free_port
from support.model.messages import message


class Live:
    """A recorded publication, and a thread that sends further messages.

    Attributes:
        made: the recording, and all that was sent.
        channel: of the publication.
        subscriber_channel: the channel of a subscriber.
    """

    def __init__(self, client: aerotape.ArchiveClient, count: int, channel: str = "") -> None:
        """Publish and record `count` messages, on a channel for several receivers by default."""
        if not channel:
            control = f"aeron:udp?control=localhost:{free_port()}"
            self.subscriber_channel = f"{control}|endpoint=localhost:0"
            # The publication waits for slow receivers, but not long for lost ones.
            channel = f"{control}|control-mode=dynamic|ssc=true|fc=min,t:300ms"
        else:
            self.subscriber_channel = channel
        self.channel = channel
        self.made: Made = start_recording(client, channel, count)

    @contextmanager
    def sending(self, pause_s: float = 0.0005) -> Iterator[None]:
        """Send further messages until the block ends."""

        def send(over: threading.Event) -> None:
            made = self.made
            position = 0
            # A publication that has begun another term has not sent the message that follows.
            while not over.is_set() or position == ADMIN_ACTION:
                index = len(made.sent)
                payload, reserved = message(made.stream_id, index, 0, 6000), index * 7 - 3
                # There may be no subscriber at the end.
                position = made.publication.offer(payload, reserved)
                if position > 0:
                    made.sent.append((payload, position, reserved))
                time.sleep(pause_s)

        with working(send):
            yield

    def send(self, count: int) -> None:
        """Send `count` further messages, of up to 6000 bytes."""
        made = self.made
        first = len(made.sent)
        made.send(message(made.stream_id, first + index, 0, 6000) for index in range(count))

    def check(self, received: Iterable[aerotape.Message], first: int = 0) -> None:
        """Check that these are the messages sent, from message `first` on, without a gap."""
        got = [(each.payload, each.end_position, each.reserved_value) for each in received]
        assert got == self.made.sent[first : first + len(got)]


def poll_until(
    subscription: PersistentSubscription,
    received: list[aerotape.Message],
    condition: Callable[[], bool],
    timeout_s: float = 60.0,
) -> None:
    """Poll a subscription into a list until a condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, (subscription.state, subscription.position)
        received += subscription.poll(timeout_ns=10_000_000)


def read_until_live(
    subscription: PersistentSubscription, live: Live, received: list[aerotape.Message]
) -> None:
    """Read until all messages sent were received and the live stream is joined."""

    def is_live() -> bool:
        has_all = received[-1:] and received[-1].end_position >= live.made.end
        return bool(subscription.is_live and has_all)

    poll_until(subscription, received, is_live)


def cut_off(subscription: PersistentSubscription) -> None:
    """Make the driver remove the live image from the subscription, as after a loss."""
    image = subscription._machine._live.image()
    assert image is not None
    image.reject("cut off by a test")
