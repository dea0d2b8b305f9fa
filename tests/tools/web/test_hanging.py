"""Monitoring responds while the archive or its storage does not."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

import pytest
from support.builders.offline_directory import build
from support.daemon.archives import ServedArchive
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.daemon.daemon import AerotapeArchive
from support.processes import FAST_ARCHIVE
from support.web import Answer, WebService

import aerotape
from aerotape.clients import ArchiveClient
from aerotape.codecs.entity.actions import Event
from aerotape.errors import AeronTimeoutError, AerotapeError, ClosedError
from aerotape.tools._web import latest as latest_module
from aerotape.tools._web import monitoring
from aerotape.tools._web.latest import Latest
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.session import ControlSession, SessionBusyError

MONITORING = ("/healthz", "/readyz", "/metrics")
NEEDING = (
    *("/ledgers", "/ledgers/0/78", "/api/v1/ledger/read?ledger_id=78"),
    "/api/v1/ledger/metadata?ledger_id=78",
)
SOON_S = 15.0  # 1 s, on a machine with time


def timed(web: WebService, path: str) -> tuple[Answer, float]:
    begun_s = time.monotonic()
    return web.get(path), time.monotonic() - begun_s


def timed_twice(web: WebService, path: str) -> tuple[Answer, float]:
    first, second = timed(web, path), timed(web, path)
    return second[0], max(first[1], second[1])


def test_storage_that_hangs(own: CommandLine, tmp_path: Path) -> None:
    """Health says so; what reads files does so later; the service ends when asked."""
    fifo = tmp_path / "verified.json"  # opening it waits for a writer, as a frozen disk does
    os.mkfifo(fifo)
    with (
        WebService(own, build(tmp_path / "archive"), "--verification", fifo) as web,
        ThreadPoolExecutor(60) as threads,
    ):
        # Twice one after the other, beside each other.
        asked = {path: threads.submit(timed_twice, web, path) for path in MONITORING}
        found = {path: each.result() for path, each in asked.items()}
        assert max(took_s for _, took_s in found.values()) < SOON_S
        assert found["/healthz"][0].status == 200
        answer = found["/readyz"][0]
        assert (answer.status, answer.json["ready"]) == (503, False)
        assert "the storage does not respond" in answer.json["checks"][0]["found"]
        assert found["/metrics"][0].status == 503
        assert found["/metrics"][0].json["title"] == "StorageError"
        reading = [threads.submit(web.get, "/api/v1/recordings") for _ in range(60)]
        time.sleep(0.2)
        assert timed(web, "/metrics")[1] < SOON_S
        assert {each.result().status for each in reading} == {503}
        with urlopen(f"{web.url}live", timeout=60) as stream:
            assert stream.readline() == b"event: problem\n"
            assert b"the storage does not respond" in stream.readline()
    assert "Traceback" not in web.errors


def test_an_archive_that_hangs(tmp_path: Path, aeron_dir: Path) -> None:
    """Requests that need it get a reason, after a limited time; the others do not wait."""
    properties = FAST_ARCHIVE | {"aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0"}
    with AerotapeArchive(tmp_path / "archive", aeron_dir, properties=properties) as archive:
        served = ServedArchive("aerotape", aeron_dir, archive.archive_dir, archive.control_channel)
        with aerotape.connect(aeron_dir=aeron_dir) as client, client.entities("orders") as orders:
            orders.append("a", [Event(1, b"{}", "json")])
            with client.create_ledger("VD_JOURNAL", aerotape.QualifiedId(0, 78)) as writer:
                writer.add(b"entry")
        with WebService(CommandLine(served), archive.archive_dir, "--allow-changes") as web:
            assert web.get("/api/v1/ledger/list").status == 200
            os.kill(archive.process.pid, signal.SIGSTOP)
            try:
                with ThreadPoolExecutor(60) as threads:
                    begun_s = time.monotonic()
                    ledgers = [
                        threads.submit(web.get, "/api/v1/ledger/list") for _ in range(60)
                    ]
                    time.sleep(0.2)
                    for path in (*MONITORING, "/api/v1/recordings"):
                        assert timed(web, path)[1] < SOON_S
                    # What is in files is shown.
                    for path in ("/api/v1/entities/orders/a", "/entities/orders/journal?key=a"):
                        assert web.get(path).status == 200
                    found = [each.result() for each in ledgers]
                    found += threads.map(web.get, NEEDING)
                    found += [web.get("/api/v1/recordings/0/stop", "POST")]
                    assert time.monotonic() - begun_s < 60
            finally:
                os.kill(archive.process.pid, signal.SIGCONT)
            assert {each.status for each in found} == {503}
            assert any("8 requests wait for the archive" in each.text for each in found)


def test_a_session_has_a_limited_queue() -> None:
    """Of number and time."""
    release, begun = threading.Event(), threading.Event()

    def connect() -> ArchiveClient:
        return cast(ArchiveClient, Client())

    class Client:
        def close(self) -> None: ...

    def hang(_: Any) -> None:
        begun.set()
        release.wait()

    session = ControlSession(connect, max_waiting=1, wait_s=600)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(session.run, hang)
        assert begun.wait(60)
        waiting = threads.submit(session.run, lambda _: 6)
        await_true(lambda: session._places._value == 0)
        with pytest.raises(SessionBusyError, match="1 requests wait"):
            session.run(lambda _: None)
        release.set()
        first.result()
        assert waiting.result() == 6
    assert session.run(lambda _: 7) == 7
    release.clear()
    begun.clear()
    impatient = ControlSession(connect, max_waiting=1, wait_s=0.1)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(impatient.run, hang)
        assert begun.wait(60)
        with pytest.raises(SessionBusyError, match=r"has not ended another request for 0\.1 s"):
            impatient.run(lambda _: None)
        release.set()
        first.result()


class Hanging:
    """A client whose requests hang until it is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def request(self) -> None:
        self.closed.wait()
        raise ClosedError("closed")

    def close(self) -> None:
        self.closed.set()


