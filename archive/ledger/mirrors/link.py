"""A mirror of a ledger, as the archive that leads the ledger sees it.

    connect -> MirrorLedgerRequest -> wait for positions, again and again
       ^                                   |
       +---- pause <---- error <-----------+        (if the mirror may return)

The mirror replicates the leader's recording verbatim, so positions are the same in both. The link
waits for the mirror's positions by requests that the mirror answers when they have moved, and has
the mirror sync when the ledger is synced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from aerotape.archive.background_tasks import Task
from aerotape.archive.client.executors.polling import PollingExecutor
from aerotape.archive.client.ledger.requests import await_ledger, close_ledger, sync_ledger
from aerotape.archive.client.requests.request import Call, Steps, nothing, performed
from aerotape.archive.client.requests.response_errors import result_of
from aerotape.codecs.generated.ledger_control import LedgerType, MirrorLedgerRequest, Reach
from aerotape.errors import AeronTimeoutError, AerotapeError, LedgerError
from aerotape.protocol import NULL_POSITION

if TYPE_CHECKING:
    from aerotape.archive.client.session.control_session import ControlSession
    from aerotape.archive.client.session.pending_request import PendingRequest
    from aerotape.qualified_id import QualifiedId

_WAIT_NS: Final = 500_000_000
_RETRY_NS: Final = 500_000_000
_SYNC_AGAIN_NS: Final = 200_000_000
# So often may a mirror respond early, without the position: its recording has stopped.
_MAX_EARLY: Final = 20
_EARLY_PAUSE_NS: Final = 50_000_000


class MirrorLink:
    """The connection to one mirror. For the conductor's thread.

    Attributes:
        channel: control channel of the mirror.
        recorded: position up to which the mirror has recorded; NULL_POSITION: not reported.
        confirmed: position up to which it is on the mirror's storage, likewise.
        is_following: whether the mirror replicates the ledger.
        failure: why not; None before the first failure.
        has_failed: whether it has failed and does not try again.
        end_position: the end of the leader's recording, once it has stopped; else NULL_POSITION.
        sync_position: the mirror has to sync up to here; NULL_POSITION: nothing.
        stays: whether to stay connected once the mirror is at the end.
        closes: whether the mirror has to close the ledger then.
    """

    def __init__(
        self,
        channel: str,
        ledger: QualifiedId,
        kind: LedgerType,
        *,
        opening: Callable[[], Steps[ControlSession]],
        request: Callable[[], MirrorLedgerRequest],
        may_return: bool,
    ) -> None:
        """Create a link; the first `do_work` connects.

        Args:
            opening: returns the steps of `open_session` to the mirror.
            request: returns the request by which the mirror follows this archive.
            may_return: whether to connect again after a failure.
        """
        self.channel = channel
        self.recorded = self.confirmed = NULL_POSITION
        self.is_following = False
        self.failure: str | None = None
        self.has_failed = False
        self.end_position = self.sync_position = NULL_POSITION
        self.stays = self.closes = False
        self._ledger = ledger
        self._reaches = [Reach.CONFIRMED]
        if kind is LedgerType.VD_JOURNAL:
            self._reaches.append(Reach.ACKNOWLEDGED)
        self._opening = opening
        self._request = request
        self._may_return = may_return
        self._task: Task[None] | None = self._run()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        return self._task is None

    @property
    def is_at_end(self) -> bool:
        """Whether the mirror has all of a recording that has stopped on its storage."""
        return NULL_POSITION < self.end_position <= self.confirmed

    def do_work(self) -> None:
        """Advance by one step."""
        if self._task is not None:
            try:
                next(self._task)
            except StopIteration:
                self._task = None

    def close(self) -> None:
        """Disconnect. The mirror's recording ends with that of the leader."""
        if self._task is not None:
            self._task.close()
            self._task = None

    def _run(self) -> Task[None]:
        while True:
            try:
                yield from self._connected()
                return
            except AerotapeError as error:
                self.failure = f"mirror {self.channel} of ledger {self._ledger}: {error}"
                self.recorded = self.confirmed = NULL_POSITION
            finally:
                self.is_following = False
            if not self._may_return:
                self.has_failed = True
                return
            yield from _pause(_RETRY_NS)

    def _connected(self) -> Task[None]:
        """Follow until the mirror has all of a recording that has stopped."""
        opening = PollingExecutor(self._opening())
        try:
            while not opening.is_done:
                opening.advance()
                yield
        finally:
            opening.close()
        session = opening.result
        try:
            what = f"mirror ledger {self._ledger}"
            yield from _done(session, Call(self._request(), what, nothing))
            self.is_following = True
            self.failure = None
            yield from self._followed(session)
            while self.stays and not self.closes:
                session.service(what="mirror a ledger")
                yield
            if self.closes:
                yield from _done(session, close_ledger(self._ledger))
        finally:
            session.close()

    def _followed(self, session: ControlSession) -> Task[None]:
        waits = [_PositionWait(self._ledger, reach, session) for reach in self._reaches]
        synced_ns = 0
        while not self.is_at_end:
            session.service(what="mirror a ledger")
            for wait in waits:
                wait.do_work()
            self.confirmed = waits[0].position
            self.recorded = waits[-1].position
            now_ns = time.monotonic_ns()
            if (
                self.confirmed < self.sync_position <= self.recorded
                and now_ns - synced_ns > _SYNC_AGAIN_NS
            ):
                synced_ns = now_ns
                session.send_unanswered(sync_ledger(self._ledger))
            yield


