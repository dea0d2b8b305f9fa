"""Work in a separate thread that a task, or a poll, waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from aerotape.archive.waiting import Task, Until
from aerotape.errors import AeronTimeoutError

T = TypeVar("T")


def begin_in_thread(work: Callable[[], T], name: str) -> Future[T]:
    """Begin work in a thread that the end of the process does not wait for."""
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work())
        # Also SystemExit of a user's function: its caller waits for it.
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def in_thread(work: Callable[[], T], deadline_ns: int, problem: str) -> Task[T]:
    """Do work that may block, and return its result; it continues unobserved after the deadline.

    Raises:
        AeronTimeoutError: it has not ended by the deadline, of the monotonic clock; with the text
            `problem`.
    """
    future = begin_in_thread(work, "aerotape-connect")
    yield Until(future.done, deadline_ns)
    if not future.done():
        raise AeronTimeoutError(f"cannot connect: {problem}")
    return future.result()
