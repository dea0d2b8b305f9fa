"""A request to an archive as a value: the message to send, and how to read its response.

The modules of requests are functions that check their arguments and return a `Call`, which
`session.exchange` sends, or a task (`archive.waiting`) where one request depends on the response to
another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.ledger_control import LedgerDescriptor

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


def relevant_id(answer: codecs.ControlResponse) -> int:
    """Return the result in most responses: an id, a position or a count."""
    return answer.relevant_id


def nothing(answer: codecs.ControlResponse) -> None:
    """Return None, for a request whose response carries no result."""


def get_archive_id() -> Call[int]:
    """Return the archive's id."""
    return Call(codecs.ArchiveIdRequest(), "get the archive's id", relevant_id)
