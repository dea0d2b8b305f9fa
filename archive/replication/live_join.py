"""Transition from the replay of a recording to the live stream that is being recorded.

The replay first catches up with the recorded position of the source. Then the live stream is added
to the subscription: both carry the same session id, so that they are one image. When the image has
all that the source has recorded and receives from both, the replay is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.replication.source_requests import source_position
from aerotape.client.live.join_rule import is_joined, is_near_live
from aerotape.driver_tasks import wait_for
from aerotape.errors import ArchiveError
from aerotape.waiting import Pause, Task

if TYPE_CHECKING:
    from aerotape._native import Image, Subscription
    from aerotape.client.session.client_session import ClientSession


def add_destination(subscription: Subscription, channel: str, timeout_ns: int) -> Task[None]:
    """Add a destination to the recording's subscription.

    Raises:
        AeronError: the driver refuses.
        AeronTimeoutError: it has not responded in time.
    """
    pending = subscription.async_add_destination(channel)
    late = f"failed to add destination {channel}: timeout"
    yield from wait_for(lambda: pending.poll() or None, late, timeout_ns)


def catch_up(image: Image, position: int) -> Task[None]:
    """Wait until an image has reached a position.

    Raises:
        ArchiveError: it ends before.
    """
    while image.position < position:
        _check_open(image)
        yield Pause()


def join(
    session: ClientSession,
    recording_id: int,
    image: Image,
    subscription: Subscription,
    live_destination: str,
) -> Task[int]:
    """Add the live stream; return the position at which the replay can be dropped."""
    is_live_added = False
    while True:
        live_position = yield from source_position(session, recording_id)
        position = image.position
        if not is_live_added:
            if is_near_live(image, live_position - position):
                yield from add_destination(subscription, live_destination, session.timeout_ns)
                is_live_added = True
        elif is_joined(image, live_position - position):
            return position
        _check_open(image)
        yield Pause()


def _check_open(image: Image) -> None:
    if image.is_closed:
        raise ArchiveError("replication image closed unexpectedly")
