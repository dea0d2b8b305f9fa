"""A thread for slow calls of the file system."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")


class FileWorker:
    """Makes calls in order in a dedicated thread, which the first call starts."""

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        """Create the worker without its thread.

        Args:
            wake: called in that thread after each call.
        """
        self._wake = wake
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Queue a call; poll the future, do not wait for it."""
        future = self._executor.submit(call)
        future.add_done_callback(lambda _: self._wake())
        return future

    def close(self, *, is_completed: bool = False) -> None:
        """Wait for the call in progress, and for the others if `is_completed`, or cancel these."""
        self._executor.shutdown(cancel_futures=not is_completed)
