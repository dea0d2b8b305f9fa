"""The interface of the native core for Python.

Units are in the names: positions and lengths are bytes, `_ns` nanoseconds, `_ms` milliseconds.
Every call that can wait releases the interpreter. Failures are the classes of `aerotape.errors`.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Generic, Literal, Protocol, TypeVar, final

from typing_extensions import Buffer

_T = TypeVar("_T")

ChecksumName = Literal["none", "crc-32", "crc-32c"]

# ---- checksum.rs -------------------------------------------------------------------------------

def checksum(name: ChecksumName, data: bytes) -> int:
    """Return the checksum of `data` as the signed 32-bit integer of a frame header."""

# ---- time_points.rs ----------------------------------------------------------------------------

def decode_time_points(data: bytes, begin: int) -> tuple[bytes, bytes, bytes, str]:
    """Decode the points of a time index, which begin at offset `begin` of its file.

    Returns the times and the positions, int64 in the machine's order of bytes, a byte for each
    point that is 1 for an estimate, and why the file cannot be used, or "". Points at the end
    that fail their checksum are left out.
    """

def running_extremes(numbers: bytes) -> tuple[bytes, bytes]:
    """Return for each int64 the largest up to it, and the smallest from it on.

    All are in the machine's order of bytes. ValueError when the length is not a multiple of 8.
    """

# ---- aeron/driver.rs ---------------------------------------------------------------------------

@final
class MediaDriver:
    """An embedded C media driver."""

    @staticmethod
    def launch(properties: Mapping[str, str]) -> MediaDriver:
        """Start a driver in this process from `aeron.*` properties (names as the C driver's)."""
    @property
    def aeron_dir(self) -> str: ...
    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...

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
    @property
    def aeron_dir(self) -> str: ...
    @property
    def client_id(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
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
        tells_losses: bool = True,
    ) -> PendingSubscription:
        """With a mailbox, the subscription's images are announced there, and with `tells_losses`
        also their ends.
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
    @property
    def registration_id(self) -> int: ...
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

    @property
    def registration_id(self) -> int: ...
    def poll(self) -> bool:
        """Return True once the driver has done it, False before; raise AeronError when the
        driver refused. Must not be called again after it returned True or raised.
        """

class _PublicationBase:
    @property
    def channel(self) -> str: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def session_id(self) -> int: ...
    @property
    def registration_id(self) -> int: ...
    @property
    def initial_term_id(self) -> int: ...
    @property
    def term_buffer_length(self) -> int: ...
    @property
    def max_message_length(self) -> int: ...
    @property
    def max_payload_length(self) -> int: ...
    @property
    def position(self) -> int:
        """Position of the publisher, or -1 once closed."""
    @property
    def position_limit(self) -> int: ...
    @property
    def is_connected(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
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
    # For channels with control-mode=manual. The asynchronous forms return at once.
    def async_add_destination(self, channel: str) -> PendingDestination: ...
    def async_remove_destination(self, channel: str) -> PendingDestination: ...
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

    @property
    def correlation_id(self) -> int: ...
    @property
    def session_id(self) -> int: ...
    @property
    def subscription_registration_id(self) -> int: ...
    @property
    def source_identity(self) -> str: ...
    @property
    def join_position(self) -> int: ...
    @property
    def initial_term_id(self) -> int: ...
    @property
    def term_buffer_length(self) -> int: ...
    @property
    def mtu_length(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def is_end_of_stream(self) -> bool: ...
    @property
    def active_transport_count(self) -> int:
        """Number of transports that receive the stream: each destination is one."""
    @property
    def is_publication_revoked(self) -> bool:
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
# (payload, position after it, session_id, stream_id, term_id, term_offset, flags, reserved_value,
# position); all from term_id on are those of the message's first frame.
_Message = tuple[bytes, int, int, int, int, int, int, int, int]

@final
class MessageReader:
    """Reads a stream from one image after the other.

    A message whose first fragments came from one image may be completed from the next, as long as
    that continues at the same position. For one consumer.
    """

    def __init__(self) -> None: ...
    @property
    def position(self) -> int:
        """Position after the last fragment that was read, -1 before the first."""
    def poll(
        self,
        image: Image,
        fragment_limit: int = 10,
        limit_position: int | None = None,
        timeout_ns: int = 0,
        recorded_as: tuple[int, int] | None = None,
    ) -> list[_Message]:
        """Take up to `fragment_limit` fragments that begin before `limit_position` and return the
        messages they complete, with the session and stream id `recorded_as` if given. With a
        timeout, wait for the first message (interpreter released), unless no more can arrive:
        the image is closed or the limit reached. ClosedError once the image was released or taken
        over.
        """

@final
class Subscription:
    @property
    def channel(self) -> str: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def registration_id(self) -> int: ...
    @property
    def is_connected(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def image_count(self) -> int: ...
    def images(self) -> list[Image]: ...
    def image_by_session_id(self, session_id: int) -> Image | None: ...
    def poll(
        self,
        fragment_limit: int = 10,
        timeout_ns: int = 0,
        recorded_as: tuple[int, int] | None = None,
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
    @property
    def id(self) -> int: ...
    @property
    def registration_id(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
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
    @property
    def max_counter_id(self) -> int: ...
    def rows(self, type_id: int | None = None) -> list[_CounterRow]:
        """Allocated counters, all or those of one type."""
    def value(self, counter_id: int) -> int: ...
    def await_value(
        self, counter_id: int, registration_id: int, least: int, timeout_ns: int
    ) -> int | None:
        """Wait until the counter is at least `least`, or for the timeout; return its value.

        None when it was freed before, or is no longer the one with this registration id. The
        interpreter is released.
        """
    def state(self, counter_id: int) -> int:
        """0 unused, 1 allocated, -1 reclaimed."""
    def type_id(self, counter_id: int) -> int: ...
    def registration_id(self, counter_id: int) -> int: ...
    def key(self, counter_id: int) -> bytes: ...
    def label(self, counter_id: int) -> str: ...

# ---- conductor_wait.rs -------------------------------------------------------------------------

# Events, by their first item:
# ("message", subscription_registration_id, image_correlation_id, session_id, payload, position):
#   of a longer message only the first 65537 bytes
# ("image_available", Image)
# ("image_unavailable", subscription_registration_id, image_correlation_id)
# ("client_closed",)                      the driver or the client's conductor is gone
# ("client_error", code, message)
# ("recording_stopped", recording_id, position, error_code, error_message or None)
# ("recording_synced", recording_id, position)
# ("time_index_failed", recording_id, message)
# ("replay_ready", replay_session_id)     checks passed: OK may be sent to the client
# ("replay_answered", replay_session_id)  checks passed, and the response given with it was sent
# ("replay_done", replay_session_id, position, error_code, error_message or None)
# ("worker_failed", thread_name)          a worker has panicked and ended
Event = tuple[Any, ...]

@final
class Mailbox:
    """The queue of events from native threads to one Python consumer, the conductor."""

    def __init__(self) -> None: ...
    def wait(
        self,
        subscriptions: Sequence[Subscription] = (),
        timeout_ns: int = 0,
        fragment_limit: int = 10,
        sendings: Sequence[Sending] = (),
    ) -> list[Event]:
        """Return events, oldest first, and whole messages polled from `subscriptions`.

        Without any, wait up to the timeout with the interpreter released, idling as the Java
        archive does by default (backoff to 1 ms). Meanwhile offer the messages of each of
        `sendings`; return also when one of these is over, except with `is_last` and all sent.
        """
    def wake(self) -> None:
        """Make a wait return now (callable from any thread, also from a signal handler)."""

@final
class Sending:
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
    @property
    def sent(self) -> int:
        """The number of messages sent so far."""
    @property
    def is_over(self) -> bool:
        """Whether all are sent, or the next one never can be."""
    @property
    def result(self) -> int:
        """Of the last offer; 0 where the next message is longer than `max_message_length`."""
    @property
    def failure(self) -> str | None:
        """The error of the last offer, whose result is then -6."""

# ---- descriptors.rs ----------------------------------------------------------------------------

def find_descriptors(
    catalog: Buffer,
    offsets: Buffer,
    limit: int,
    *,
    stream_id: int | None = None,
    channel_fragment: bytes | None = None,
) -> tuple[bytes, bytes, int]:
    """Find recording descriptors in a mapped catalog file, in the order of `offsets`.

    Args:
        catalog: the catalog file.
        offsets: array of int64 with the offset of each descriptor, in bytes; others than valid
            ones, and damaged descriptors, are left out.
        limit: how many to find at most.
        stream_id: the stream id that they must have.
        channel_fragment: what their original channel must contain.

    Returns:
        Recording ids as the memory of an array of int64; likewise offset and length of each
        descriptor without its padding, in bytes; and how many of `offsets` were read.
    """

# ---- worker/ (recorder and replayer) -----------------------------------------------------------

@final
class ReplayProgress:
    """The position of a replay; it stays readable when the replay has ended."""

    @property
    def position(self) -> int:
        """Position of the next frame to replay."""

@final
class SessionWorker:
    """One native thread that runs recording sessions, replay sessions, or both.

    SHARED mode has one worker for both; DEDICATED mode one for each kind.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        name: str,
        archive_dir: str,
        file_io_max_length: int = 1_048_576,
        file_sync_level: int = 0,
        record_checksum: ChecksumName = "none",
        replay_checksum: ChecksumName = "none",
        idle: tuple[int, int, int, int] = (10, 20, 1_000, 1_000_000),
        write_counters: tuple[Counter, Counter, Counter] | None = None,
        read_counters: tuple[Counter, Counter, Counter] | None = None,
        cycle_counters: tuple[Counter, Counter, int] | None = None,
    ) -> None:
        """Start the thread.

        Args:
            idle: spins, yields, min park ns, max park ns.
            write_counters: statistics of what recordings write: longest time for one block
                (ns), total bytes, total time (ns).
            read_counters: the same for what replays read.
            cycle_counters: longest duty cycle (ns), count of cycles longer than a threshold, that
                threshold (ns). Without a session no cycles are counted. Other workers may use the
                same counters.
        """
    def record(
        self,
        image: Image,
        position_counter: Counter,
        *,
        recording_id: int,
        start_position: int,
        segment_length: int,
        events: tuple[bytes, bytes, bytes] | None = None,
        time_index: tuple[str, bytes, bool, int, int] | None = None,
        durability: Literal["pd", "vd"] | None = None,
        confirmed_counter: Counter | None = None,
    ) -> None:
        """Record `image` until it ends or `stop_recording`; then post `recording_stopped`.

        The worker takes over the image. The counter is set (release) to the position that
        has been written, and at sync levels 1 and 2 made durable. Creating or writing a
        segment that fails stops the recording at its last whole frame, with an error.
        With a `durability` the position counter is at the written position whatever the sync
        level of the worker, and `confirmed_counter` at the durable one: "pd" makes durable all
        that is written, continuously; "vd" only what is written when `request_sync` is called.
        Either is durable to its end before `recording_stopped` is posted. If making it durable
        fails, any recording stops at its durable position, with an error.
        `start_position` is the recording's; writing begins at the image's join position.
        `events` are the messages RecordingStarted, RecordingProgress and RecordingStopped for
        `publish_events`; the position at the end of the last two is filled in here.
        `time_index` is the path of the file of times and positions, the header of a new file,
        whether an existing file is another recording's and is replaced, and the least distance of
        its points in nanoseconds and in bytes; the bytes do not count after ten times as long. A
        file that cannot be written is reported with `time_index_failed`, once; the recording
        continues.
        """
    def publish_events(self, publication: ExclusivePublication) -> None:
        """Publish events of recordings that begin from now on to `publication`, which the worker
        takes over. Events that it does not accept at once are dropped: progress is published
        again with the next position, start and stop are not.
        """
    def stop_recording(self, recording_id: int) -> None: ...
    def request_sync(self, recording_id: int) -> None:
        """Make durable what has been written of a recording in progress that is synced.

        Then `recording_synced` is posted, with a durable position that is not less than the
        written one at this call; if the recording ends before, only `recording_stopped`.
        """
    def replay(
        self,
        publication: ExclusivePublication,
        *,
        replay_session_id: int,
        recording_id: int,
        replay_position: int,
        replay_length: int,
        start_position: int,
        stop_position: int,
        segment_length: int,
        term_length: int,
        stream_id: int,
        connect_timeout_ms: int,
        limit_counter: Counter | tuple[int, int] | None = None,
        file_io_max_length: int | None = None,
        answer: tuple[ExclusivePublication, bytes] | None = None,
        archive_dir: str | PathLike[str] | None = None,
    ) -> ReplayProgress:
        """Replay into `publication`, which the worker takes over and closes (revokes when the
        replay is aborted, as the reference does).

        `stream_id` is that of the recorded frames. `limit_counter` makes the replay follow: the
        position counter of a live recording, or (counter id, registration id) of a bound.
        `answer` is sent when all checks have passed, where that can be done at once.
        `archive_dir` is the directory of the segment files, the worker's when None.
        """
    def stop_replay(self, replay_session_id: int) -> None: ...
    def close(self) -> None:
        """Stop all sessions (their last events are posted) and join the thread."""

