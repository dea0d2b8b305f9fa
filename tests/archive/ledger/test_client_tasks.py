"""Requests of clients in progress: limited, fair between sessions, and gone with the session."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from aerotape.archive.background_tasks import Task
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.ledger import client_tasks
from aerotape.archive.ledger.client_tasks import ClientTasks


class Session:
    """A control session that stores its errors."""

    def __init__(self, session_id: int) -> None:
        self.session_id = session_id
        self.is_done = False
        self.errors: list[tuple[int, str]] = []

    def send_error(self, correlation_id: int, _code: int, message: str) -> None:
        self.errors.append((correlation_id, message))


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientTasks]:
    """Tasks of which a session may have three."""
    monkeypatch.setattr(client_tasks, "MAX_REQUESTS", 3)
    made = ClientTasks(ErrorLog())
    yield made
    made.close()


def waiting(until: SimpleNamespace, log: list[str], name: str) -> Task[None]:
    """A task that ends once `until.over` is set."""
    log.append(f"{name} begins")
    try:
        while not until.over:
            yield
        log.append(f"{name} ends")
    finally:
        log.append(f"{name} closed")


def test_a_session_has_a_limited_number_of_requests(tasks: ClientTasks) -> None:
    """One more than the limit is refused, of any kind, until a response was sent; other sessions
    are not affected.
    """
    one, other = Session(1), Session(2)
    gate: Any = SimpleNamespace(over=False)
    log: list[str] = []
    for number, begin in enumerate([tasks.wait, tasks.read, tasks.change, tasks.wait]):
        begin(one, number, waiting(gate, log, str(number)))  # type: ignore[arg-type]
    assert [number for number, _ in one.errors] == [3]
    assert "3 requests for ledgers of this session are in progress" in one.errors[0][1]
    tasks.wait(other, 9, waiting(gate, log, "other"))  # type: ignore[arg-type]
    assert not other.errors
    gate.over = True
    tasks.advance()
    assert len(tasks) == 0
    tasks.wait(one, 4, waiting(gate, log, "4"))  # type: ignore[arg-type]
    assert len(one.errors) == 1
    assert "4 ends" in log


def test_reads_of_a_session_follow_each_other(tasks: ClientTasks) -> None:
    """A session has one read at a time, in the order of its requests; that of another session does
    not wait for them.
    """
    one, other = Session(1), Session(2)
    gate: Any = SimpleNamespace(over=False)
    log: list[str] = []
    for name in "abc":
        tasks.read(one, 0, waiting(gate, log, name))  # type: ignore[arg-type]
    tasks.read(other, 0, waiting(gate, log, "other"))  # type: ignore[arg-type]
    tasks.advance()
    assert log == ["a begins", "other begins"]
    gate.over = True
    while len(tasks):
        tasks.advance()
    assert [each for each in log if each.endswith("begins")] == [
        f"{name} begins" for name in ("a", "other", "b", "c")
    ]


def test_what_changes_nothing_ends_with_the_session(tasks: ClientTasks) -> None:
    """A wait and a read are cancelled when their session has ended; a change is completed."""
    session = Session(1)
    gate: Any = SimpleNamespace(over=False)
    log: list[str] = []
    tasks.wait(session, 0, waiting(gate, log, "wait"))  # type: ignore[arg-type]
    tasks.read(session, 0, waiting(gate, log, "read"))  # type: ignore[arg-type]
    tasks.change(session, 0, waiting(gate, log, "change"))  # type: ignore[arg-type]
    session.is_done = True
    tasks.advance()
    assert len(tasks) == 1
    gate.over = True
    tasks.advance()
    assert log[3:] == ["wait closed", "read closed", "change ends", "change closed"]
