"""The subscription to the live stream that a persistent subscription joins."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aerotape import _native
from aerotape.archive.driver_tasks import add_subscription
from aerotape.archive.waiting import Running
from aerotape.errors import AeronTimeoutError

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


@dataclass(eq=False)
class LiveSubscription:
    """A subscription to the live stream, added and closed on demand.

    Attributes:
        timeout_ns: after how long without a publisher `on_error` is called, once.
    """

    aeron: _native.AeronClient
    channel: str
    timeout_ns: int
    on_error: Callable[[Exception], None]
    _recording: RecordingDescriptor | None = field(default=None, init=False)
    _adding: Running[_native.Subscription] | None = field(default=None, init=False)
    _subscription: _native.Subscription | None = field(default=None, init=False)
    _image: _native.Image | None = field(default=None, init=False)
    _deadline_ns: int | None = field(default=None, init=False)
    _retry_at_ns: int = field(default=0, init=False)

    @property
    def is_wanted(self) -> bool:
        """Whether there is a subscription, or one is being added."""
        return self._adding is not None or self._subscription is not None

    def begin(self, recording: RecordingDescriptor) -> None:
        """Start to add the subscription, unless that has just failed or was put off."""
        self.close()
        if time.monotonic_ns() < self._retry_at_ns:
            return
        self._recording = recording
        self._adding = Running(
            add_subscription(self.aeron, self.channel, recording.stream_id, self.timeout_ns)
        )
        self._adding.advance()

    def image(self) -> _native.Image | None:
        """Return the image of a publisher, at best of the recorded stream; None without one."""
        if self._adding is not None:
            self._await_subscription(self._adding)
        if self._subscription is None:
            return None
        if self._image is None:
            images = self._subscription.images()
            self._image = next(filter(self._is_recorded, images), next(iter(images), None))
            if self._image is None:
                self._check_deadline()
        else:
            # Lets the native client free its older lists of images.
            _ = self._subscription.image_count
        return self._image

    def _is_recorded(self, image: _native.Image) -> bool:
        return self._recording is None or is_same_stream(image, self._recording)

    def _await_subscription(self, adding: Running[_native.Subscription]) -> None:
        try:
            adding.advance()
        except AeronTimeoutError as error:
            self._adding = None
            self._retry_at_ns = time.monotonic_ns() + _RETRY_AFTER_NS
            self.on_error(error)
            return
        if adding.is_done:
            self._adding = None
            self._subscription = adding.result
            self._deadline_ns = time.monotonic_ns() + self.timeout_ns

    def _check_deadline(self) -> None:
        if self._deadline_ns is None or time.monotonic_ns() < self._deadline_ns:
            return
        self._deadline_ns = None
        stream_id = None if self._recording is None else self._recording.stream_id
        self.on_error(
            AeronTimeoutError(
                f"no publisher on the live channel {self.channel} stream {stream_id} "
                f"within {self.timeout_ns / 1e9:g} s: check that it is running, the channel and "
                "stream id, and firewalls; still waiting"
            )
        )

    def put_off(self) -> None:
        """Close the subscription, and add none again before the timeout is up."""
        self.close()
        self._retry_at_ns = time.monotonic_ns() + self.timeout_ns

    def close(self) -> None:
        """Close the subscription. Idempotent."""
        adding, self._adding = self._adding, None
        if adding is not None:
            adding.close()
        subscription, self._subscription = self._subscription, None
        self._image = None
        if subscription is not None:
            subscription.close()
