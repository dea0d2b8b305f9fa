"""The live stream that a persistent subscription is to join: asked for, waited for, given up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aerotape import _native
from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.errors import AeronError, AeronTimeoutError

_RETRY_AFTER_NS: Final = 100_000_000


class LiveSide:
    """A subscription to the live stream, while there is to be one."""

    def __init__(
        self,
        aeron: _native.AeronClient,
        channel: str,
        timeout_ns: int,
        on_error: Callable[[Exception], None],
    ) -> None:
        """Begin without one.

        Args:
            timeout_ns: after how long without a publisher `on_error` is told, once.
        """
        self._aeron = aeron
        self._channel = channel
        self._timeout_ns = timeout_ns
        self._on_error = on_error
        self._stream_id = 0
        self._pending: _native.PendingSubscription | None = None
        self._subscription: _native.Subscription | None = None
        self._image: _native.Image | None = None
        self._deadline_ns: int | None = None
        self._retry_at_ns = 0

    @property
    def is_wanted(self) -> bool:
        """Whether there is a subscription, or the driver has been asked for one."""
        return self._pending is not None or self._subscription is not None

    def begin(self, stream_id: int) -> None:
        """Ask the driver for the subscription, unless it has just said that it will work later."""
        self.close()
        if time.monotonic_ns() < self._retry_at_ns:
            return
        self._stream_id = stream_id
        self._pending = self._aeron.async_add_subscription(self._channel, stream_id)

    def image(self) -> _native.Image | None:
        """Return the stream of a publisher, None while there is none.

        Raises:
            AeronError: the driver refuses the subscription for good.
        """
        if self._pending is not None:
            self._await_subscription(self._pending)
        if self._subscription is None:
            return None
        if self._image is None:
            self._image = next(iter(self._subscription.images()), None)
            if self._image is None:
                self._check_deadline()
        else:
            # Shows the native client that its older lists of images are not looked at any more.
            _ = self._subscription.image_count
        return self._image

    def _await_subscription(self, pending: _native.PendingSubscription) -> None:
        try:
            self._subscription = pending.poll()
        except AeronError as error:
            self._pending = None
            if error.code != RESOURCE_TEMPORARILY_UNAVAILABLE:
                raise
            self._retry_at_ns = time.monotonic_ns() + _RETRY_AFTER_NS
            self._on_error(error)
            return
        if self._subscription is not None:
            self._pending = None
            self._deadline_ns = time.monotonic_ns() + self._timeout_ns

    def _check_deadline(self) -> None:
        if self._deadline_ns is None or time.monotonic_ns() < self._deadline_ns:
            return
        self._deadline_ns = None
        self._on_error(
            AeronTimeoutError(
                f"no publisher on the live channel {self._channel} stream {self._stream_id} "
                f"within {self._timeout_ns / 1e9:g} s: it may be down, the channel or stream "
                "another one, or a firewall in between; still waiting"
            )
        )

    def close(self) -> None:
        """Give the subscription up. Idempotent."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()
        subscription, self._subscription = self._subscription, None
        self._image = None
        if subscription is not None:
            subscription.close()