# ---- scan/ (reading recordings offline) --------------------------------------------------------

SCAN_COLUMNS: tuple[str, ...]
"""All columns that a scan can build, in table order."""

class ArrowRecordBatch(Protocol):
    """A record batch of the Arrow C data interface: `pyarrow.record_batch(batch)` takes it."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

class ArrowSchema(Protocol):
    """A schema of the Arrow C data interface: `pyarrow.schema(schema)` takes it."""

    def __arrow_c_schema__(self) -> object: ...

# (position of its first frame, position after its last frame, term_id, term_offset, flags,
# reserved_value, payload); term_id, term_offset and reserved_value are those of the first frame,
# flags those of the first and the last frame together, as Aeron's assemblers give them.
_RecordedMessage = tuple[int, int, int, int, int, int, bytes]

class _Range(Protocol):
    """A range of a recording: `aerotape.replay.offline.reader.RecordingRange`."""

    @property
    def archive_dir(self) -> str: ...
    @property
    def recording_id(self) -> int: ...
    @property
    def start_position(self) -> int: ...
    @property
    def term_length(self) -> int: ...
    @property
    def segment_length(self) -> int: ...
    @property
    def initial_term_id(self) -> int: ...
    @property
    def session_id(self) -> int: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def from_position(self) -> int: ...
    @property
    def to_position(self) -> int: ...
    @property
    def limit_position(self) -> int: ...
    @property
    def from_boundary(self) -> bool:
        """Whether a message is known to end at `from_position`; then a scan begins there instead
        of at the start of its term.
        """

@final
class SegmentScan:
    """Messages of one recording that begin in a range of positions, from its segment files.

    Fragments are put together, padding is skipped, and so are fragments that belong to no whole
    message (they are counted). `limit_position` is the recorded position: nothing at or after it
    is read, but a message that begins before `to_position` is read to its end. With a checksum
    every data frame from `from_position` on is verified. What is wrong with a segment raises
    SegmentError, which names recording, file, offset and position; messages before it are given
    first. Batches end at `batch_rows` messages or `batch_bytes` bytes of payload, so memory does
    not depend on the size of the recording.
    """

    def __init__(
        self,
        range: _Range,
        *,
        columns: Sequence[str] | None = None,
        checksum: ChecksumName = "none",
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
        nullable: bool = False,
        mode: Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"] = "FAILFAST",
        given: bool = False,
    ) -> None:
        """Prepare a scan; no file is opened yet. ValueError for arguments that make no sense.

        `mode` is how messages with a frame that fails its checksum are handled: an error, no row,
        or a row without payload and with the reason in `_corrupt`. That column is among those of
        `columns=None` in the last case only. `nullable` makes the schema say that any column may
        hold null; otherwise only those two may. `given`: no file is opened; when the next batch is
        None and `wanted` is not, the caller has to `give` bytes of the recording, or to `refuse`,
        and to request the batch again. `archive_dir` then only appears in errors.
        """
    @property
    def wanted(self) -> int | None:
        """Position of the first byte that is to be given, None when none is needed."""
    def give(self, data: bytes) -> None:
        """Give any number of bytes from `wanted` on (ValueError when none are)."""
    def refuse(self, reason: str) -> None:
        """End the scan, as these bytes cannot be had: SegmentError after the last message."""
    @property
    def schema(self) -> ArrowSchema: ...
    def next_batch(self) -> ArrowRecordBatch | None:
        """Return the next batch with the requested columns, None at the end."""
    def next_messages(self) -> list[_RecordedMessage] | None:
        """Return the next batch as tuples, None at the end. Needs no Arrow on the Python side.

        ValueError in mode PERMISSIVE, as a tuple has no column for the reason.
        """
    @property
    def position(self) -> int:
        """Position after the last frame that was read."""
    @property
    def rows(self) -> int:
        """Messages given so far."""
    @property
    def dropped_messages(self) -> int:
        """Damaged messages left out so far, in mode DROPMALFORMED."""
    @property
    def skipped_fragments(self) -> int:
        """Fragments so far that belong to no whole message."""
    @property
    def unfinished_fragments(self) -> int:
        """Fragments of a message that has begun but not ended at the limit."""

@final
class RecordingPass:
    """One pass over a range of a recording that counts messages and gaps.

    Damage does not end it: where there is no frame (a file is missing or too short, nothing was
    written, other bytes are there) it continues at the next frame that can be found. Memory does
    not depend on the size of the recording.
    """

    def __init__(self, range: _Range, edges: Sequence[int]) -> None:
        """Prepare a pass. `edges` ascend from the range's first position to its end: a bin lies
        between each two of them. Without edges there are no bins. ValueError for arguments that
        make no sense.
        """
    def advance(self, length: int) -> bool:
        """Continue for about `length` bytes; return whether the range is done."""
    @property
    def position(self) -> int:
        """Position after the last frame that was read."""
    def counts(self) -> RecordingCounts:
        """Return what was counted, once the range is done."""

@final
class RecordingCounts:
    """What a pass has counted. What crosses an edge counts where it begins, gaps on both sides."""

    @property
    def messages(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def fragments(self) -> int:
        """Frames of whole messages."""
    @property
    def fragmented_messages(self) -> int: ...
    @property
    def skipped_fragments(self) -> int: ...
    @property
    def unfinished_fragments(self) -> int: ...
    @property
    def padding_frames(self) -> int: ...
    @property
    def padding_bytes(self) -> int: ...
    @property
    def filler_frames(self) -> int:
        """Padding frames that do not reach to the end of their term."""
    @property
    def filler_bytes(self) -> int: ...
    @property
    def shortest_bytes(self) -> int: ...
    @property
    def longest_bytes(self) -> int: ...
    @property
    def lengths(self) -> list[tuple[int, int, int, int]]:
        """Buckets of message lengths that hold any, ascending: first length, first length beyond,
        messages, bytes. A bucket is at most 1/128 of its first length wide.
        """
    @property
    def gap_count(self) -> int: ...
    @property
    def gap_bytes(self) -> int: ...
    @property
    def gaps(self) -> list[tuple[int, int, Literal["missing", "unwritten", "damaged"], str]]:
        """The first 1000: positions from and to, kind, the error that a reader would get there."""
    @property
    def bins(self) -> list[tuple[int, int, int, int, int, int, int, int, int, int]]:
        """Positions from and to; messages, payload bytes, padding bytes, gap bytes; lengths of
        messages: shortest, median, 99th percentile, longest (0 without messages).
        """

# ---- sbe/ (payloads of users' own schemas) -----------------------------------------------------

class ArrowArray(Protocol):
    """An array of the Arrow C data interface."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

