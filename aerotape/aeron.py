"""Publications, subscriptions and the client of a media driver, for users of an archive.

Thin, typed handles over the native client: they add defaults, context managers, blocking sends
with typed errors and messages with names. The recorder and the replayer do not use them.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Generic, TypeVar

from aerotape import _native
from aerotape.context import Closing
from aerotape.errors import AeronError, AeronTimeoutError, AerotapeError, ClosedError
from aerotape.formatting import shown
from aerotape.media_driver import CLIENT_ERROR_DRIVER_TIMEOUT, await_driver, default_aeron_dir
from aerotape.message import Message, MessageBuffer

Data = bytes | bytearray | memoryview

NOT_CONNECTED: Final = -1
BACK_PRESSURED: Final = -2
ADMIN_ACTION: Final = -3
CLOSED: Final = -4
MAX_POSITION_EXCEEDED: Final = -5

# The driver's error code for a resource still in use, such as a port: a retry may succeed.
RESOURCE_TEMPORARILY_UNAVAILABLE: Final = -10

DEFAULT_TIMEOUT_NS: Final = 10_000_000_000

_TRANSIENT: Final = {
    NOT_CONNECTED: "no subscriber is connected",
    BACK_PRESSURED: "subscribers do not keep up (back pressure)",
    ADMIN_ACTION: "a term is being rotated",
}
_SPIES: Final = (
    "; a recording by an archive on the same media driver is a spy, which does not count: add "
    "ssc=true to the channel, or start the driver with aeron.spies.simulate.connection=true"
)
# The longest single poll of a subscription, so that Ctrl-C and a close take effect.
_POLL_SLICE_NS: Final = 100_000_000
_POLL_FRAGMENTS: Final = 256

_NativeStream = TypeVar("_NativeStream", bound="_native._PublicationBase | _native.Subscription")


class _Stream(Closing, Generic[_NativeStream]):
    """A publication or subscription; with destinations if its channel has control-mode=manual."""

    def __init__(self, native: _NativeStream) -> None:
        self._native = native

    @property
    def channel(self) -> str:
        """The channel's URI as given."""
        return self._native.channel

    @property
    def stream_id(self) -> int:
        return self._native.stream_id

    @property
    def registration_id(self) -> int:
        return self._native.registration_id

    @property
    def is_closed(self) -> bool:
        return self._native.is_closed

    @property
    def is_connected(self) -> bool:
        """Whether a publication has a subscriber, a subscription a publisher."""
        return self._native.is_connected

    def wait_connected(self, timeout_ns: int = DEFAULT_TIMEOUT_NS) -> None:
        """Wait until this is connected.

        Raises:
            AeronTimeoutError: there was no subscriber, or no publisher, for `timeout_ns`.
            ClosedError: this is closed.
        """
        deadline_ns = time.monotonic_ns() + timeout_ns
        while not self.is_connected:
            if self.is_closed:
                raise self._failure(CLOSED, timeout_ns)
            if time.monotonic_ns() >= deadline_ns:
                raise self._failure(NOT_CONNECTED, timeout_ns)
            time.sleep(0.001)

    @abstractmethod
    def _failure(self, result: int, timeout_ns: int) -> Exception:
        """Return the error for a negative result after waiting."""

    def add_destination(self, channel: str, timeout_ns: int = DEFAULT_TIMEOUT_NS) -> None:
        """Send to, or receive from, one more destination.

        Args:
            channel: ``aeron:udp?endpoint=…`` (for a subscription with ``control=…`` as well, or
                ``aeron:ipc``).
            timeout_ns: time limit for the driver's response.

        Raises:
            AeronError: the driver refused, for example without ``control-mode=manual``.
            AeronTimeoutError: the driver did not respond.
            ClosedError: this is closed.
        """
        self._native.add_destination(channel, timeout_ns)

    def remove_destination(self, channel: str, timeout_ns: int = DEFAULT_TIMEOUT_NS) -> None:
        """Undo `add_destination` of the same channel; one that is not there counts as removed.

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not respond.
            ClosedError: this is closed.
        """
        self._native.remove_destination(channel, timeout_ns)

    def __repr__(self) -> str:
        return shown(self, "channel", "stream_id")


