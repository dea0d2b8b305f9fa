"""Background tasks of the conductor: generators that wait for other threads without blocking.

A task yields while it waits and is advanced to its next yield once a duty cycle, so that its steps
read from top to bottom. Whatever starts tasks owns a `BackgroundTasks` and advances it in its
`do_work`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
Task = Generator[None, None, T]


class BackgroundTasks:
    """The unfinished tasks of one part of the archive. For the conductor's thread."""

    def __init__(self) -> None:
        self._tasks: list[Task[None]] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, task: Task[None]) -> None:
        """Run a task to its first yield; what it raises is raised."""
        self._tasks.append(task)
        self._step(task)

    def advance(self) -> None:
        """Run each task to its next yield; what one raises ends it and is raised."""
        for task in list(self._tasks):
            self._step(task)

    def close(self) -> None:
        """Cancel all tasks."""
        while self._tasks:
            self._tasks.pop().close()

    def _step(self, task: Task[None]) -> None:
        try:
            next(task)
        except StopIteration:
            self._tasks.remove(task)
        except BaseException:
            self._tasks.remove(task)
            raise


def outcome(future: Future[T]) -> Task[T]:
    """Wait for a call in another thread; return its result, or raise its exception.

    A call that has not begun is cancelled with the task.
    """
    try:
        while not future.done():
            yield
    finally:
        future.cancel()
    return future.result()
