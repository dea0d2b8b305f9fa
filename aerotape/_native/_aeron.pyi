"""Stub of the native core: Aeron's driver and clients, the conductor's mailbox."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar, final

from typing_extensions import Buffer

_T = TypeVar("_T")
# ---- aeron/driver.rs ---------------------------------------------------------------------------

@final
class MediaDriver:
    """An embedded C media driver."""

    @staticmethod
    def launch(properties: Mapping[str, str]) -> MediaDriver:
        """Start a driver in this process from `aeron.*` properties (names as the C driver's)."""
    aeron_dir: Final[str]
    is_closed: Final[bool]
    def close(self) -> None:
        """Stop the driver. Its directory is deleted if so configured and without recordings."""

def recordings_in(directory: str) -> Path | None:
    """Return the directory, in a driver's or behind a link there, that has an archive's recordings.

    None if there is none.
    """

# ---- aeron/client.rs ---------------------------------------------------------------------------

@final
class AeronClient:
    """One Aeron client: a connection to a media driver through its directory.

    The client's conductor is a native thread. Objects created here keep the client alive.
    """

    def __init__(
        self,
        aeron_dir: str,
        *,
        client_name: str = "",
        driver_timeout_ms: int = 10_000,
        mailbox: Mailbox | None = None,
    ) -> None:
        """Connect. With a mailbox, the client's own events (errors, unavailable counters,
        close by the driver) are posted there.
        """
    aeron_dir: Final[str]
    client_id: Final[int]
    is_closed: Final[bool]
    def next_correlation_id(self) -> int: ...
    def counters(self) -> CountersReader: ...
    # The asynchronous adds return at once; poll the result until it is there.
    def async_add_publication(self, channel: str, stream_id: int) -> PendingPublication: ...
    def async_add_exclusive_publication(
        self, channel: str, stream_id: int
    ) -> PendingExclusivePublication: ...
    def async_add_subscription(
        self,
        channel: str,
        stream_id: int,
        mailbox: Mailbox | None = None,
        *,
        report_unavailable: bool = True,
    ) -> PendingSubscription:
        """With a mailbox, the subscription's images are announced there, and with
        `report_unavailable` also their ends.
        """
    def async_add_counter(self, type_id: int, key: bytes, label: str) -> PendingCounter: ...
    # The others wait (interpreter released) and raise AeronError or AeronTimeoutError.
    def add_publication(
        self, channel: str, stream_id: int, timeout_ns: int = 10_000_000_000
    ) -> Publication: ...
    def add_exclusive_publication(
        self, channel: str, stream_id: int, timeout_ns: int = 10_000_000_000
    ) -> ExclusivePublication: ...
    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        mailbox: Mailbox | None = None,
        timeout_ns: int = 10_000_000_000,
    ) -> Subscription: ...
    def add_counter(
        self, type_id: int, key: bytes, label: str, timeout_ns: int = 10_000_000_000
    ) -> Counter: ...
    def close(self) -> None:
        """Close the client and all objects created by it. Idempotent."""

class _Pending(Generic[_T]):
    registration_id: Final[int]
    def poll(self) -> _T | None:
        """Return the object once the driver has responded, None before; raise AeronError when
        the driver refused. Must not be called again after it returned an object or raised.
        """
    def cancel(self) -> None: ...

PendingPublication = _Pending[Publication]
PendingExclusivePublication = _Pending[ExclusivePublication]
PendingSubscription = _Pending[Subscription]
PendingCounter = _Pending[Counter]

@final
class PendingDestination:
    """A destination being added or removed. The driver does it, whether this is polled or not."""

    registration_id: Final[int]
    def poll(self) -> bool:
        """Return True once the driver has done it, False before; raise AeronError when the
        driver refused. Must not be called again after it returned True or raised.
        """

class _PublicationBase:
    channel: Final[str]
    stream_id: Final[int]
    session_id: Final[int]
    registration_id: Final[int]
    initial_term_id: Final[int]
    term_buffer_length: Final[int]
    max_message_length: Final[int]
    max_payload_length: Final[int]
    position: Final[int]
    """Position of the publisher, or -1 once closed."""
    position_limit: Final[int]
    is_connected: Final[bool]
    is_closed: Final[bool]
    def offer(self, data: bytes | bytearray | memoryview, reserved_value: int = 0) -> int:
        """Try once. Return the new position (> 0) or one of Aeron's negative results:
        -1 not connected, -2 back pressured, -3 admin action, -4 closed,
        -5 maximum position exceeded.
        """
    def offer_within(
        self,
        data: bytes | bytearray | memoryview,
        timeout_ns: int,
        reserved_value: int = 0,
    ) -> int:
        """As `offer`, retrying (interpreter released) while not connected, back pressured or
        on admin action, until the timeout; returns the last result.
        """
    # For channels with control-mode=manual.
    def add_destination(self, channel: str, timeout_ns: int = 10_000_000_000) -> None: ...
    def remove_destination(self, channel: str, timeout_ns: int = 10_000_000_000) -> None: ...
    def close(self) -> None: ...

