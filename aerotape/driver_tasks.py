"""Tasks that wait for the media driver: adding publications, subscriptions, counters; bound ports.

The port or session id of a closed channel is in use until the driver has cleaned up; until then it
refuses an add with RESOURCE_TEMPORARILY_UNAVAILABLE, and the add is repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from aerotape import _native
from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.channel_uri import ChannelUri
from aerotape.errors import AeronError, AeronTimeoutError
from aerotape.waiting import Pause, Task, Until

_DRIVER_POLL_NS: Final = 100_000
_RETRY_NS: Final = 10_000_000

_Added = TypeVar("_Added", covariant=True)


class PendingAdd(Protocol[_Added]):
    """The result of the native client's asynchronous adds."""

    def poll(self) -> _Added | None: ...
    def cancel(self) -> None: ...


_T = TypeVar("_T")


def add(begin: Callable[[], PendingAdd[_T]], what: str, timeout_ns: int | None) -> Task[_T]:
    """Add a resource and return it.

    Args:
        begin: sends the command to the driver; called again after each temporary refusal.
        what: the resource, for error messages: "a subscription to …".
        timeout_ns: None: no limit.

    Raises:
        AeronError: the driver refuses it.
        AeronTimeoutError: the driver has not responded, or has refused it temporarily, in time.
        ClosedError: the client has been closed, or its driver is lost.
    """
    deadline_ns = None if timeout_ns is None else time.monotonic_ns() + timeout_ns
    while True:
        pending = begin()
        try:
            adding = Until(pending.poll, deadline_ns, _DRIVER_POLL_NS)
            yield adding
            if adding.value is None:
                raise _late(what, timeout_ns)
            return adding.value
        except AeronError as error:
            if error.code != RESOURCE_TEMPORARILY_UNAVAILABLE:
                raise
            if deadline_ns is not None and time.monotonic_ns() >= deadline_ns:
                raise _late(what, timeout_ns, f": {error}") from error
        except BaseException:
            pending.cancel()
            raise
        yield Pause(_RETRY_NS)


def _late(what: str, timeout_ns: int | None, why: str = "") -> AeronTimeoutError:
    in_time = "" if timeout_ns is None else f" within {timeout_ns / 1e9:g} s"
    return AeronTimeoutError(f"the media driver has not added {what}{in_time}{why}")


def add_subscription(
    aeron: _native.AeronClient, channel: str, stream_id: int, timeout_ns: int
) -> Task[_native.Subscription]:
    """Add a subscription."""
    return add(
        lambda: aeron.async_add_subscription(channel, stream_id),
        f"a subscription to {channel} stream {stream_id}",
        timeout_ns,
    )


def add_publication(
    aeron: _native.AeronClient, channel: str, stream_id: int, timeout_ns: int
) -> Task[_native.ExclusivePublication]:
    """Add an exclusive publication."""
    return add(
        lambda: aeron.async_add_exclusive_publication(channel, stream_id),
        f"a publication to {channel} stream {stream_id}",
        timeout_ns,
    )


def bind_port(subscription: _native.Subscription, channel: str, timeout_ns: int) -> Task[str]:
    """Wait until the driver has bound a port, and return `channel` with it."""
    late = f"the media driver has not bound a port for {subscription.channel} in time"
    endpoint = yield from wait_for(subscription.resolved_endpoint, late, timeout_ns)
    uri = ChannelUri.parse(channel)
    uri.put("endpoint", endpoint)
    return str(uri)


def wait_for(probe: Callable[[], _T | None], late: str, timeout_ns: int) -> Task[_T]:
    """Wait until `probe` returns something and return it; `late` is the error text at the end."""
    found = Until(probe, time.monotonic_ns() + timeout_ns, _DRIVER_POLL_NS)
    yield found
    if found.value is None:
        raise AeronTimeoutError(late)
    return found.value
