"""The error log: every error is counted, repetitions are logged rarely."""

from __future__ import annotations

import collections
import logging
from collections.abc import Callable
from typing import Any

import pytest

from aerotape.archive.error_log import ErrorLog
from aerotape.errors import ClosedError


class Sink:
    """A counter and a file that store errors; the file has space for a number of texts."""

    def __init__(self, room: int = 1_000) -> None:
        self.count = 0
        self.room = room
        self.texts: collections.Counter[str] = collections.Counter()

    def add(self, delta: int) -> int:
        self.count += delta
        return self.count - delta

    def record_error(self, text: str, now_ms: int) -> bool:
        if text not in self.texts and len(self.texts) >= self.room:
            return False
        self.texts[text] += 1
        return True


def test_repetitions_are_counted_but_not_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand equal errors are one line; after a second another line has their number."""
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    sink: Any = Sink()
    log = ErrorLog(sink, sink)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            log.record("bad message", "too short")
        now_s[0] += 1.0
        log.record("bad message", "too short")
    assert sink.count == 1001
    assert [record.getMessage() for record in caplog.records] == [
        "bad message: too short",
        "bad message (1001 times): too short",
    ]
    assert sink.texts == {"bad message: too short": 1001}


def test_varied_errors_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The first errors of a kind are logged singly, later ones together; other kinds are
    unaffected."""
    sink: Any = Sink(room=40)
    log = ErrorLog(sink, sink)
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            log.record("bad message", f"number {number}")
        log.record("recording failed", "no paper")
    assert sink.count == 1001
    assert sink.texts["bad message: number 0"] == sink.texts["bad message: number 31"] == 1
    assert sink.texts["bad message: more of this kind"] == 1000 - 32
    assert sink.texts["recording failed: no paper"] == 1
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "bad message: number 0"
    assert lines[-1] == "recording failed: no paper"
    assert 33 <= len(lines) < 50


def test_a_full_file_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Errors that do not fit are counted and logged; those in the file are still counted."""
    sink: Any = Sink(room=1)
    log = ErrorLog(sink, sink)
    with caplog.at_level(logging.WARNING):
        for kind in ("first", "second", "third", "first"):
            log.record(kind, "what")
    assert sink.count == 4
    assert sink.texts == {"first: what": 2}
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if line.startswith("third")] == ["third: what"]
    [full] = [line for line in lines if "is full" in line]
    assert "aeron.archive.error.buffer.length" in full


def test_errors_wait_for_the_disk_up_to_a_limit() -> None:
    """While the file cannot be written, all errors are counted and the first are stored later."""
    sink: Any = Sink()
    waiting: list[Callable[[], None]] = []
    log = ErrorLog(sink, sink, waiting.append)
    for _ in range(5_000):
        log.record("bad message", "too short")
    assert sink.count == 5_000
    assert not sink.texts
    for call in waiting:
        call()
    assert sink.texts["bad message: too short"] == len(waiting) < 5_000
    log.record("recording failed", "no paper")
    waiting[-1]()
    assert sink.texts["recording failed: no paper"] == 1


def test_an_internal_error_is_stored_with_its_traceback() -> None:
    """The error log shows where an internal error was raised."""
    sink: Any = Sink()
    try:
        raise ValueError("internal")
    except ValueError as error:
        ErrorLog(sink, sink).record("request failed", error, exception=error)
    [text] = sink.texts
    assert text.startswith("request failed: internal\nTraceback")
    assert "test_error_log.py" in text


def test_errors_are_logged_without_a_counter() -> None:
    """After the loss of the driver errors are still logged."""

    class Gone(Sink):
        def add(self, delta: int) -> int:
            raise ClosedError("gone")

    sink: Any = Gone()
    ErrorLog(sink, sink).record("driver lost", "at last")
    assert list(sink.texts) == ["driver lost: at last"]


def test_text_of_clients_is_escaped(caplog: pytest.LogCaptureFixture) -> None:
    """Line ends and terminal codes, in a channel for example, are escaped."""
    sink: Any = Sink()
    log = ErrorLog(sink, sink)
    with caplog.at_level(logging.WARNING):
        log.record(
            "control session ended", "aeron:ipc?alias=\n2026-01-01 all is well\x1b[2J\u2028é"
        )
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        "control session ended: aeron:ipc?alias=\\n2026-01-01 all is well\\x1b[2J\\u2028é"
    )
    assert list(sink.texts) == [line]
