"""The subscription to the live stream that a persistent subscription joins."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aerotape import _native
from aerotape.driver_tasks import add_subscription
from aerotape.errors import AeronTimeoutError
from aerotape.waiting import Pause, Running, Task

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor

_RETRY_AFTER_NS: Final = 100_000_000


def is_same_stream(image: _native.Image, recording: RecordingDescriptor) -> bool:
    """Whether positions of an image mean the same as those of a recording.

    A publisher that continues a recorded stream has the same terms; a new stream has another
    initial term id.
    """
    return (
        image.initial_term_id == recording.initial_term_id
        and image.term_buffer_length == recording.term_buffer_length
    )


class LiveSubscription:
    """A subscription to the live stream, added and closed on demand."""

    def __init__(
        self,
        aeron: _native.AeronClient,
        channel: str,
        timeout_ns: int,
        on_error: Callable[[Exception], None],
    ) -> None:
        """Create it without a subscription.

        Args:
            timeout_ns: after how long without a publisher `on_error` is called, once.
        """
        self._aeron = aeron
        self._channel = channel
        self._timeout_ns = timeout_ns
        self._on_error = on_error
        self._running: Running[None] | None = None
        self._image: _native.Image | None = None
        self._retry_at_ns = 0

    @property
    def is_wanted(self) -> bool:
        """Whether there is a subscription, or one is being added."""
        return self._running is not None and not self._running.is_done

    def begin(self, recording: RecordingDescriptor) -> None:
        """Start to add the subscription, unless that has just failed or was put off."""
        self.close()
        if time.monotonic_ns() >= self._retry_at_ns:
            self._running = Running(self._receive(recording))
            self._running.advance()

    def image(self) -> _native.Image | None:
        """Return the image of a publisher, at best of the recorded stream; None without one."""
        if self._running is not None:
            self._running.advance()
        return self._image

    def _receive(self, recording: RecordingDescriptor) -> Task[None]:
        channel, stream_id, timeout_ns = self._channel, recording.stream_id, self._timeout_ns
        try:
            subscription = yield from add_subscription(self._aeron, channel, stream_id, timeout_ns)
        except AeronTimeoutError as error:
            self._retry_at_ns = time.monotonic_ns() + _RETRY_AFTER_NS
            self._on_error(error)
            return
        deadline_ns: int | None = time.monotonic_ns() + timeout_ns
        try:
            while not (images := subscription.images()):
                if deadline_ns is not None and time.monotonic_ns() >= deadline_ns:
                    deadline_ns = None
                    self._on_error(
                        AeronTimeoutError(
                            f"no publisher on the live channel {channel} stream {stream_id} within "
                            f"{timeout_ns / 1e9:g} s: check that it is running, the channel and "
                            "stream id, and firewalls; still waiting"
                        )
                    )
                yield Pause()
            recorded = (image for image in images if is_same_stream(image, recording))
            self._image = next(recorded, images[0])
            while True:
                yield Pause()
                # Lets the native client free its older lists of images.
                _ = subscription.image_count
        finally:
            self._image = None
            subscription.close()

    def put_off(self) -> None:
        """Close the subscription, and add none again before the timeout is up."""
        self.close()
        self._retry_at_ns = time.monotonic_ns() + self._timeout_ns

    def close(self) -> None:
        """Close the subscription. Idempotent."""
        if self._running is not None:
            self._running.close()
