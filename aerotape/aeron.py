"""Publishing and subscribing, as far as a user of an archive needs it.

Thin, typed handles over the native client: they add defaults, context managers, blocking sends
with typed errors and messages with names. The recorder and the replayer do not come through here.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from aerotape import _native
from aerotape.backlog import Backlog
from aerotape.closing import Closing
from aerotape.errors import AeronError, AeronTimeoutError, ClosedError, ConfigurationError
from aerotape.message import Message
from aerotape.text import shown

Data = bytes | bytearray | memoryview

NOT_CONNECTED: Final = -1
BACK_PRESSURED: Final = -2
ADMIN_ACTION: Final = -3
CLOSED: Final = -4
MAX_POSITION_EXCEEDED: Final = -5

# The error code of the driver for what will work later: a port or name still in use.
RESOURCE_TEMPORARILY_UNAVAILABLE: Final = -10

DEFAULT_TIMEOUT_NS: Final = 10_000_000_000

# Where ours differs from the C driver as it comes. That frees what has ended once a second, and
# looks at all that it has not freed in each of its turns: after many short streams these are long.
DRIVER_DEFAULTS: Final[Mapping[str, str]] = {"aeron.timer.interval": "100ms"}

# AERON_CLIENT_ERROR_DRIVER_TIMEOUT of aeronc.h.
_CLIENT_ERROR_DRIVER_TIMEOUT: Final = -1000
_TRANSIENT: Final = {
    NOT_CONNECTED: "no subscriber is connected",
    BACK_PRESSURED: "subscribers do not keep up (back pressure)",
    ADMIN_ACTION: "a term is being rotated",
}
# A subscription is polled this long at a time, so that Ctrl-C and a close are seen.
_POLL_SLICE_NS: Final = 100_000_000
_POLL_FRAGMENTS: Final = 256


def default_aeron_dir() -> str:
    """Return the directory that Aeron's clients and drivers use when none is given.

    The environment variable ``AERON_DIR``, else ``aeron-<user>`` under ``/dev/shm`` on Linux and
    under the folder for temporary files elsewhere.
    """
    given = os.environ.get("AERON_DIR")
    if given:
        return given
    # As the C client has it: what USER says goes before what the system knows.
    user = os.environ.get("USER") or _system_user()
    base = "/dev/shm"
    if sys.platform != "linux":
        import tempfile

        base = tempfile.gettempdir()
    return str(Path(base) / f"aeron-{user}")


def _system_user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        return "default"


def await_driver(aeron_dir: str, timeout_ns: int) -> None:
    """Wait until there is a media driver's file in `aeron_dir`; whether it lives is not asked.

    The native client would wait too, but deaf to Ctrl-C and with less to say.

    Raises:
        AeronError: there is none after `timeout_ns`, or it may not be used.
    """
    file = Path(aeron_dir) / "cnc.dat"
    deadline_ns = time.monotonic_ns() + timeout_ns
    while True:
        try:
            if file.stat().st_size > 0:
                break
        except FileNotFoundError:
            pass
        except NotADirectoryError:
            raise AeronError(
                f"no media driver in {aeron_dir}: it is not a directory; give that of one that "
                "runs (aeron_dir, --aeron-dir, $AERON_DIR)",
                errno.ENOTDIR,
            ) from None
        except (OSError, ValueError):  # the native client says what is wrong with it
            break
        if time.monotonic_ns() >= deadline_ns:
            raise AeronError(
                f"no media driver in {aeron_dir} (waited {timeout_ns / 1e9:g} s): start one, or "
                "give the directory of the one that runs (aeron_dir, --aeron-dir, $AERON_DIR)",
                _CLIENT_ERROR_DRIVER_TIMEOUT,
            )
        time.sleep(0.01)
    if not os.access(file, os.R_OK | os.W_OK):
        raise AeronError(
            f"no permission to use the media driver in {aeron_dir}: its user must be this one, or "
            "let this one write there",
            errno.EACCES,
        )


def launch_driver(properties: Mapping[str, str]) -> _native.MediaDriver:
    """Start a C media driver in this process, with `DRIVER_DEFAULTS` where nothing else is said.

    Raises:
        AeronError: it cannot start.
        ConfigurationError: it is to be driven by a caller's thread.
    """
    if properties.get("aeron.threading.mode") == "INVOKER":
        raise ConfigurationError(
            "aeron.threading.mode=INVOKER is not provided: the media driver has threads of its own"
            " here; use SHARED, which has one",
            "aeron.threading.mode",
        )
    try:
        defaults = {
            name: value
            for name, value in DRIVER_DEFAULTS.items()
            if not os.environ.get(name.upper().replace(".", "_"))
        }
        return _native.MediaDriver.launch({**defaults, **properties})
    except AeronError as error:
        if error.code != errno.EBUSY and "Active media driver" not in str(error):
            raise
        raise AeronError(
            f"a media driver runs in {properties['aeron.dir']} already, or did until a few seconds "
            'ago: use that one (`--driver external`, driver="external") or another directory '
            "(--aeron-dir, aeron_dir)",
            error.code,
        ) from error


def text_of(value: object) -> str:
    """Return a property's value as properties files have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_NativeStream = TypeVar("_NativeStream", bound="_native._PublicationBase | _native.Subscription")


