"""A mirror of a ledger, as the archive that leads the ledger sees it.

    connect -> FOLLOW -> has the leader's log? -> ADOPT -> wait for positions, again and again
       ^                                                      |
       +---- pause <---- error <------------------------------+        (if the mirror may return)

The mirror replicates the leader's recording verbatim, so positions are the same in both. Once it
has all that the leader had when it began to follow, it adopts the leader's epoch; its positions
count only then. The link waits for them by requests that the mirror answers when they have moved,
and has the mirror sync when the ledger is synced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from aerotape.archive.features.ledger.protocol.leadership import Report
from aerotape.archive.features.ledger.protocol.member_record import MirrorStep
from aerotape.client.ledger.requests import LedgerMirror, await_ledger, sync_ledger
from aerotape.client.session.exchange import exchange
from aerotape.client.session.request import Call, get_archive_id, relevant_id
from aerotape.codecs.generated.ledger_control import LedgerType, MirrorLedgerRequest, Reach
from aerotape.errors import AerotapeError, LedgerError, LedgerFencedError
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.waiting import Pause, Running, Task

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.mirrors.leading import Goal
    from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
    from aerotape.client.session.client_session import ClientSession
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
        report: how far the mirror is.
        archive_id: of the mirror; None before it has responded.
        is_fenced: whether it has promised a higher epoch, so that this archive does not lead.
        failure: why not; None before the first failure.
        has_failed: whether it has failed and does not try again.
    """

    def __init__(
        self,
        channel: str,
        ledger: QualifiedId,
        kind: LedgerType,
        goal: Goal,
        *,
        opening: Callable[[], Task[ClientSession]],
        member_record: Callable[[], MemberRecord],
        archive_ids: Callable[[], Mapping[str, int]],
        request: Callable[[MirrorStep, int], MirrorLedgerRequest],
        may_return: Callable[[], bool],
    ) -> None:
        """Create a link; the first `do_work` connects.

        Args:
            goal: of all mirrors of the ledger.
            opening: returns the task that opens a session with the mirror.
            member_record: returns what this archive has stored.
            archive_ids: returns the ids of the other members' archives, as far as they are known.
            request: returns the request of a step; -1: it is about the end of the recording now.
            may_return: returns whether to connect again after a failure.
        """
        self.channel = channel
        self.report = Report()
        self.is_fenced = False
        self.archive_id: int | None = None
        self._attach_id = NULL_VALUE
        self.failure: str | None = None
        self.has_failed = False
        self._goal = goal
        self._ledger = ledger
        # Only VD_JOURNAL has recorded positions that are not synced.
        self._is_volatile = kind is LedgerType.VD_JOURNAL
        self._opening = opening
        self._member_record = member_record
        self._archive_ids = archive_ids
        self._request = request
        self._may_return = may_return
        self._running = Running(self._run())

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        return self._running.is_done

    @property
    def is_at_end(self) -> bool:
        """Whether the mirror has all of a recording that has stopped on its storage."""
        return NULL_POSITION < self._goal.end_position <= self.report.confirmed

    @property
    def status(self) -> LedgerMirror:
        """The positions of the mirror."""
        report = self.report
        error = "" if report.has_adopted else self.failure or ""
        return LedgerMirror(
            self.channel, report.has_adopted, report.recorded, report.confirmed, error
        )

    @property
    def _has_agreed(self) -> bool:
        """Whether the mirror knows the groups, and none is being replaced."""
        member_record = self._member_record()
        return self.report.version == member_record.version and len(member_record.groups) == 1

    def do_work(self) -> None:
        """Do one duty cycle."""
        self._running.advance()

    def close(self) -> None:
        """Disconnect. The mirror's recording ends with that of the leader."""
        self._running.close()

    def _run(self) -> Task[None]:
        while True:
            try:
                yield from self._connect()
                return
            except AerotapeError as error:
                self.failure = f"mirror {self.channel} of ledger {self._ledger}: {error}"
                self.report.disconnect()
                self.is_fenced = isinstance(error, LedgerFencedError)
            if self.is_fenced or not self._may_return():
                self.has_failed = True
                return
            yield Pause(_RETRY_NS)

    def _connect(self) -> Task[None]:
        """Follow until the mirror has all of a recording that has stopped."""
        session = yield from self._opening()
        try:
            self.archive_id = yield from exchange(session, get_archive_id())
            self._check_archive(self.archive_id)
            request = self._request(MirrorStep.FOLLOW, NULL_POSITION)
            yield from exchange(session, self._call(request))
            self._attach_id = request.correlation_id
            begin = request.recorded_position or 0
            reach = Reach.ACKNOWLEDGED if self._is_volatile else Reach.CONFIRMED
            if begin > 0:
                yield from self._await_more(session, reach, begin - 1)
            # A ledger that is being closed is closed at once: it must not be open where it counts.
            if closes := self._goal.closes:
                yield from self._adopt(session, MirrorStep.CLOSE, self._goal.end_position)
            else:
                yield from self._adopt(session, MirrorStep.ADOPT, begin)
            self.report.has_closed = closes
            self.failure = None
            yield from self._follow(session, begin)
            is_decided = False
            while (self._goal.stays or self._goal.closes) and not is_decided:
                session.service(what="mirror a ledger")
                if self._goal.closes and not self.report.has_closed:
                    yield from self._adopt(session, MirrorStep.CLOSE, self._goal.end_position)
                    self.report.has_closed = True
                if self.report.has_closed and self._member_record().is_decided:
                    yield from self._adopt(session, MirrorStep.CLOSE, self._goal.end_position)
                    is_decided = True
                yield Pause()
        finally:
            session.close()

    def _check_archive(self, archive_id: int) -> None:
        for other, known in self._archive_ids().items():
            if known == archive_id and other != self.channel:
                raise LedgerError(
                    f"it is the archive of {other}, which stores the ledger already: name another"
                    " archive",
                    self._ledger,
                )

    def _call(self, request: MirrorLedgerRequest) -> Call[int]:
        return Call(request, f"mirror ledger {self._ledger}", relevant_id)

    def _adopt(self, session: ClientSession, step: MirrorStep, position: int) -> Task[None]:
        """Have the mirror store the epoch and the groups of this archive."""
        version = self._member_record().version
        synced = yield from exchange(session, self._call(self._request(step, position)))
        self.report.adopt(synced, version)

    def _follow(self, session: ClientSession, begin: int) -> Task[None]:
        """Wait for both positions at the same time, and have the mirror sync.

        Args:
            begin: up to where the mirror had the log when it adopted the epoch, bytes.
        """
        waits = [Running(self._await_confirmed(session))]
        if self._is_volatile:
            waits.append(Running(self._await_recorded(session)))
        asked, asked_ns = NULL_POSITION, 0
        try:
            while not (self.is_at_end and self._has_agreed):
                session.service(what="mirror a ledger")
                for wait in waits:
                    wait.advance()
                goal, now_ns = self._goal.sync_position, time.monotonic_ns()
                is_new = goal > asked or now_ns - asked_ns > _SYNC_AGAIN_NS
                if self.report.confirmed < goal <= self.report.recorded and is_new:
                    asked, asked_ns = goal, now_ns
                    session.send_unanswered(sync_ledger(self._ledger))
                if self.report.version != self._member_record().version:
                    yield from self._adopt(session, MirrorStep.ADOPT, begin)
                yield Pause()
        finally:
            for wait in waits:
                wait.close()

    def _await_confirmed(self, session: ClientSession) -> Task[None]:
        while True:
            report = self.report
            reached = yield from self._await_more(session, Reach.CONFIRMED, report.confirmed)
            report.confirmed = reached
            if not self._is_volatile:
                report.recorded = reached

    def _await_recorded(self, session: ClientSession) -> Task[None]:
        while True:
            report = self.report
            report.recorded = yield from self._await_more(
                session, Reach.ACKNOWLEDGED, report.recorded
            )

    def _await_more(self, session: ClientSession, reach: Reach, position: int) -> Task[int]:
        """Wait until a position of the mirror has moved, and return it.

        Raises:
            LedgerError: the mirror stopped replicating.
            AeronTimeoutError: the mirror does not respond.
            ArchiveError: the mirror responds with an error.
            ClosedError: the session has ended.
        """
        early, wait_ns = 0, min(_WAIT_NS, session.timeout_ns // 2)
        while True:
            began_ns = time.monotonic_ns()
            call = await_ledger(self._ledger, position + 1, reach, wait_ns, self._attach_id)
            reached = yield from exchange(session, call)
            if reached > position:
                return reached
            is_early = time.monotonic_ns() - began_ns < wait_ns // 2
            early = early + 1 if is_early else 0
            if early >= _MAX_EARLY:
                raise LedgerError(
                    f"the mirror stopped replicating at position {reached}", self._ledger
                )
            if is_early:
                yield Pause(_EARLY_PAUSE_NS)
