"""A request to an archive: the message to send, how to read its response, and what has arrived.

The modules of requests are functions that check their arguments and return a `Call`, which
`session.exchange` sends, or a task (`waiting`) where one request depends on the response to
another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.ledger_control import LedgerDescriptor
from aerotape.errors import ClosedError

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
        undo: returns the request that undoes it, if the caller was cancelled or interrupted
            before the response.
    """

    message: Request
    what: str
    result: Callable[[codecs.ControlResponse], T]
    undo: Callable[[codecs.ControlResponse], Call[Any]] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A request for up to `count` items; its result is the list of them."""

    message: Request
    what: str
    count: int


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A pending request, with the messages received for it so far.

    Attributes:
        data: the message to send.
        count: the most items of a listing; 0 for other requests.
        on_done: called once, in the thread that reads, when it is done.
        results: of the offers, even if one was interrupted.
        answer: the response; None before it, and for a listing that was complete without one.
        items: the items of a listing.
        failure: the reason why there will be no response.
    """

    correlation_id: int
    what: str
    data: bytes = b""
    count: int = 0
    on_done: Callable[[], None] | None = field(default=None, init=False)
    results: list[int] = field(default_factory=list, init=False)
    answer: codecs.ControlResponse | codecs.Challenge | None = field(default=None, init=False)
    items: list[Item] = field(default_factory=list, init=False)
    failure: ClosedError | None = field(default=None, init=False)

    @property
    def is_sent(self) -> bool:
        """Whether an offer has succeeded."""
        return any(result > 0 for result in self.results)

    @property
    def is_done(self) -> bool:
        """Whether no further message is expected."""
        if self.answer is not None or self.failure is not None:
            return True
        return 0 < self.count <= len(self.items)

    def response(self) -> codecs.ControlResponse:
        """Return the response. Raises ClosedError when the session ended before it arrived."""
        if self.failure is not None:
            raise self.failure
        assert isinstance(self.answer, codecs.ControlResponse), "the request is not done"
        return self.answer


def relevant_id(answer: codecs.ControlResponse) -> int:
    """Return the result in most responses: an id, a position or a count."""
    return answer.relevant_id


def nothing(answer: codecs.ControlResponse) -> None:
    """Return None, for a request whose response carries no result."""


def get_archive_id() -> Call[int]:
    """Return the archive's id."""
    return Call(codecs.ArchiveIdRequest(), "get the archive's id", relevant_id)