@final
class SbeDecoder:
    """Decodes SBE payloads into Arrow columns by a plan (`aerotape.codecs.payload_plan.Plan`).

    The columns are the template names if requested, then those of the plan's messages (of a flat
    plan the message's fields, else one struct a message), then the errors if requested. A payload
    of another schema or template is null in all of them. Safe for several threads.
    """

    def __init__(
        self, plan: object, *, template_column: str | None = None, error_column: str | None = None
    ) -> None:
        """Adopt a plan. ValueError, TypeError or OverflowError if it is not one."""
    @property
    def schema(self) -> ArrowSchema: ...
    def decode(self, payloads: ArrowArray) -> ArrowRecordBatch:
        """Decode a binary array (Arrow's Binary, else TypeError); null stays null.

        A payload that does not match the plan is a null row with its error in the error column;
        without that column CodecError with the number of the row. OverflowError if a column would
        be longer than Arrow's 32-bit offsets reach.
        """
    def decode_messages(
        self,
        payloads: ArrowArray,
        *,
        malformed: Literal["fail", "drop", "null"],
        keep_others: bool,
    ) -> tuple[ArrowRecordBatch, ArrowArray | None, list[tuple[int, str]]]:
        """Decode those payloads that are to be rows; the decoder must have no error column.

        `malformed` is how one that does not match the plan is handled: decoding ends before it,
        it is left out, or a row of nulls. `keep_others` makes payloads of other schemas and
        templates rows of nulls; else they are left out. Nulls stay.

        Returns the rows, which payloads they are (indices, ascending; None when nothing was left
        out before the end), and the index of each malformed payload with what is wrong.
        """

