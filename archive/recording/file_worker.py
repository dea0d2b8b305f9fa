"""A thread for slow calls of the file system."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_Result = TypeVar("_Result")


class FileWorker:
    """Makes calls in order in a dedicated thread, which the first call starts."""

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        """Create the worker without its thread.

        Args:
            wake: called in that thread after each call.
        """
        self._name = name
        self._wake = wake
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Queue a call; poll the future, do not wait for it."""
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        future = self._executor.submit(call)
        future.add_done_callback(lambda _: self._wake())
        return future

    def close(self, *, is_completed: bool = False) -> None:
        """Wait for the call in progress, and for the others if `is_completed`, or cancel these."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=not is_completed)
