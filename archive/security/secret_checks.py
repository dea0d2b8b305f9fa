"""Secrets waiting to be hashed: one after the other, on a thread of its own, hosts taking turns.

Hashing is slow on purpose, so whoever sends wrong secrets could keep everybody else waiting until
their connect times out. Therefore secrets wait behind others from the same host, not behind all;
each host has a few of them waiting at most; and a secret that would have to wait for too long is
not taken at all: its client is refused at once, and may try again.

Turns are not by user: then wrong secrets under a user's name would keep that user out, and names
that are no user's would either fill the queue or show by how they are treated that they are none.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

_T = TypeVar("_T")

MAX_WAITING_OF_A_HOST: Final = 16
# Well below the time that archive and clients give a connect, by default.
MAX_WAIT_S: Final = 3.0
# Until one has been measured.
_ASSUMED_S_PER_ITERATION: Final = 5e-7
# Whoever has an address of IPv6 commonly has all that begin with these bytes.
_IPV6_NETWORK_LENGTH: Final = 8


class BusyError(Exception):
    """A secret cannot be checked now; says why."""


def host_of(source_identity: str) -> str:
    """Return who shares a turn with a source: its address without the port; of IPv6, the network.

    Args:
        source_identity: as an image has it: ``127.0.0.1:40123``, ``[::1]:40123``, ``aeron:ipc``.
    """
    address, colon, port = source_identity.rpartition(":")
    if not (colon and port.isdecimal()):
        return source_identity
    try:
        packed = socket.inet_pton(socket.AF_INET6, address.strip("[]").partition("%")[0])
    except OSError:
        return address
    return packed[:_IPV6_NETWORK_LENGTH].hex()


@dataclass(slots=True)
class _Check(Generic[_T]):
    """A secret that waits.

    Attributes:
        iterations: of its hash.
        check: hashes it.
        result: what that finds.
    """

    iterations: int
    check: Callable[[], _T]
    result: Future[_T]


class SecretChecks(Generic[_T]):
    """The secrets that wait. Thread-safe."""

    def __init__(self, max_wait_s: float = MAX_WAIT_S) -> None:
        """Start no thread yet."""
        self._max_wait_s = max_wait_s
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="archive-users-hash")
        # The first is the next one's turn.
        self._waiting: OrderedDict[str, deque[_Check[_T]]] = OrderedDict()
        self._running_iterations = 0
        self._s_per_iteration = _ASSUMED_S_PER_ITERATION

    def close(self) -> None:
        """End the thread after what it is at; what waits is dropped. Idempotent."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, host: str, iterations: int, check: Callable[[], _T]) -> Future[_T]:
        """Have a secret checked when it is its turn.

        Args:
            host: where it comes from (`host_of`).
            iterations: how long it takes.
            check: does it.

        Raises:
            BusyError: too many are waiting.
        """
        entered = _Check(iterations, check, Future())
        with self._lock:
            own = self._waiting.get(host, deque())
            if len(own) >= MAX_WAITING_OF_A_HOST:
                raise BusyError(f"{len(own)} other secrets from this host are to be checked first")
            wait_s = self._s_per_iteration * self._iterations_before(len(own))
            if wait_s > self._max_wait_s:
                raise BusyError(f"secrets of others are being checked, for {wait_s:.1f} s to come")
            own.append(entered)
            self._waiting[host] = own
        self._pool.submit(self._run_next)
        return entered.result

    def _iterations_before(self, round_number: int) -> int:
        """Return the iterations that come before a host's secret in some round of all hosts."""
        return self._running_iterations + sum(
            each.iterations
            for checks in self._waiting.values()
            for number, each in enumerate(checks)
            if number <= round_number
        )

    def _run_next(self) -> None:
        with self._lock:
            host, checks = self._waiting.popitem(last=False)
            entered = checks.popleft()
            if checks:
                self._waiting[host] = checks
            self._running_iterations = entered.iterations
        begin = time.monotonic()
        try:
            entered.result.set_result(entered.check())
        except BaseException as error:
            entered.result.set_exception(error)
        took_s = time.monotonic() - begin
        with self._lock:
            self._running_iterations = 0
            # A machine may be busy for a moment.
            measured = took_s / entered.iterations
            self._s_per_iteration += (measured - self._s_per_iteration) / 2
