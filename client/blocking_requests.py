"""The base of the blocking client: performs requests in the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from aerotape.client.queries import Pages
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange
from aerotape.client.session.request import Call
from aerotape.waiting import Task, run

S = TypeVar("S")
T = TypeVar("T")


class BlockingRequests:
    """Performs requests and waits for their responses. Thread-safe."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    def _run(self, task: Call[T] | Task[T]) -> T:
        """Run a task, or perform a request, and return the result."""
        return run(exchange(self._session, task) if isinstance(task, Call) else task)

    def _notify(self) -> None:
        """Do nothing: a thread that waits for signals looks for itself whether to continue."""

    def _each(self, pages: Pages[T]) -> Iterator[T]:
        while page := run(pages.next()):
            yield from page

    def _iterate(self, task: Task[T], iterate: Callable[[T], S]) -> S:
        """Run a task, and return the iterator that a function makes of its result."""
        return iterate(run(task))

    def _open(self, begin: Callable[[], Task[S]], wrap: Callable[[S], T]) -> T:
        """Open a resource by a task."""
        return wrap(run(begin()))

    def _open_stream(self, begin: Callable[[], Task[T]]) -> T:
        """Open a stream that is polled."""
        return run(begin())
