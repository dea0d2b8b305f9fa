"""Going over from the replay of a recording to the live stream that is being recorded.

The replay first catches up with what the source has recorded. Once it is near, the live stream is
taken in beside it: both carry the same session, so that they are one image, and where both have
something it is the same. When the image has all that the source has and really comes both ways, the
replay is dropped; no message is lost or doubled by that.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from aerotape.archive.protocol import NULL_POSITION
from aerotape.archive.replication.source_client import SourceArchive
from aerotape.archive.replication.steps import Step, wait_for
from aerotape.codecs import archive as codecs
from aerotape.errors import AeronTimeoutError, ArchiveError

if TYPE_CHECKING:
    from aerotape._native import Image, Subscription

# How near the live stream the replay must be, at most, for the live stream to be taken in too.
_MAX_WINDOW_BYTES: Final = 32 * 1024 * 1024
_POSITION_ATTEMPTS: Final = 3


def no_live_source() -> ArchiveError:
    """Return the error of a source recording that has stopped."""
    return ArchiveError("cannot live merge without active source recording")


def source_position(source: SourceArchive, recording_id: int) -> Step[int]:
    """Return how far the source has recorded the live stream, bytes.

    Raises:
        ArchiveError: it does not record it any more (or as `SourceArchive.ask`).
    """
    position = yield from source.ask(
        codecs.RecordingPositionRequest(recording_id=recording_id),
        "to get recording position of the source",
    )
    if position == NULL_POSITION:
        raise no_live_source()
    return position


def add_destination(subscription: Subscription, channel: str, timeout_ns: int) -> Step[None]:
    """Let a subscription receive from another channel too.

    Raises:
        AeronError: the driver refuses.
        AeronTimeoutError: it has not answered in time.
    """
    pending = subscription.async_add_destination(channel)
    yield from wait_for(
        lambda: pending.poll() or None,
        time.monotonic_ns() + timeout_ns,
        f"to add destination {channel}",
    )


def catch_up(image: Image, position: int) -> Step[None]:
    """Wait until an image has come to a position.

    Raises:
        ArchiveError: it ends before.
    """
    while image.position < position:
        if image.is_closed:
            raise ArchiveError("replication image closed unexpectedly")
        yield


def join(
    source: SourceArchive,
    recording_id: int,
    image: Image,
    subscription: Subscription,
    live_destination: str,
) -> Step[int]:
    """Take in the live stream; return the position at which the replay can be dropped."""
    window = min(image.term_buffer_length // 4, _MAX_WINDOW_BYTES)
    is_live_added = False
    while True:
        live_position = yield from _source_position_retried(source, recording_id)
        position = image.position
        if not is_live_added:
            if live_position - position <= window:
                timeout_ns = source.address.timeout_ns
                yield from add_destination(subscription, live_destination, timeout_ns)
                is_live_added = True
        elif live_position <= position and image.active_transport_count >= 2:
            return position
        if image.is_closed:
            raise ArchiveError("replication image closed unexpectedly")
        yield


def _source_position_retried(source: SourceArchive, recording_id: int) -> Step[int]:
    for _ in range(_POSITION_ATTEMPTS - 1):
        with contextlib.suppress(AeronTimeoutError):
            return (yield from source_position(source, recording_id))
    return (yield from source_position(source, recording_id))
