"""Notifications to the service manager that started this process, as systemd defines them.

Where $NOTIFY_SOCKET names a socket, a datagram says that the service is ready, that it is stopping
and, for $WATCHDOG_USEC, that it is alive (sd_notify(3), sd_watchdog_enabled(3)).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Final

from aerotape.tools._cli.output import note

_NS_PER_S: Final = 1e9


class ServiceManager:
    """The service manager; without one, nothing is sent.

    Attributes:
        watchdog_s: the time within which it expects a sign of life, None if it does not.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self.watchdog_s: float | None = None
        watchdog_us = environ.get("WATCHDOG_USEC", "")
        for_this = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        if self._address and watchdog_us.isdecimal() and int(watchdog_us) > 0 and for_this:
            self.watchdog_s = int(watchdog_us) / 1e6

    def interval_s(self, longest_s: float) -> float:
        """Return the interval of calls of `alive`: half of the watchdog's time, or `longest_s`."""
        return longest_s if self.watchdog_s is None else min(longest_s, self.watchdog_s / 2)

    def ready(self, status: str) -> None:
        """Say that the service accepts requests, with a line for people."""
        self._notify(f"READY=1\nSTATUS={status}")

    def alive(self, last_work_ns: int) -> None:
        """Give a sign of life, if the service has worked within half of the watchdog's time.

        Args:
            last_work_ns: when it last worked, of `time.monotonic_ns`.
        """
        if self.watchdog_s is None:
            return
        if (time.monotonic_ns() - last_work_ns) / _NS_PER_S <= self.watchdog_s / 2:
            self._notify("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the service ends."""
        self._notify("STOPPING=1")

    def _notify(self, text: str) -> None:
        if not self._address:
            return
        import socket

        address = self._address
        if address.startswith("@"):  # an abstract socket
            address = "\0" + address[1:]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
                sending.connect(address)
                sending.sendall(text.encode())
        except OSError as error:
            note(f"warning: cannot notify the service manager at {self._address}: {error.strerror}")
            self._address = ""
            self.watchdog_s = None
