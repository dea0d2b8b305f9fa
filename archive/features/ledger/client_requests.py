"""Requests for ledgers in progress, by the session that sent them.

A session has a limited number of them, and one of its calls at a time is in the queue of the
ledgers' thread, so that sessions share that thread evenly. Requests end with their session, except
one that is changing a ledger: that is completed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape.archive.control.requests.handling import send_failure
from aerotape.archive.features.ledger.ledger_worker import Turn
from aerotape.errors import ArchiveError
from aerotape.waiting import BackgroundTasks, Done, Task

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.ledger import Ledger

T = TypeVar("T")

MAX_REQUESTS: Final = 1_000
"""Requests for ledgers of a session in progress; a client waits for each of its ledgers by one."""


class _Session:
    """The requests of one session; those that are changing a ledger are waited for by others."""

    def __init__(self) -> None:
        self.turn = Turn()
        self.requests = BackgroundTasks()
        self.changes = BackgroundTasks()

    def __bool__(self) -> bool:
        return bool(self.requests or self.changes)


class ClientRequests:
    """All requests for ledgers in progress. For the conductor's thread."""

    def __init__(self, errors: ErrorLog) -> None:
        """Create the service, without any request."""
        self._errors = errors
        self._sessions: defaultdict[ControlSession, _Session] = defaultdict(_Session)

    def __bool__(self) -> bool:
        return bool(self._sessions)

    def begin(
        self,
        client: ControlSession,
        correlation_id: int,
        request: Task[int] | Task[None],
        *,
        changes: Ledger | None = None,
        first: Task[None] | None = None,
    ) -> None:
        """Run the task of a request; what it returns is the response, or raises.

        Args:
            request: returns what OK is sent with; None: it has sent its responses.
            changes: the ledger that it changes, which no other task does meanwhile.
            first: what is done before, while other tasks may change the ledger.

        Raises:
            ArchiveError: the session has too many requests in progress.
        """
        session = self._sessions[client]
        if len(session.requests) >= MAX_REQUESTS:
            raise ArchiveError(
                f"{MAX_REQUESTS} requests for ledgers are in progress in this session: wait for a"
                " response, or use another session"
            )
        task = self._respond(client, correlation_id, request, changes, first)
        session.requests.start(session.turn.run(task))

    def do_work(self) -> None:
        """Advance each request by one step, and cancel those of sessions that have ended."""
        for client, session in list(self._sessions.items()):
            if client.is_done:
                session.requests.close()
            session.requests.do_work()
            session.changes.do_work()
            if not session:
                del self._sessions[client]

    def close(self) -> None:
        """Cancel all requests."""
        for session in self._sessions.values():
            session.requests.close()
            session.changes.close()

    def _respond(
        self,
        client: ControlSession,
        correlation_id: int,
        request: Task[int] | Task[None],
        changes: Ledger | None,
        first: Task[None] | None,
    ) -> Task[None]:
        """Run a request; send OK with what it returns, or the error that it raises."""
        try:
            if first is not None:
                yield from first
            if changes is None:
                relevant_id = yield from request
            else:
                relevant_id = yield from self.run_alone(client, changes, request)
            if relevant_id is not None:
                client.send_ok(correlation_id, relevant_id)
        except Exception as error:
            send_failure(client, correlation_id, "request for a ledger", error, self._errors)

    def run_alone(self, client: ControlSession, ledger: Ledger, task: Task[T]) -> Task[T]:
        """Run a task, to its end, while no other one changes the ledger; return its result."""
        yield from ledger.lock()
        done = Done[T]()

        def change() -> Task[None]:
            try:
                done.set((yield from task))
            except Exception as error:
                done.fail(error)
            finally:
                ledger.unlock()

        session = self._sessions[client]
        session.changes.start(session.turn.run(change()))
        yield done
        return done.result
