"""A thread for slow calls of the file system."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from aerotape.archive.threads import ThreadNaming, show_thread_name, thread_name

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_Result = TypeVar("_Result")


class FileWorker:
    """Makes calls in order in a dedicated thread, which the first call starts."""

    def __init__(
        self, role: str, wake: Callable[[], None], naming: ThreadNaming = "classic"
    ) -> None:
        """Create the worker without its thread.

        Args:
            role: of the thread; with `naming` as for `thread_name`.
            wake: called in that thread after each call.
        """
        self._name = thread_name(role, naming)
        self._wake = wake
        self._executor: ThreadPoolExecutor | None = None
        self._is_closed = False

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Queue a call; poll the future, do not wait for it."""
        from concurrent.futures import Future, ThreadPoolExecutor

        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, self._name, show_thread_name, (self._name,))
        try:
            future = self._executor.submit(call)
        except RuntimeError:
            if self._is_closed:
                raise
            # Python ends its threads before an archive that was not closed: call in this thread.
            future = Future()
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
        future.add_done_callback(lambda _: self._wake())
        return future

    def close(self, *, is_completed: bool = False) -> None:
        """Wait for the call in progress, and for the others if `is_completed`, or cancel these."""
        self._is_closed = True
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=not is_completed)