@final
class Publication(_PublicationBase): ...

@final
class ExclusivePublication(_PublicationBase):
    def offer_slices(
        self,
        prefix: bytes,
        source: Buffer,
        slices: Buffer,
        *,
        skip: int = 0,
        patience_ns: int = 0,
    ) -> tuple[int, int]:
        """Offer a message for each slice: `prefix`, then bytes of `source`.

        `slices` is an array of int64, not empty: offset and length of each, in bytes, of which
        the first `skip` bytes are left out. Under back pressure each message is tried for
        `patience_ns`. Return how many were sent and the result of the last offer, 0 where the
        next is longer than `max_message_length`. ValueError for a slice that is not within
        `source`; nothing is sent then. The interpreter is released.
        """
    def revoke(self) -> None:
        """Close at once, dropping what subscribers have not consumed."""

@final
class Image:
    """A stream of one publication, as a subscription sees it. Keeps its log buffers mapped."""

    correlation_id: Final[int]
    session_id: Final[int]
    stream_id: Final[int]
    subscription_registration_id: Final[int]
    source_identity: Final[str]
    join_position: Final[int]
    initial_term_id: Final[int]
    term_buffer_length: Final[int]
    mtu_length: Final[int]
    position: Final[int]
    is_closed: Final[bool]
    is_end_of_stream: Final[bool]
    active_transport_count: Final[int]
    """Number of transports that receive the stream: each destination is one."""
    is_publication_revoked: Final[bool]
    """Whether the publisher revoked the stream, unread parts included."""
    def skip_to(self, position: int, fragment_limit: int) -> int:
        """Skip up to `fragment_limit` fragments that begin before `position`, and padding;
        return how many.
        """
    def reject(self, reason: str) -> None:
        """Disconnect the publisher from this subscription and send it the reason (at most 1023
        bytes). Nothing happens once the image has been released.
        """
    def release(self) -> None:
        """Release the image, as the destructor does."""

# A message (reassembled from its fragments):
# The fields of `aerotape.message.Message`.
_Message = tuple[bytes, int, int, int, int, int, int, int, int, int | None]
# recording_id, session_id and stream_id of the messages of a replay.
_RecordedAs = tuple[int, int, int]

@final
class MessageReader:
    """Reads a stream from one image after the other.

    A message whose first fragments came from one image may be completed from the next, as long as
    that continues at the same position. For one consumer.
    """

    def __init__(self) -> None: ...
    position: Final[int]
    """Position after the last fragment that was read, -1 before the first."""
    def poll(
        self,
        image: Image,
        fragment_limit: int = 10,
        limit_position: int | None = None,
        timeout_ns: int = 0,
        recorded_as: _RecordedAs | None = None,
    ) -> list[_Message]:
        """Take up to `fragment_limit` fragments that begin before `limit_position` and return the
        messages they complete, with the ids `recorded_as` if given. With a
        timeout, wait for the first message (interpreter released), unless no more can arrive:
        the image is closed or the limit reached. ClosedError once the image was released or taken
        over.
        """

@final
class Subscription:
    channel: Final[str]
    stream_id: Final[int]
    registration_id: Final[int]
    is_connected: Final[bool]
    is_closed: Final[bool]
    image_count: Final[int]
    def images(self) -> list[Image]: ...
    def image_by_session_id(self, session_id: int) -> Image | None: ...
    def poll(
        self,
        fragment_limit: int = 10,
        timeout_ns: int = 0,
        recorded_as: _RecordedAs | None = None,
    ) -> list[_Message]:
        """Take up to `fragment_limit` fragments and return the messages they complete, with the
        session and stream id `recorded_as` if given. With a timeout, wait for the first one
        (interpreter released).
        """
    def resolved_endpoint(self) -> str | None:
        """host:port actually bound (for port 0), or None while unknown."""
    # For channels with control-mode=manual. The asynchronous forms return at once.
    def async_add_destination(self, channel: str) -> PendingDestination: ...
    def async_remove_destination(self, channel: str) -> PendingDestination: ...
    def add_destination(self, channel: str, timeout_ns: int = 10_000_000_000) -> None: ...
    def remove_destination(self, channel: str, timeout_ns: int = 10_000_000_000) -> None: ...
    def close(self) -> None:
        """Close the subscription and all images taken from it."""

@final
class Counter:
    id: Final[int]
    registration_id: Final[int]
    is_closed: Final[bool]
    def get(self) -> int: ...
    def set(self, value: int) -> None: ...
    def add(self, delta: int) -> int:
        """Add and return the value before."""
    def propose_max(self, candidate: int) -> None:
        """Set the value unless it is at least as high; atomic."""
    def set_reference_id(self, reference_id: int) -> None:
        """Set the registration id of the owner of the counter; readers see it in `rows`."""
    def close(self) -> None: ...

# (counter_id, type_id, key (112 bytes), label, registration_id, owner_id, reference_id, value)
_CounterRow = tuple[int, int, bytes, str, int, int, int, int]

