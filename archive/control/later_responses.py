"""Responses to requests that the archive is still working on.

A request that takes longer than a duty cycle is a task, or a deletion; its outcome is sent here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.control.requests.handling import send_failure
from aerotape.archive.waiting import BackgroundTasks, Task, await_future
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.protocol import NULL_POSITION, NULL_VALUE, ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.recording.segments.deletion import Deletion


class LaterResponses:
    """The requests that have no response yet, or whose signal is due. An agent."""

    def __init__(self, errors: ErrorLog) -> None:
        """Create it without requests."""
        self._errors = errors
        self._tasks = BackgroundTasks()

    def begin(
        self,
        session: ControlSession,
        correlation_id: int,
        task: Task[tuple[int, Deletion | None]],
    ) -> None:
        """Run a task and respond with its number; send DELETE at the end of its deletion."""
        self._tasks.start(self._respond(session, correlation_id, task))

    def _respond(
        self,
        session: ControlSession,
        correlation_id: int,
        task: Task[tuple[int, Deletion | None]],
    ) -> Task[None]:
        try:
            count, deletion = yield from task
            session.send_ok(correlation_id, count)
            if deletion is None:
                return
            for problem in (yield from await_future(deletion.deleted)):
                session.send_error(correlation_id, ErrorCode.GENERIC, problem)
            session.send_signal(
                correlation_id,
                deletion.recording_id,
                NULL_VALUE,
                NULL_POSITION,
                RecordingSignal.DELETE,
            )
        except Exception as error:
            send_failure(session, correlation_id, "request", error, self._errors)

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: what the tasks wait for wakes the conductor."""
        return None

    def do_work(self) -> None:
        """Advance each request by one step."""
        self._tasks.advance()

    def close(self) -> None:
        """Cancel the tasks."""
        self._tasks.close()
