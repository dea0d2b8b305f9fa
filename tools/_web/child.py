"""The web service as a child process of an archive, which restarts it and ends it."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from aerotape.context import Closing

_LOGGER: Final = logging.getLogger(__name__)
_RESTART_PAUSE_S: Final = 5.0
_STOP_TIMEOUT_S: Final = 5.0


class WebChild(Closing):
    """`aerotape web` in a process of its own; it ends with this process, however that ends.

    It prints its address to the standard output of this process, each time that it starts.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        """Start it, without waiting for it.

        Args:
            arguments: of `aerotape web`.
        """
        own = ("--parent", str(os.getpid()))
        self._command = [sys.executable, "-m", "aerotape", "web", *arguments, *own]
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        self._restart_s = time.monotonic() + _RESTART_PAUSE_S

    def restart_if_ended(self) -> None:
        """Start it again if it has ended, but not more often than every 5 s."""
        code = self._process.poll()
        if code is not None and time.monotonic() >= self._restart_s:
            _LOGGER.error("the web service has ended, exit code %d: it is started again", code)
            self._start()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """End it; kill it if it does not within 5 s. Idempotent."""
        self._closed = True
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
