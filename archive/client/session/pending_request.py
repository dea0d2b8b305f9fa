"""The state of a request until its response has arrived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from aerotape.archive.client.session.request import Item
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ClosedError


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