class _Stream(Closing, Generic[_NativeStream]):
    """A publication or subscription.

    It can have destinations when its channel says ``control-mode=manual``.
    """

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

    def add_destination(self, channel: str, timeout_ns: int = DEFAULT_TIMEOUT_NS) -> None:
        """Send to, or receive from, one more place.

        Args:
            channel: ``aeron:udp?endpoint=…`` (for a subscription with ``control=…`` as well, or
                ``aeron:ipc``).
            timeout_ns: how long the driver has to answer.

        Raises:
            AeronError: the driver refused; for one, the channel has no ``control-mode=manual``.
            AeronTimeoutError: the driver did not answer.
            ClosedError: this is closed.
        """
        self._native.add_destination(channel, timeout_ns)

    def remove_destination(self, channel: str, timeout_ns: int = DEFAULT_TIMEOUT_NS) -> None:
        """Undo `add_destination` of the same channel; one that is not there counts as removed.

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not answer.
            ClosedError: this is closed.
        """
        self._native.remove_destination(channel, timeout_ns)

    def __repr__(self) -> str:
        return shown(self, "channel", "stream_id")


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
        """Position behind what was sent last, bytes; -1 once closed."""
        return self._native.position

    @property
    def is_connected(self) -> bool:
        """Whether there is a subscriber, as far as is known."""
        return self._native.is_connected

    def offer(self, data: Data, reserved_value: int = 0) -> int:
        """Try once to send a message.

        Returns:
            The position behind the message, or `NOT_CONNECTED`, `BACK_PRESSURED`,
            `ADMIN_ACTION`, `CLOSED` or `MAX_POSITION_EXCEEDED`.
        """
        return self._native.offer(data, reserved_value)

    def send(
        self, data: Data, timeout_ns: int = DEFAULT_TIMEOUT_NS, reserved_value: int = 0
    ) -> int:
        """Send a message, waiting for a subscriber and for room.

        Returns:
            The position behind the message, bytes.

        Raises:
            AeronTimeoutError: nobody was connected or there was no room for `timeout_ns`.
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

    def wait_connected(self, timeout_ns: int = DEFAULT_TIMEOUT_NS) -> None:
        """Wait until there is a subscriber.

        Raises:
            AeronTimeoutError: there was none for `timeout_ns`.
            ClosedError: the publication is closed.
        """
        deadline_ns = time.monotonic_ns() + timeout_ns
        while not self.is_connected:
            if self.is_closed:
                raise self._failure(CLOSED, timeout_ns)
            if time.monotonic_ns() >= deadline_ns:
                raise self._failure(NOT_CONNECTED, timeout_ns)
            time.sleep(0.001)

    def _failure(self, result: int, timeout_ns: int) -> Exception:
        what = f"{self.channel} stream {self.stream_id}"
        if result in _TRANSIENT:
            return AeronTimeoutError(
                f"cannot send on {what}: {_TRANSIENT[result]} for {timeout_ns / 1e9:g} s"
            )
        if result == MAX_POSITION_EXCEEDED:
            return AeronError(
                f"cannot send on {what}: the stream has reached its last position; "
                "add the publication again, with longer terms if need be",
                result,
            )
        return ClosedError(f"cannot send on {what}: the publication is closed")

    def __repr__(self) -> str:
        return shown(self, "channel", "stream_id", "session_id")

    def close(self) -> None:
        """Close the publication. Idempotent."""
        self._native.close()


class Publication(_PublicationBase[_native.Publication]):
    """A publication that all users of this client with the same channel and stream share."""


class ExclusivePublication(_PublicationBase[_native.ExclusivePublication]):
    """A publication of its own, with a session of its own; for one thread at a time."""

    def revoke(self) -> None:
        """Close at once, dropping what subscribers have not consumed."""
        self._native.revoke()


class Subscription(_Stream[_native.Subscription]):
    """A subscription: iterate it for its messages, or poll it in batches.

    For one consumer. Iterating waits for messages and ends when the subscription is closed. What
    was taken from the stream and not given out, when an iteration is left, comes first later on.
    """

    def __init__(self, native: _native.Subscription) -> None:
        super().__init__(native)
        self._backlog = Backlog()

    @property
    def native(self) -> _native.Subscription:
        """The native subscription."""
        return self._native

    @property
    def is_connected(self) -> bool:
        """Whether there is a publisher."""
        return self._native.is_connected

    @property
    def image_count(self) -> int:
        """How many publishers there are."""
        return self._native.image_count

    def images(self) -> list[_native.Image]:
        """Return the streams of the publishers there are."""
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

    def wait_connected(self, timeout_ns: int = DEFAULT_TIMEOUT_NS) -> None:
        """Wait until there is a publisher.

        Raises:
            AeronTimeoutError: there was none for `timeout_ns`.
            ClosedError: the subscription is closed.
        """
        deadline_ns = time.monotonic_ns() + timeout_ns
        while not self.is_connected:
            what = f"{self.channel} stream {self.stream_id}"
            if self.is_closed:
                raise ClosedError(f"the subscription to {what} is closed")
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(f"no publisher on {what} for {timeout_ns / 1e9:g} s")
            time.sleep(0.001)

    def close(self) -> None:
        """Close the subscription. Idempotent."""
        self._native.close()


class Aeron(Closing):
    """A client of a media driver.

    >>> with Aeron() as aeron, aeron.add_publication("aeron:ipc", 1001) as publication:
    ...     publication.send(b"hello")
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
            client_name: what the driver shows for this client.
            driver_timeout_ns: how long the driver may give no sign of life. It gives one about
                every second.
            start_timeout_ns: how long to wait for a driver. Default: `driver_timeout_ns`.

        Raises:
            AeronError: there is no driver, or none that is alive.
        """
        directory = default_aeron_dir() if aeron_dir is None else str(aeron_dir)
        await_driver(directory, driver_timeout_ns if start_timeout_ns is None else start_timeout_ns)
        if start_timeout_ns is not None and start_timeout_ns < driver_timeout_ns:
            # The native client would wait as long as a driver may be silent.
            from aerotape.cnc import await_sign_of_life

            if not await_sign_of_life(directory, start_timeout_ns, driver_timeout_ns):
                raise AeronError(
                    f"no sign of life from the media driver in {directory} (waited "
                    f"{start_timeout_ns / 1e9:g} s); is it dead? start it again",
                    _CLIENT_ERROR_DRIVER_TIMEOUT,
                )
        try:
            self._native = _native.AeronClient(
                directory,
                client_name=client_name,
                driver_timeout_ms=driver_timeout_ns // 1_000_000,
            )
        except AeronError as error:
            if error.code != _CLIENT_ERROR_DRIVER_TIMEOUT:
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

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not answer.
        """
        return Publication(self._native.add_publication(channel, stream_id, timeout_ns))

    def add_exclusive_publication(
        self, channel: str, stream_id: int, timeout_ns: int = DEFAULT_TIMEOUT_NS
    ) -> ExclusivePublication:
        """Publish on a channel and stream with a session of one's own.

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not answer.
        """
        return ExclusivePublication(
            self._native.add_exclusive_publication(channel, stream_id, timeout_ns)
        )

    def add_subscription(
        self, channel: str, stream_id: int, timeout_ns: int = DEFAULT_TIMEOUT_NS
    ) -> Subscription:
        """Subscribe to a channel and stream.

        Raises:
            AeronError: the driver refused.
            AeronTimeoutError: the driver did not answer.
        """
        return Subscription(
            self._native.add_subscription(channel, stream_id, timeout_ns=timeout_ns)
        )

    def counters(self) -> _native.CountersReader:
        """Return a reader of the driver's counters."""
        return self._native.counters()

    def close(self) -> None:
        """Close the client and all that was made by it. Idempotent."""
        self._native.close()

    def __repr__(self) -> str:
        return shown(self, "aeron_dir")