def test_a_request_has_limited_time() -> None:
    """Its caller does not wait longer, nor is it made again; the next one has a new client."""
    made: list[Hanging] = []

    def connect() -> ArchiveClient:
        made.append(Hanging())
        return cast(ArchiveClient, made[-1])

    session = ControlSession(connect, wait_s=600, limit_s=0.2)
    assert session.run(lambda _: 1) == 1
    for _ in range(2):
        with pytest.raises(AeronTimeoutError, match=r"not responded to a request for 0\.2 s"):
            session.run(lambda client: cast(Hanging, client).request())
    assert session.run(lambda _: 2) == 2
    assert [each.closed.is_set() for each in made] == [True, True, False]
    session.close()
    assert made[2].closed.is_set()


def test_what_may_have_been_done_is_not_repeated() -> None:
    """After a timeout; a session that is found closed is opened again."""
    calls: list[str] = []

    def failing(error: AerotapeError) -> None:
        calls.append(type(error).__name__)
        if len(calls) < 3:
            raise error

    session = ControlSession(lambda: cast(ArchiveClient, Hanging()))
    assert session.run(lambda _: 1) == 1
    with pytest.raises(AeronTimeoutError):
        session.run(lambda _: failing(AeronTimeoutError("late")))
    assert session.run(lambda _: 1) == 1
    session.run(lambda _: failing(ClosedError("gone")))
    assert calls == ["AeronTimeoutError", "ClosedError", "ClosedError"]


class Clock:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of values that are read."""
    made = Clock()
    monkeypatch.setattr(latest_module, "time", made)
    return made


def test_the_latest_value(clock: Clock) -> None:
    """It is shared while it is fresh, and used for a while when reading hangs."""
    release, values = threading.Event(), iter(range(10))
    release.set()

    def read() -> int:
        release.wait()
        found = next(values)
        if found == 3:
            raise ValueError
        return found

    latest = Latest(read, fresh_s=0.2, usable_s=1.0)
    assert latest.known() is None
    assert [latest.get(), latest.get(), latest.known()] == [0, 0, 0]
    clock.now_s += 0.3
    assert latest.get() == 1
    release.clear()
    clock.now_s += 0.3
    assert latest.get(0.1) == 1
    clock.now_s += 1
    with pytest.raises(TimeoutError):
        latest.get(0.1)
    release.set()
    assert latest.get() == 2
    clock.now_s += 0.3
    with pytest.raises(ValueError):
        latest.get()


def test_a_change_is_read(clock: Clock) -> None:
    """Also if the value is fresh, or was being read when it was changed."""
    release, begun = threading.Event(), threading.Event()
    release.set()
    stored = 1

    def read() -> int:
        found = stored
        begun.set()
        release.wait()
        return found

    latest = Latest(read, fresh_s=60, usable_s=60)
    assert latest.get() == 1
    clock.now_s += 1
    stored = 2
    assert latest.get() == 1
    latest.renew()
    clock.now_s += 1
    release.clear()
    begun.clear()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(latest.get)
        assert begun.wait(60)
        stored = 3
        clock.now_s += 1
        latest.renew()
        clock.now_s += 1
        release.set()
        assert waiting.result() == 3
    assert latest.known() == 3


def test_metrics_are_written_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For all requests of a snapshot; while that is going on, others get the last ones."""
    observed = ObservedArchive(build(tmp_path / "archive"))
    begun, release = threading.Event(), threading.Event()
    calls: list[int] = []
    release.set()

    def exposition(*_: object) -> tuple[bytes, str]:
        calls.append(1)
        begun.set()
        release.wait()
        return str(len(calls)).encode(), "text/plain"

    monkeypatch.setattr(monitoring, "exposition", exposition)
    metrics = monitoring._Metrics(observed, 1)
    first = observed.snapshot()
    monkeypatch.setattr(observed, "snapshot", lambda _wait_s: first)
    assert [metrics.get("")[0] for _ in range(3)] == [b"1"] * 3
    second = replace(first, taken_ms=first.taken_ms + 1_000)
    monkeypatch.setattr(observed, "snapshot", lambda _wait_s: second)
    release.clear()
    begun.clear()
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(metrics.get, "")
        assert begun.wait(60)
        assert metrics.get("")[0] == b"1"
        release.set()
        assert writing.result()[0] == metrics.get("")[0] == b"2"