# ---- segment/ ----------------------------------------------------------------------------------

@final
class SegmentWalk:
    """What a walk over the frames of a segment file found. Offsets are bytes in the file."""

    @property
    def file_length(self) -> int: ...
    @property
    def end_offset(self) -> int:
        """Offset after the last frame that is structurally whole."""
    @property
    def end(self) -> Literal["limit", "unwritten", "file-end", "invalid"]:
        """Why the walk ended there."""
    @property
    def problem(self) -> str | None:
        """What is wrong at `end_offset` when the walk ended as "invalid"."""
    @property
    def frames(self) -> int:
        """Whole frames, padding ones too."""
    @property
    def padding_frames(self) -> int: ...
    @property
    def payload_bytes(self) -> int:
        """Bytes of the data frames without their headers."""
    @property
    def last_frame_offset(self) -> int:
        """Offset of the last whole frame, or -1."""
    @property
    def last_frame_length(self) -> int:
        """Its length as in its header, not aligned; -1 when there is none."""
    @property
    def last_frame_is_padding(self) -> bool: ...
    @property
    def checksum_passes(self) -> int: ...
    @property
    def checksum_failures(self) -> int: ...
    @property
    def failed_offsets(self) -> list[int]:
        """Offsets of the first 100 data frames whose checksum is wrong."""
    @property
    def failed_tail_offset(self) -> int:
        """Offset of the first of the failing frames that no good frame follows, or -1."""