class MediaDriver(Closing):
    """A C media driver inside this process.

    >>> with MediaDriver.launch(aeron_dir="/dev/shm/mine") as driver, Aeron(driver.aeron_dir):
    ...     pass
    """

    def __init__(self, native: _native.MediaDriver) -> None:
        self._native = native

    @classmethod
    def launch(
        cls,
        aeron_dir: str | Path | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> MediaDriver:
        """Start a driver.

        Args:
            aeron_dir: its directory; default: what `properties` or `default_aeron_dir()` say.
            properties: ``aeron.*`` properties, named as the C driver names them.

        Raises:
            AeronError: it cannot start, for example since another one uses the directory.
        """
        all_properties = {name: text_of(value) for name, value in (properties or {}).items()}
        if aeron_dir is not None:
            all_properties["aeron.dir"] = str(aeron_dir)
        all_properties.setdefault("aeron.dir", default_aeron_dir())
        return cls(launch_driver(all_properties))

    @property
    def aeron_dir(self) -> str:
        """The driver's directory."""
        return self._native.aeron_dir

    @property
    def is_closed(self) -> bool:
        return self._native.is_closed

    def close(self) -> None:
        """Stop the driver. Idempotent."""
        self._native.close()

    def __repr__(self) -> str:
        return shown(self, "aeron_dir")
