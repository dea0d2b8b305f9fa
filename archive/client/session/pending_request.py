"""What a control session keeps of a request until it is answered."""

from __future__ import annotations

from collections.abc import Callable

from aerotape.archive.client.requests.request import Item
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ClosedError


class PendingRequest:
    """A request under way, and what has come for it so far.

    Attributes:
        what: what was asked for, for error messages.
        count: how many items a listing may bring; 0: it is none.
        answer: the answer, None before and when a listing was full without one.
        items: what a listing has brought.
        failure: why there will be no answer.
    """

    __slots__ = ("answer", "correlation_id", "count", "failure", "items", "on_done", "what")

    def __init__(
        self, correlation_id: int, what: str, count: int, on_done: Callable[[], None] | None
    ) -> None:
        self.correlation_id = correlation_id
        self.what = what
        self.count = count
        self.on_done = on_done
        self.answer: codecs.ControlResponse | codecs.Challenge | None = None
        self.items: list[Item] = []
        self.failure: ClosedError | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""
        if self.answer is not None or self.failure is not None:
            return True
        return 0 < self.count <= len(self.items)

    def response(self) -> codecs.ControlResponse:
        """Return the answer. Raises ClosedError when the session ended before it came."""
        if self.failure is not None:
            raise self.failure
        assert isinstance(self.answer, codecs.ControlResponse), "asked for once it is done"
        return self.answer