def walk_segment(
    path: str | PathLike[str],
    *,
    start_offset: int,
    limit: int,
    base_position: int,
    term_length: int,
    initial_term_id: int,
    stream_id: int,
    checksum: ChecksumName = "none",
) -> SegmentWalk:
    """Walk the frames of a segment file from `start_offset` to at most `limit`.

    Ends where nothing has been written, where the file ends, or at the first frame that is not
    what it should be there (length, type, term id, term offset, stream id, within its term and
    the file). Failing checksums do not end the walk. Raises StorageError when the file cannot be
    read.
    """

@final
class BadFrame:
    """A place of a segment file without a good frame."""

    @property
    def offset(self) -> int:
        """Where it begins in the file, bytes."""
    @property
    def length(self) -> int:
        """Bytes up to the next good frame, or to the end of what was checked."""
    @property
    def kind(self) -> Literal["frame", "checksum", "unwritten", "file-end"]: ...
    @property
    def detail(self) -> str: ...

@final
class SegmentCheck:
    """What a check of a segment file found. Offsets are bytes in the file."""

    @property
    def file_length(self) -> int: ...
    @property
    def frames(self) -> int:
        """Frames that are sound but for their checksum, padding ones too."""
    @property
    def padding_frames(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def checksum_passes(self) -> int: ...
    @property
    def checksum_failures(self) -> int: ...
    @property
    def bad(self) -> list[BadFrame]:
        """The first bad places, at least a thousand if there are so many."""
    @property
    def bad_places(self) -> int:
        """How many there are."""
    @property
    def last_frame_offset(self) -> int:
        """Offset of the last sound frame, or -1."""
    @property
    def last_frame_length(self) -> int:
        """Its length as in its header, not aligned; -1 when there is none."""
    @property
    def behind(self) -> SegmentWalk | None:
        """A walk over the frames after `end_offset`, if requested."""
    @property
    def error(self) -> str | None:
        """Why the file could not be read."""

class _SegmentTask(Protocol):
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def base_position(self) -> int: ...
    @property
    def term_length(self) -> int: ...
    @property
    def initial_term_id(self) -> int: ...
    @property
    def stream_id(self) -> int: ...

def list_segments(
    directory: str | PathLike[str],
) -> tuple[list[tuple[int, int, int, int]], list[str]]:
    """List the segment files of a directory, and what they take.

    Returns a tuple for each, ascending: recording id, base position, bytes of storage, and when it
    was written to last, nanoseconds since 1970. And the names of all else. StorageError when the
    directory or the status of a file cannot be read.
    """

def read_segment_heads(
    paths: Sequence[str | PathLike[str]],
) -> list[tuple[int, bool, int, int, bytes]]:
    """Read how segment files begin.

    Returns a tuple for each: error number (0 when there was none), whether it is a regular file,
    its length in bytes, and the offset of the first 32 bytes that are not all zero, which may be a
    frame's header, with these bytes. They are fewer at the end of the file, and none where the
    first 64 KiB are blank.
    """

def check_segments(
    tasks: Sequence[_SegmentTask],
    *,
    checksum: ChecksumName = "none",
    progress: Callable[[int], None] | None = None,
) -> list[SegmentCheck]:
    """Check segment files on all processors, each from `start_offset` to `end_offset`.

    After a bad place it continues with the next frame whose header belongs to its place.
    With a `limit` beyond `end_offset`, the frames up to it are walked as by `walk_segment`.
    `progress` is called with the number of bytes done; what it raises ends the check.
    A file that cannot be read is an `error` of its check.
    """

@final
class ReferenceCheck:
    """What Aeron's ArchiveTool makes of a segment file. Offsets are bytes in the file."""

    @property
    def end_offset(self) -> int:
        """Where its frames end, going by their lengths alone."""
    @property
    def doubtful_offset(self) -> int:
        """Offset of the last frame if it may be torn, else -1."""
    @property
    def invalid_offset(self) -> int:
        """Offset of the first frame that makes the file invalid, or -1."""
    @property
    def invalid(self) -> str:
        """Why it does."""

def reference_check(
    path: str | PathLike[str],
    *,
    start_offset: int,
    segment_length: int,
    base_position: int,
    term_length: int,
    initial_term_id: int,
    stream_id: int,
    checksum: ChecksumName = "none",
) -> ReferenceCheck:
    """Check a segment file from `start_offset` on as ArchiveTool does (StorageError)."""

@final
class RewrittenSegment:
    """What was done to the checksums of a segment file. Offsets are bytes in the file."""

    @property
    def frames(self) -> int:
        """Data frames."""
    @property
    def changed(self) -> int:
        """Those that had another checksum."""
    @property
    def changed_kind(self) -> int:
        """Those of them whose checksum of the other kind was right."""
    @property
    def without(self) -> int:
        """Those of them that had the session id, and so no checksum."""
    @property
    def end_offset(self) -> int:
        """Where the frames ended."""
    @property
    def problem(self) -> str | None:
        """Why, when that was not the end of the frames."""
    @property
    def error(self) -> str | None:
        """Why the file could not be rewritten."""

class _RewriteTask(Protocol):
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def start_offset(self) -> int: ...
    @property
    def session_id(self) -> int: ...

def rewrite_checksums(
    tasks: Sequence[_RewriteTask],
    *,
    checksum: ChecksumName,
    dry_run: bool,
    progress: Callable[[int], None] | None = None,
) -> list[RewrittenSegment]:
    """Put checksums into the data frames of segment files, up to the first empty place of each.

    On all processors; with `dry_run` the files are only read. `progress` as in
    `check_segments`.
    """

# ---- entry.rs ----------------------------------------------------------------------------------

def encode_entry(
    scope_id: int,
    ledger_id: int,
    entry_id: int,
    last_add_confirmed: int,
    length: int,
    payload: Buffer,
    digest_type: str,
    password: bytes,
) -> bytes:
    """Encode an entry of a ledger (EntryFormatError: unknown digest type)."""

def decode_entry(
    data: Buffer,
    digest_type: str | None,
    password: bytes,
    scope_id: int | None = None,
    ledger_id: int | None = None,
    entry_id: int | None = None,
) -> tuple[int, int, int, int, bytes, str, int]:
    """Decode an entry, check its digest and compare its ids (children of EntryError).

    Returns ledger id, entry id, last add confirmed, length, payload, digest type, scope id.
    """

def decode_entry_header(data: Buffer) -> tuple[int, int, int, int, str | None, int, int]:
    """Decode what an entry has before its digest, which is not checked.

    Returns ledger id, entry id, last add confirmed, length, digest type if the entry names one,
    scope id, offset of the digest. EntryTooShortError, EntryFormatError.
    """

# ---- ledger_writer.rs --------------------------------------------------------------------------

@final
class LedgerWriter:
    """Adds payloads to a ledger: entries with ascending ids on a publication of the ledger's own.

    For one thread at a time, except `confirm`, `entry_at` and the properties.
    """

    def __init__(
        self,
        publication: ExclusivePublication,
        scope_id: int,
        ledger_id: int,
        digest_type: str,
        password: bytes,
        next_entry_id: int,
        length: int,
        last_add_confirmed: int,
    ) -> None:
        """Continue a ledger with `next_entry_id`, after `length` bytes of payload.

        Entries of an earlier writer that are not confirmed yet count as confirmed with the
        position at which the publication begins.
        """
    def add(self, payload: Buffer, timeout_ns: int = 0) -> tuple[int, int]:
        """Add an entry, waiting up to `timeout_ns` for a subscriber and for room.

        Returns the entry's id and its position (after the entry). Where it could not be added,
        the last id added and the negative result of the offer. AeronError: payload too long.
        """
    def add_many(self, payloads: Sequence[Buffer], timeout_ns: int = 0) -> tuple[int, int]:
        """Add entries in order, waiting up to `timeout_ns` in total.

        Returns the last entry's id and its position. Where not all could be added, the last id
        that was, and the negative result of the next offer. AeronError: a payload is too long;
        none is added.
        """
    def confirm(self, position: int) -> int:
        """Take entries that end up to `position` as confirmed; return the last add confirmed.

        Entries carry it from then on. It never decreases. With more than a million unconfirmed
        entries it may be lower than that of the position, until all are confirmed.
        """
    def entry_at(self, position: int) -> int:
        """Return the last entry that ends up to `position`, or the last add confirmed."""
    @property
    def last_add_pushed(self) -> int:
        """The last entry id added, -1 for none."""
    @property
    def last_add_confirmed(self) -> int: ...
    @property
    def position(self) -> int:
        """After the last entry, bytes; -1 once the publication is closed."""
    @property
    def length(self) -> int:
        """Payload bytes of the ledger."""
    @property
    def max_payload_length(self) -> int:
        """Bytes."""

# ---- raft_journal ------------------------------------------------------------------------------

# Offset in the file, index, problem, why.
_RaftFinding = tuple[int, int, str, str]

@final
class RaftRecords:
    """A run of records of a raft journal as columns: bytes, eight for each record.

    Numbers are unsigned, in the machine's order of bytes, except where noted.
    """

    @property
    def rows(self) -> int:
        """Number of records."""
    @property
    def index(self) -> bytes: ...
    @property
    def asqn(self) -> bytes:
        """Signed; -1 for none."""
    @property
    def checksum(self) -> bytes:
        """Signed."""
    @property
    def term(self) -> bytes:
        """2^64 - 1 if the data is not a raft entry."""
    @property
    def entry_type(self) -> bytes:
        """One byte each: the type of the raft entry; 255 if the data is not one."""
    @property
    def lowest_asqn(self) -> bytes:
        """2^64 - 1 except in application entries."""
    @property
    def highest_asqn(self) -> bytes:
        """2^64 - 1 except in application entries."""
    @property
    def offset(self) -> bytes:
        """Of the record's frame in the file."""
    @property
    def length(self) -> bytes:
        """Of the record, frame included."""
    @property
    def data(self) -> bytes:
        """The records one after the other; empty unless requested."""
    @property
    def next_offset(self) -> int:
        """Where the scan continues."""
    @property
    def next_index(self) -> int:
        """The index that the record there must have."""
    @property
    def ended(self) -> bool:
        """Whether the records of the segment end there."""
    @property
    def problem(self) -> _RaftFinding | None:
        """Why the scan cannot continue, if it cannot."""

def scan_raft_records(
    path: str | PathLike[str],
    *,
    offset: int,
    limit: int,
    first_index: int,
    rows: int = 65_536,
    bytes: int = 8_388_608,
    with_data: bool = False,
) -> RaftRecords:
    """Read records of a segment; their checksums and indices are checked (StorageError).

    Args:
        path: the segment file.
        offset: where the first record begins.
        limit: where the segment ends.
        first_index: the index that the first record must have.
        rows: at most this many records.
        bytes: stop at the first record that ends after so many bytes.
        with_data: return the bytes of the records, too.
    """

@final
class RaftSegmentCheck:
    """The result of a check of a segment's records."""

    @property
    def records(self) -> int:
        """Sound records."""
    @property
    def end_offset(self) -> int:
        """Where the check ended."""
    @property
    def next_index(self) -> int:
        """The index after the last record's."""
    @property
    def is_complete(self) -> bool:
        """Whether the check reached the end of the records."""
    @property
    def first_asqn(self) -> tuple[int, int, int] | None:
        """Offset, index and asqn of the first record that has one."""
    @property
    def last_asqn(self) -> int:
        """The highest asqn, -1 if there is none."""
    @property
    def first_lowest(self) -> tuple[int, int, int] | None:
        """Offset, index and lowest asqn of the first application entry."""
    @property
    def last_highest(self) -> int | None:
        """The highest asqn of the last application entry."""
    @property
    def findings(self) -> list[_RaftFinding]: ...

class _RaftSegmentTask(Protocol):
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def offset(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def first_index(self) -> int: ...

def verify_raft_segments(
    tasks: Sequence[_RaftSegmentTask], *, progress: Callable[[int], None] | None = None
) -> list[RaftSegmentCheck]:
    """Check every record of segments on all processors.

    After a record whose checksum does not match the check resumes if a sound record follows.
    `progress` as in `check_segments`.
    """

def raft_record_schema() -> ArrowSchema:
    """Return the schema of the batches of `decode_raft_records`."""

def decode_raft_records(
    payloads: ArrowArray, *, malformed: Literal["fail", "drop", "null"]
) -> tuple[ArrowRecordBatch, ArrowArray | None, list[tuple[int, str]]]:
    """Decode payloads that each hold a record of a raft journal into columns.

    Columns of a record whose data fails its checksum are null, but for `checksum_ok`. Returns the
    rows, the indices of their payloads unless all are rows, and each payload that is not a record,
    with the reason. Decoding ends before the first of them with "fail"; with "null" it is a row of
    nulls.
    """
