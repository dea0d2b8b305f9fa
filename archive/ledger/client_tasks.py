"""The requests of clients for ledgers that are in progress, as background tasks.

A session has a limited number of them, and of those that read files one at a time, so that one
client cannot keep the thread that reads files from the others. What changes nothing ends with the
session; a change is completed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from aerotape.archive.background_tasks import BackgroundTasks, Task
from aerotape.errors import AerotapeError, ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.ledger.attachment import Client

MAX_REQUESTS: Final = 1_000
"""Requests of a session in progress. A remote writer has one for each ledger that it waits for."""


class ClientTasks:
    """The tasks of all clients. For the conductor's thread."""

    def __init__(self, errors: ErrorLog) -> None:
        self._errors = errors
        self._tasks = BackgroundTasks()
        self._in_progress: Counter[int] = Counter()
        self._reading: set[int] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def advance(self) -> None:
        """Advance each task by one step."""
        self._tasks.advance()

    def close(self) -> None:
        """Cancel all tasks."""
        self._tasks.close()

    def change(self, client: Client, correlation_id: int, task: Task[None]) -> None:
        """Begin a task that is completed also when the session has ended."""
        if self._admits(client, correlation_id):
            self._tasks.start(self._answered(client, correlation_id, task))

    def wait(self, client: Client, correlation_id: int, task: Task[None]) -> None:
        """Begin a task that ends with the session."""
        if self._admits(client, correlation_id):
            task = self._answered(client, correlation_id, task)
            self._tasks.start(task, lambda: not client.is_done)

    def read(self, client: Client, correlation_id: int, task: Task[None]) -> None:
        """Begin a task that reads files: it ends with the session, and follows its other reads."""
        self.wait(client, correlation_id, self._in_turn(client.session_id, task))

    def _admits(self, client: Client, correlation_id: int) -> bool:
        if self._in_progress[client.session_id] < MAX_REQUESTS:
            return True
        client.send_error(
            correlation_id,
            ErrorCode.GENERIC,
            f"{MAX_REQUESTS} requests for ledgers of this session are in progress: wait for their"
            " responses, or connect again",
        )
        return False

    def _in_turn(self, session_id: int, task: Task[None]) -> Task[None]:
        while session_id in self._reading:
            yield
        self._reading.add(session_id)
        try:
            yield from task
        finally:
            self._reading.discard(session_id)

    def _answered(self, client: Client, correlation_id: int, task: Task[None]) -> Task[None]:
        self._in_progress[client.session_id] += 1
        try:
            yield from task
        except ArchiveError as error:
            client.send_error(correlation_id, error.error_code, str(error))
        except Exception as error:
            unexpected = None if isinstance(error, AerotapeError) else error
            self._errors.record("request for a ledger failed", error, exception=unexpected)
            client.send_error(correlation_id, ErrorCode.GENERIC, str(error))
        finally:
            self._in_progress[client.session_id] -= 1
            if not self._in_progress[client.session_id]:
                del self._in_progress[client.session_id]