@final
class CountersReader:
    max_counter_id: Final[int]
    def rows(self, type_id: int | None = None) -> list[_CounterRow]:
        """Allocated counters, all or those of one type."""
    def value(self, counter_id: int) -> int: ...
    def await_value(
        self, counter_id: int, registration_id: int, least: int, timeout_ns: int
    ) -> int | None:
        """Wait until the counter is at least `least`, or for the timeout; return its value.

        None when it was freed before, or is no longer the one with this registration id. The
        interpreter is released. One of the threads of a client that wait here polls for all.
        """
    def state(self, counter_id: int) -> int:
        """0 unused, 1 allocated, -1 reclaimed."""
    def type_id(self, counter_id: int) -> int: ...
    def registration_id(self, counter_id: int) -> int: ...
    def key(self, counter_id: int) -> bytes: ...

# ---- mailbox/ ----------------------------------------------------------------------------------

@final
class ControlMessage:
    """A whole message of a subscription that `Mailbox.wait` polls."""

    subscription_registration_id: Final[int]
    image_correlation_id: Final[int]
    session_id: Final[int]
    """Aeron session of the image."""
    payload: Final[bytes]
    """Of a longer message only the first 65537 bytes."""

@final
class ImageAvailable:
    """A subscription with this mailbox has a new image."""

    image: Final[Image]

@final
class ImageUnavailable:
    """An image of a subscription with this mailbox has ended."""

    subscription_registration_id: Final[int]
    image_correlation_id: Final[int]

@final
class ClientClosed:
    """The media driver is gone, or it has timed the client out."""

@final
class ClientError:
    """An error that the client reports in its conductor thread."""

    code: Final[int]
    message: Final[str]

@final
class RecordingStopped:
    """A recording has ended; with a message it has failed."""

    recording_id: Final[int]
    position: Final[int]
    error_code: Final[int]
    message: Final[str | None]

@final
class RecordingSynced:
    """A requested sync is done: the recording is durable up to `position`."""

    recording_id: Final[int]
    position: Final[int]

@final
class TimeIndexFailed:
    """The time index of a recording cannot be written; the recording continues."""

    recording_id: Final[int]
    message: Final[str]

@final
class ReplayReady:
    """The checks of a replay have passed; its publication may not be connected yet."""

    replay_session_id: Final[int]
    is_answered: Final[bool]
    """Whether the replayer has sent the response to the client."""

@final
class ReplayDone:
    """A replay has ended; with a message it has failed."""

    replay_session_id: Final[int]
    position: Final[int]
    error_code: Final[int]
    message: Final[str | None]

@final
class WorkerFailed:
    """The thread of a worker has panicked: it no longer records and replays."""

    def __init__(self, name: str, reason: str) -> None: ...
    name: Final[str]
    reason: Final[str]

Event: TypeAlias = (
    ControlMessage
    | ImageAvailable
    | ImageUnavailable
    | ClientClosed
    | ClientError
    | RecordingStopped
    | RecordingSynced
    | TimeIndexFailed
    | ReplayReady
    | ReplayDone
    | WorkerFailed
)

@final
class Mailbox:
    """The queue of events from native threads to one Python consumer, the conductor."""

    def __init__(self) -> None: ...
    def wait(
        self,
        subscriptions: Sequence[Subscription] = (),
        timeout_ns: int = 0,
        fragment_limit: int = 10,
        bulk_offers: Sequence[BulkOffer] = (),
    ) -> list[Event]:
        """Return events, oldest first, and whole messages polled from `subscriptions`.

        Without any, wait up to the timeout with the interpreter released, idling as the Java
        archive does by default (backoff to 1 ms). Meanwhile offer the messages of each of
        `bulk_offers`; return also when one of these is over, except with `is_last` and all sent.
        """
    def wake(self) -> None:
        """Make a wait return now (callable from any thread, also from a signal handler)."""

@final
class BulkOffer:
    """Messages that `Mailbox.wait` offers as there is room for them: `prefix`, then bytes of
    `source`, for each slice.

    The bytes are copied. `slices` is an array of int64: offset and length of each, in bytes, of
    which the first `skip` bytes are left out. With `is_last` nothing follows, and the wait does
    not end when all are sent.

    Raises:
        ValueError: a slice is not within `source`.
    """

    def __init__(
        self,
        publication: ExclusivePublication,
        prefix: bytes,
        source: Buffer,
        slices: Buffer,
        *,
        skip: int = 0,
        is_last: bool = False,
    ) -> None: ...
    def offer(self) -> int:
        """Offer the next messages, as many as a wait does at once; return how many were sent."""
    sent: Final[int]
    """The number of messages sent so far."""
    is_over: Final[bool]
    """Whether all are sent, or the next one never can be."""
    result: Final[int]
    """Of the last offer; 0 where the next message is longer than `max_message_length`."""
    failure: Final[str | None]
    """The error of the last offer, whose result is then -6."""
