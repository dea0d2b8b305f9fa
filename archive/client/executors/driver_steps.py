"""Steps that wait for the media driver: adding publications and subscriptions."""

from __future__ import annotations

import time
from typing import Final, Protocol, TypeVar

from aerotape import _native
from aerotape.archive.client import channels
from aerotape.archive.client.requests.request import Pause, Steps
from aerotape.errors import AeronTimeoutError

_DRIVER_POLL_NS: Final = 100_000

_Added = TypeVar("_Added", covariant=True)


class Pending(Protocol[_Added]):
    """What the native client's asynchronous adds return."""

    def poll(self) -> _Added | None: ...
    def cancel(self) -> None: ...


_T = TypeVar("_T")


def added(pending: Pending[_T], what: str, timeout_ns: int) -> Steps[_T]:
    """Wait for the driver to add something and return it.

    Args:
        what: what is added, for error messages: "a subscription to …".

    Raises:
        AeronError: the driver refused.
        AeronTimeoutError: it did not answer in time.
    """
    deadline_ns = time.monotonic_ns() + timeout_ns
    while (it := pending.poll()) is None:
        try:
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(
                    f"the media driver has not added {what} within {timeout_ns / 1e9:g} s"
                )
            yield Pause(_DRIVER_POLL_NS, f"add {what}")
        except BaseException:
            pending.cancel()
            raise
    return it


def subscribed(
    aeron: _native.AeronClient, channel: str, stream_id: int, timeout_ns: int
) -> Steps[_native.Subscription]:
    """Add a subscription. Raises as `added`."""
    pending = aeron.async_add_subscription(channel, stream_id)
    what = f"a subscription to {channel} stream {stream_id}"
    return (yield from added(pending, what, timeout_ns))


def with_bound_port(
    subscription: _native.Subscription, channel: str, timeout_ns: int
) -> Steps[str]:
    """Return `channel` with the port that a subscription to port 0 has got.

    Raises:
        AeronTimeoutError: the driver does not tell in time; the subscription is closed.
    """
    deadline_ns = time.monotonic_ns() + timeout_ns
    try:
        while (endpoint := subscription.resolved_endpoint()) is None:
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(
                    f"the media driver has not bound a port for {subscription.channel} in time"
                )
            yield Pause(_DRIVER_POLL_NS, f"subscribe to {channel}")
    except BaseException:
        subscription.close()
        raise
    return channels.with_endpoint(channel, endpoint)
