"""A request to an archive as a value: the message to send, and how to read its response.

The modules of requests are functions that check their arguments and return a `Call`, or `Steps`
where one request depends on the response to another. Neither blocks: an executor performs them. The
executors in the caller's thread (`blocking`) and in an event loop (`event_loop`) perform every kind
of step; the one in duty cycles (`polling`) performs only `Pause`, `Call` and `Listing`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.ledger_control import LedgerDescriptor
from aerotape.message import MessageBuffer
from aerotape.protocol import ErrorCode

T = TypeVar("T")

Item = codecs.RecordingDescriptor | codecs.RecordingSubscriptionDescriptor | LedgerDescriptor


class Request(Protocol):
    """A request of the control protocol. The session fills in the two ids."""

    SCHEMA_ID: ClassVar[int]
    control_session_id: int
    correlation_id: int

    def encode(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request with one response.

    Attributes:
        message: the request, sent once.
        what: the operation, for error messages: "start recording".
        result: returns the result from the response, whose code is OK.
        allowed: results for expected error codes.
        undo: returns the request that undoes it, if the caller was cancelled or interrupted
            before the response.
    """

    message: Request
    what: str
    result: Callable[[codecs.ControlResponse], T]
    allowed: Mapping[int, T] = field(default_factory=dict)
    undo: Callable[[codecs.ControlResponse], Call[Any]] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A request for up to `count` items; its result is the list of them."""

    message: Request
    what: str
    count: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for some nanoseconds, polling the session; `what` is for the error if it has ended."""

    duration_ns: int
    what: str = "continue"


@dataclass(frozen=True, slots=True)
class Poll:
    """Wait for fragments of a stream; the messages that they complete go into `backlog`.

    Attributes:
        recorded_as: session and stream id for the messages; None: those of the stream.
    """

    subscription: _native.Subscription
    fragment_limit: int
    timeout_ns: int
    backlog: MessageBuffer
    recorded_as: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Listen:
    """Wait for signals; may end early, without any. No timeout: no limit."""

    timeout_ns: int | None
    is_enough: Callable[[], bool]
    what: str


@dataclass(frozen=True, slots=True)
class CurrentSession:
    """Get the session, for its Aeron client, timeout and signals."""


@dataclass(frozen=True, slots=True)
class AwaitCounter:
    """Wait until a counter has at least a value; the result is its value, None when it was freed.

    After the timeout the value may be less.
    """

    counters: _native.CountersReader
    counter_id: int
    registration_id: int
    least: int
    timeout_ns: int

    def value(self, timeout_ns: int) -> int | None:
        """Wait in native code and return the value."""
        return self.counters.await_value(
            self.counter_id, self.registration_id, self.least, timeout_ns
        )


Step = Call[Any] | Listing | Pause | Poll | Listen | AwaitCounter | CurrentSession
Steps = Generator[Step, Any, T]
"""Several requests, each depending on those before: yields them and receives their results."""


def performed(call: Call[T]) -> Steps[T]:
    """Perform one request, for executors of steps."""
    result: T = yield call
    return result


def or_false(stop: Call[None], code: ErrorCode) -> Call[bool]:
    """Return a call whose result is True, or False for an error code that means "none"."""
    return Call(stop.message, stop.what, lambda _: True, {code: False})


def relevant_id(answer: codecs.ControlResponse) -> int:
    """Return the result in most responses: an id, a position or a count."""
    return answer.relevant_id


def nothing(answer: codecs.ControlResponse) -> None:
    """Return None, for a request whose response carries no result."""