class _PositionWait:
    """Waits for a position of the mirror to move, by one request after the other.

    Attributes:
        position: as last reported; NULL_POSITION before.
    """

    def __init__(self, ledger: QualifiedId, reach: Reach, session: ControlSession) -> None:
        self.position = NULL_POSITION
        self._ledger = ledger
        self._reach = reach
        self._session = session
        self._call: Call[Any] | None = None
        self._pending: PendingRequest | None = None
        self._unsent: bytes | None = None
        self._began_ns = 0
        self._pause_until_ns = 0
        self._early = 0

    def do_work(self) -> None:
        """Send a request, or take its response.

        Raises:
            LedgerError: the mirror stopped replicating.
            AeronTimeoutError: the mirror does not respond.
            ArchiveError: the mirror responds with an error.
            ClosedError: the session has ended.
        """
        now_ns = time.monotonic_ns()
        if self._call is None or self._pending is None:
            if now_ns < self._pause_until_ns:
                return
            self._call = await_ledger(self._ledger, self.position + 1, self._reach, _WAIT_NS)
            self._pending, self._unsent = self._session.begin(self._call)
            self._began_ns = now_ns
        if self._unsent is not None and self._session.offer(self._unsent, self._call.what):
            self._unsent = None
        if self._pending.is_done:
            self._take(result_of(self._call, self._pending), now_ns)
        elif now_ns - self._began_ns > _WAIT_NS + self._session.timeout_ns:
            raise AeronTimeoutError(
                f"no response for {(_WAIT_NS + self._session.timeout_ns) / 1e9:g} s"
            )

    def _take(self, position: int, now_ns: int) -> None:
        is_early = position <= self.position and now_ns - self._began_ns < _WAIT_NS // 2
        self._early = self._early + 1 if is_early else 0
        if self._early >= _MAX_EARLY:
            raise LedgerError(
                f"the mirror stopped replicating at position {position}", self._ledger
            )
        if is_early:
            self._pause_until_ns = now_ns + _EARLY_PAUSE_NS
        self.position = max(self.position, position)
        self._call = self._pending = None


def _done(session: ControlSession, call: Call[Any]) -> Task[None]:
    """Perform one request."""
    executor = PollingExecutor(performed(call), session)
    try:
        while not executor.is_done:
            executor.advance()
            yield
    finally:
        executor.close()


def _pause(duration_ns: int) -> Task[None]:
    until_ns = time.monotonic_ns() + duration_ns
    while time.monotonic_ns() < until_ns:
        yield