def sending_error(
    publication: _native._PublicationBase, result: int, timeout_ns: int
) -> AerotapeError:
    """Return the error of a negative result of an offer, after waiting."""
    what = f"{publication.channel} stream {publication.stream_id}"
    if result in _TRANSIENT:
        is_udp = publication.channel.startswith("aeron:udp")
        is_spied = is_udp and "ssc=true" not in publication.channel
        hint = _SPIES if result == NOT_CONNECTED and is_spied else ""
        return AeronTimeoutError(
            f"cannot send on {what}: {_TRANSIENT[result]} for {timeout_ns / 1e9:g} s{hint}"
        )
    if result == MAX_POSITION_EXCEEDED:
        return AeronError(
            f"cannot send on {what}: the stream has reached its last position; "
            "add the publication again, with longer terms if need be",
            result,
        )
    return ClosedError(f"cannot send on {what}: the publication is closed")


_NativePublication = TypeVar("_NativePublication", bound="_native._PublicationBase")


class _PublicationBase(_Stream[_NativePublication]):
    @property
    def session_id(self) -> int:
        return self._native.session_id

    @property
    def initial_term_id(self) -> int:
        return self._native.initial_term_id

    @property
    def term_buffer_length(self) -> int:
        """Bytes."""
        return self._native.term_buffer_length

    @property
    def max_message_length(self) -> int:
        """Longest message that can be sent, bytes."""
        return self._native.max_message_length

    @property
    def max_payload_length(self) -> int:
        """Longest message that fits one frame, bytes."""
        return self._native.max_payload_length

    @property
    def position(self) -> int:
        """Position after the last message sent, bytes; -1 once closed."""
        return self._native.position

    def offer(self, data: Data, reserved_value: int = 0) -> int:
        """Try once to send a message.

        Returns:
            The position after the message, or `NOT_CONNECTED`, `BACK_PRESSURED`,
            `ADMIN_ACTION`, `CLOSED` or `MAX_POSITION_EXCEEDED`.
        """
        return self._native.offer(data, reserved_value)

    def send(
        self, data: Data, timeout_ns: int = DEFAULT_TIMEOUT_NS, reserved_value: int = 0
    ) -> int:
        """Send a message, waiting for a subscriber and for room.

        Returns:
            The position after the message, bytes.

        Raises:
            AeronTimeoutError: no subscriber was connected or there was no room for `timeout_ns`.
            ClosedError: the publication is closed.
            AeronError: the stream is at its last position, or the message is too long.
        """
        position = self._native.offer(data, reserved_value)
        if position > 0:
            return position
        if position in _TRANSIENT:
            position = self._native.offer_within(data, timeout_ns, reserved_value)
            if position > 0:
                return position
        raise self._failure(position, timeout_ns)

    def _failure(self, result: int, timeout_ns: int) -> Exception:
        return sending_error(self._native, result, timeout_ns)

    def __repr__(self) -> str:
        return shown(self, "channel", "stream_id", "session_id")

    def close(self) -> None:
        """Close the publication. Idempotent."""
        self._native.close()


class Publication(_PublicationBase[_native.Publication]):
    """A publication that all users of this client with the same channel and stream share."""


class ExclusivePublication(_PublicationBase[_native.ExclusivePublication]):
    """A publication with a dedicated session; for one thread at a time."""

    def revoke(self) -> None:
        """Close immediately; subscribers lose what they have not consumed."""
        self._native.revoke()


class Subscription(_Stream[_native.Subscription]):
    """A subscription: iterate it for its messages, or poll it in batches.

    For one consumer. Iterating blocks for messages and ends when the subscription is closed.
    Messages that an abandoned iteration had polled and not returned come first in the next one.
    """

    def __init__(self, native: _native.Subscription) -> None:
        super().__init__(native)
        self._backlog = MessageBuffer()

    @property
    def native(self) -> _native.Subscription:
        """The native subscription."""
        return self._native

    @property
    def image_count(self) -> int:
        """The number of publishers."""
        return self._native.image_count

    def images(self) -> list[_native.Image]:
        """Return the images of the publishers."""
        return self._native.images()

    def resolved_endpoint(self) -> str | None:
        """Return the host:port actually bound (for port 0), or None while unknown."""
        return self._native.resolved_endpoint()

    def poll(self, fragment_limit: int = _POLL_FRAGMENTS, timeout_ns: int = 0) -> list[Message]:
        """Return the messages that up to `fragment_limit` fragments complete.

        With a timeout, wait that long for the first fragment.
        """
        if not self._backlog:
            self._backlog.take(self._native.poll, fragment_limit, timeout_ns)
        return self._backlog.messages()

    def __iter__(self) -> Iterator[Message]:
        backlog = self._backlog
        while not self._native.is_closed:
            if not backlog:
                try:
                    backlog.take(self._native.poll, _POLL_FRAGMENTS, _POLL_SLICE_NS)
                except ClosedError:  # by another thread, just now
                    return
            yield from backlog.drain()

    def _failure(self, result: int, timeout_ns: int) -> Exception:
        what = f"{self.channel} stream {self.stream_id}"
        if result == CLOSED:
            return ClosedError(f"the subscription to {what} is closed")
        return AeronTimeoutError(f"no publisher on {what} for {timeout_ns / 1e9:g} s")

    def close(self) -> None:
        """Close the subscription. Idempotent."""
        self._native.close()


