"""A request to an archive as a value: what is sent, and what its answer means.

The modules of requests are functions that check their arguments and return a `Call`, or, where
one request follows from another's answer, `Steps`. Neither waits for anything. Who performs them
does: `blocking` in the caller's thread, `asynchronous` in an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from aerotape import _native
from aerotape.backlog import Backlog
from aerotape.codecs import archive as codecs
from aerotape.records import field, record

T = TypeVar("T")

Item = codecs.RecordingDescriptor | codecs.RecordingSubscriptionDescriptor


class Request(Protocol):
    """A request of the control protocol: the session puts in who asks and for what answer."""

    control_session_id: int
    correlation_id: int

    def encode(self) -> bytes: ...


@record(frozen=True, slots=True)
class Call(Generic[T]):
    """A request with one answer.

    Attributes:
        message: what is sent, once.
        what: what is asked for, for error messages: "start recording".
        result: makes the result of the answer, whose code is OK.
        allowed: results of answers that are errors by their code, but expected here.
        undo: makes the request that takes it back, should its answer come when the caller has
            been cancelled or interrupted.
        reply_to: of a replay, the registration id of the subscription to which it is to be sent
            back, over a response channel.
    """

    message: Request
    what: str
    result: Callable[[codecs.ControlResponse], T]
    allowed: Mapping[int, T] = field(default_factory=dict)
    undo: Callable[[codecs.ControlResponse], Request] | None = None
    reply_to: int | None = None


@record(frozen=True, slots=True)
class Listing:
    """A request that is answered with up to `count` items; its result is the list of them."""

    message: Request
    what: str
    count: int


@record(frozen=True, slots=True)
class Pause:
    """Go on after some nanoseconds; meanwhile the session is looked at.

    Attributes:
        what: what the caller is at, for the error when the archive goes away meanwhile.
    """

    duration_ns: int
    what: str = "go on"


@record(frozen=True, slots=True)
class Poll:
    """Wait for fragments of a stream; the messages that they complete are put into `backlog`.

    Attributes:
        recorded_as: session and stream id that the messages get; None: those of the stream.
    """

    subscription: _native.Subscription
    fragment_limit: int
    timeout_ns: int
    backlog: Backlog
    recorded_as: tuple[int, int] | None


Step = Call[Any] | Listing | Pause | Poll
Steps = Generator[Step, Any, T]
"""Several requests, each following from what came before: yields them, is sent their results."""


def relevant_id(answer: codecs.ControlResponse) -> int:
    """Return what most answers carry: an id, a position or a number of things."""
    return answer.relevant_id


def nothing(answer: codecs.ControlResponse) -> None:
    """Return None: that there is an answer is all."""
