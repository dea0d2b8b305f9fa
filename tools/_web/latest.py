"""A value that is read in a separate thread, so that no reader waits longer than it wants."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Latest(Generic[_T]):
    """The value that was read last. Its methods may be called from any thread.

    Reading may hang, as the storage can: then one thread hangs, and no others.
    """

    def __init__(
        self, read: Callable[[], _T], fresh_s: float, usable_s: float, name: str = ""
    ) -> None:
        """Create it; nothing is read.

        Args:
            read: reads the value, in any thread, in one at a time.
            fresh_s: for so long a value is returned without reading it again, seconds.
            usable_s: for so long it is returned when reading takes longer than the caller waits.
            name: of the thread.
        """
        self._read = read
        self._fresh_s, self._usable_s = fresh_s, usable_s
        self._name = name
        self._ended = threading.Condition()
        self._begun_s: float | None = None
        self._value: tuple[_T, float] | None = None
        self._changed_s = -math.inf
        self._read_since_s = -math.inf
        self._error: BaseException | None = None

    def known(self) -> _T | None:
        """Return the value if it is fresh, without reading."""
        value = self._value
        if value is None or time.monotonic() - value[1] > self._fresh_s:
            return None
        return value[0] if self._read_since_s > self._changed_s else None

    def renew(self) -> None:
        """Return only what is read from now on as fresh: the caller has changed what is read."""
        with self._ended:
            self._changed_s = time.monotonic()

    def get(self, wait_s: float | None = None) -> _T:
        """Return the value, read now if it is not fresh.

        Args:
            wait_s: how long reading may take, also if another caller has begun it; None: as long
                as it takes.

        Raises:
            TimeoutError: it takes longer, and no value that was read before is usable.
        """
        with self._ended:
            while True:
                if (known := self.known()) is not None:
                    return known
                if self._begun_s is None:
                    self._begun_s = time.monotonic()
                    threading.Thread(target=self._run, name=self._name, daemon=True).start()
                begun_s = self._begun_s
                left_s = None if wait_s is None else max(begun_s + wait_s - time.monotonic(), 0)
                is_read = self._ended.wait_for(lambda: self._begun_s != begun_s, left_s)  # noqa: B023
                if is_read and self._error is not None:
                    raise self._error
                if is_read and begun_s <= self._changed_s:
                    continue
                usable_s = time.monotonic() - self._usable_s
                if self._value is not None and (is_read or self._value[1] > usable_s):
                    return self._value[0]
                raise TimeoutError

    def _run(self) -> None:
        error = None
        try:
            self._value = (self._read(), time.monotonic())
        except Exception as raised:
            error = raised
        with self._ended:
            self._error = error
            if error is None and self._begun_s is not None:
                self._read_since_s = self._begun_s
            self._begun_s = None
            self._ended.notify_all()
