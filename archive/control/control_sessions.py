"""All control sessions of the archive: each advanced, and removed once it has ended.

A session reports when it has work, and counts as busy until that is done. The idle ones are checked
for the loss of their client, ten times a second or at a shorter interval that is configured: while
some clients are busy duty cycles are frequent, and there may be many idle ones.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aerotape.archive.control.control_session import (
    REQUEST_IMAGE_GONE,
    SESSION_CLOSED,
    ControlSession,
)
from aerotape.errors import AerotapeError, ClosedError

if TYPE_CHECKING:
    from aerotape._native import BulkOffer, Counter, Subscription
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.replay.tokens import ReplayTokens

_MAX_REJECT_REASON_LENGTH = 1_000
_IDLE_INTERVAL_MS = 100


@dataclass(eq=False, kw_only=True)
class ControlSessions:
    """The control sessions by their ids. All methods are for the conductor's thread.

    Attributes:
        subscriptions: the control subscriptions by their registration ids.
        replay_tokens: tokens that end with their session.
        session_counter: counts the sessions.
        liveness_check_interval_ms: the interval at which idle sessions are to be checked.
    """

    subscriptions: Mapping[int, Subscription]
    replay_tokens: ReplayTokens
    session_counter: Counter
    errors: ErrorLog
    liveness_check_interval_ms: int = _IDLE_INTERVAL_MS
    _sessions: dict[int, ControlSession] = field(default_factory=dict, init=False)
    _busy: dict[int, ControlSession] = field(default_factory=dict, init=False)
    _idle_due_ms: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[ControlSession]:
        return iter(list(self._sessions.values()))

    def get(self, session_id: int) -> ControlSession | None:
        """Return a session that has not been removed."""
        return self._sessions.get(session_id)

    def add(self, session: ControlSession) -> None:
        """Advance a session from now on."""
        session.on_work = self._on_work
        self._sessions[session.session_id] = session
        self.session_counter.add(1)
        self._on_work(session.session_id)

    def _on_work(self, session_id: int) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            self._busy[session_id] = session

    @property
    def wants_within_ns(self) -> int | None:
        """The shortest interval within which a session has to be advanced."""
        wanted = [session.wants_within_ns for session in self._busy.values()]
        if self._sessions and self.liveness_check_interval_ms < _IDLE_INTERVAL_MS:
            due_ns = self._idle_due_ms * 1_000_000
            wanted.append(max(due_ns - time.monotonic_ns(), 0))
        return min((each for each in wanted if each is not None), default=None)

    def bulk_offers(self) -> list[BulkOffer]:
        """Return the descriptors that are sent to clients while the conductor waits."""
        bulk_offers = (session.bulk_offer for session in self._busy.values())
        return [each for each in bulk_offers if each is not None]

    def do_work(self) -> None:
        """Advance the sessions that have work, and from time to time those that are idle."""
        now_ms = time.monotonic_ns() // 1_000_000
        if now_ms >= self._idle_due_ms:
            self._idle_due_ms = now_ms + min(_IDLE_INTERVAL_MS, self.liveness_check_interval_ms)
            self._busy = dict(self._sessions)
        for session in list(self._busy.values()):
            self._advance(session, now_ms)
            if session.wants_within_ns is None:
                self._busy.pop(session.session_id, None)

    def _advance(self, session: ControlSession, now_ms: int) -> None:
        try:
            session.do_work(now_ms)
        except Exception as error:
            session.abort(f"failed with exception: {error}")
            if isinstance(error, ClosedError):
                raise
        if session.is_done:
            self._remove(session)

    def on_image_unavailable(self, image_id: int) -> None:
        """End the sessions whose requests came on an image that is gone."""
        for session in self:
            if session.image_id == image_id:
                session.abort(REQUEST_IMAGE_GONE)

    def close(self) -> None:
        """End all sessions, whatever goes wrong with one of them."""
        for session in self:
            session.abort(SESSION_CLOSED)
            try:
                self._remove(session)
            except ClosedError:
                pass
            except Exception as error:
                self.errors.record("closing", error, exception=error)

    def _remove(self, session: ControlSession) -> None:
        del self._sessions[session.session_id]
        self._busy.pop(session.session_id, None)
        self.session_counter.add(-1)
        self.replay_tokens.forget(session.session_id)
        try:
            if session.ended_badly:
                self.errors.record("control session ended", f"{session}: {session.end_reason}")
                self._reject_stream(session)
        finally:
            session.close()

    def _reject_stream(self, session: ControlSession) -> None:
        """Disconnect a client whose session has failed: its request stream is closed."""
        image_id = session.image_id
        if any(other.image_id == image_id for other in self._sessions.values()):
            return
        for image in self.subscriptions[session.subscription_id].images():
            with contextlib.suppress(AerotapeError):
                if image.correlation_id == image_id:
                    image.reject(session.end_reason[:_MAX_REJECT_REASON_LENGTH])
            image.release()