class Aeron(Closing):
    """A client of a media driver.

    >>> with aerotape.Aeron(aeron_dir) as aeron:
    ...     subscription = aeron.add_subscription("aeron:ipc", 2003)
    ...     publication = aeron.add_publication("aeron:ipc", 2003)
    ...     publication.send(b"hello")
    ...     print(next(iter(subscription)).payload)
    64
    b'hello'
    """

    def __init__(
        self,
        aeron_dir: str | Path | None = None,
        *,
        client_name: str = "aerotape",
        driver_timeout_ns: int = DEFAULT_TIMEOUT_NS,
        start_timeout_ns: int | None = None,
    ) -> None:
        """Connect to a media driver.

        Args:
            aeron_dir: the driver's directory. Default: `default_aeron_dir()`.
            client_name: the name that the driver shows for this client.
            driver_timeout_ns: the maximum age of the driver's heartbeat, which it updates about
                every second.
            start_timeout_ns: how long to wait for a driver; 0 fails at once. Default:
                `driver_timeout_ns`.

        Raises:
            AeronError: there is no running driver.
        """
        directory = default_aeron_dir() if aeron_dir is None else str(aeron_dir)
        if start_timeout_ns is None:
            await_driver(directory, driver_timeout_ns)
        else:
            await_driver(directory, start_timeout_ns, driver_timeout_ns)
        try:
            self._native = _native.AeronClient(
                directory,
                client_name=client_name,
                driver_timeout_ms=driver_timeout_ns // 1_000_000,
            )
        except AeronError as error:
            if error.code != CLIENT_ERROR_DRIVER_TIMEOUT:
                raise
            raise AeronError(f"{error}; is it dead? start it again", error.code) from error

    @property
    def native(self) -> _native.AeronClient:
        """The native client."""
        return self._native

    @property
    def aeron_dir(self) -> str:
        """The driver's directory."""
        return self._native.aeron_dir

    @property
    def is_closed(self) -> bool:
        return self._native.is_closed

    def add_publication(
        self, channel: str, stream_id: int, timeout_ns: int = DEFAULT_TIMEOUT_NS
    ) -> Publication:
        """Publish on a channel and stream.

        >>> with aeron.add_publication("aeron:ipc", 2004) as publication:
        ...     publication.is_connected
        False

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not respond.
        """
        return Publication(self._native.add_publication(channel, stream_id, timeout_ns))

    def add_exclusive_publication(
        self, channel: str, stream_id: int, timeout_ns: int = DEFAULT_TIMEOUT_NS
    ) -> ExclusivePublication:
        """Publish on a channel and stream with a dedicated session.

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not respond.
        """
        return ExclusivePublication(
            self._native.add_exclusive_publication(channel, stream_id, timeout_ns)
        )

    def add_subscription(
        self, channel: str, stream_id: int, timeout_ns: int = DEFAULT_TIMEOUT_NS
    ) -> Subscription:
        """Subscribe to a channel and stream.

        >>> with aeron.add_subscription("aeron:ipc", 2005) as subscription:
        ...     subscription.poll()
        []

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not respond.
        """
        return Subscription(
            self._native.add_subscription(channel, stream_id, timeout_ns=timeout_ns)
        )

    def counters(self) -> _native.CountersReader:
        """Return a reader of the driver's counters."""
        return self._native.counters()

    def close(self) -> None:
        """Close the client and everything it created. Idempotent."""
        self._native.close()

    def __repr__(self) -> str:
        return shown(self, "aeron_dir")
