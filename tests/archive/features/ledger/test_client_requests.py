"""Requests for ledgers: limited for each session, fair between sessions, gone with theirs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from support.daemon.control_rig import RawClient
from support.ledger.bare import bare_ledger

import aerotape
from aerotape import QualifiedId, _native
from aerotape.archive.control.control_session import ControlSession
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.features.ledger.client_requests import MAX_REQUESTS, ClientRequests
from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
from aerotape.codecs.generated import ledger_control
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.errors import ArchiveError
from aerotape.waiting import Pause, Task

LEDGER = QualifiedId(0, 7)


class Session:
    """A control session of which only the end matters."""

    is_done = False


class Rig:
    """The requests of sessions, and the thread that makes their calls."""

    def __init__(self, archive_dir: Path) -> None:
        self.worker = LedgerWorker(archive_dir, lambda: None, lambda text: None)
        self.requests = ClientRequests(cast(ErrorLog, None))
        self.ledger = bare_ledger(LEDGER)
        self.log: list[str] = []

    def begin(self, session: Session, task: Task[None], **options: Any) -> None:
        self.requests.begin(cast(ControlSession, session), 1, task, **options)

    def call(self, name: str) -> Task[None]:
        """Note the name in the thread."""
        yield from self.worker.call(lambda: self.log.append(name))

    def wait(self, name: str, is_over: Callable[[], bool] = lambda: False) -> Task[None]:
        """Wait for a condition, and note how the task has ended."""
        try:
            while not is_over():
                yield Pause()
            self.log.append(f"{name} done")
        except GeneratorExit:
            self.log.append(f"{name} cancelled")
            raise

    def run(self) -> None:
        """Advance all requests to their ends."""
        while self.requests:
            self.requests.do_work()
            time.sleep(0.001)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.requests.close()
    made.worker.close()


def test_a_session_has_a_limit(rig: Rig) -> None:
    """One request more is refused, of that session and no other; an end makes room."""
    greedy, other = Session(), Session()
    ended = threading.Event()
    rig.begin(greedy, rig.wait("first", ended.is_set))
    for _ in range(MAX_REQUESTS - 1):
        rig.begin(greedy, rig.wait("wait"), changes=rig.ledger)
    with pytest.raises(ArchiveError, match="1000 requests for ledgers are in progress in this"):
        rig.begin(greedy, rig.wait("wait"))
    rig.begin(other, rig.wait("wait"))
    ended.set()
    rig.requests.do_work()
    rig.begin(greedy, rig.wait("wait"))


def test_sessions_share_the_thread_evenly(rig: Rig) -> None:
    """A call waits for one of each other session, however many these have requested."""
    released = threading.Event()
    greedy, other = Session(), Session()
    rig.begin(greedy, rig.worker.call(lambda: cast(None, released.wait() and None)))
    for _ in range(MAX_REQUESTS - 1):
        rig.begin(greedy, rig.call("greedy"))
    rig.begin(other, rig.call("other"))
    released.set()
    rig.run()
    assert rig.log.count("greedy") == MAX_REQUESTS - 1
    assert rig.log.index("other") <= 1


def test_requests_end_with_their_session(rig: Rig) -> None:
    """Those that wait are cancelled, one that is changing a ledger is completed."""
    session, other = Session(), Session()
    ended = threading.Event()
    rig.begin(session, rig.wait("reading"))
    rig.begin(session, rig.wait("changing", ended.is_set), changes=rig.ledger)
    rig.begin(session, rig.wait("queued"), changes=rig.ledger)
    rig.begin(other, rig.wait("other", ended.is_set), changes=rig.ledger)
    session.is_done = True
    rig.requests.do_work()
    assert rig.log == ["reading cancelled"], "the queued one has not begun"
    ended.set()
    rig.run()
    assert rig.log == ["reading cancelled", "changing done", "other done"]


def test_a_client_that_waits_for_everything(driver: _native.MediaDriver, tmp_path: Path) -> None:
    """Thousands of waits of a session are refused, and others are served."""
    properties = {"aeron.archive.control.channel.enabled": "false"}
    aeron = _native.AeronClient(driver.aeron_dir)
    with (
        aerotape.Archive.launch(tmp_path, driver.aeron_dir, "external", properties),
        aerotape.connect(aeron_dir=driver.aeron_dir) as client,
        client.create_ledger(qualified_id=LEDGER) as writer,
    ):
        raw = RawClient(aeron, "aeron:ipc", response_stream_id=77)
        raw.connect()
        for _ in range(2_000):
            raw.request(
                ledger_control.AwaitLedgerRequest,
                scope_id=LEDGER.signed[0],
                ledger_id=LEDGER.signed[1],
                position=1 << 40,
                reach=ledger_control.Reach.CONFIRMED,
                timeout_ns=60_000_000_000,
            )
            raw.poll()
        refused: list[Any] = []
        while len(refused) < 2_000 - MAX_REQUESTS:
            raw.poll(1)
            # There may be pings in between.
            codes = ((each, getattr(each, "code", None)) for each in raw.received)
            refused = [each for each, code in codes if code is ControlResponseCode.ERROR]
        assert "1000 requests for ledgers are in progress" in refused[0].error_message
        assert writer.add(b"entry") == 0
        assert client.ledger_info(LEDGER).last_add_confirmed == 0
        raw.close()
    aeron.close()
