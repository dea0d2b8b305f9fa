"""The log of what goes wrong: counted always, told sparingly."""

from __future__ import annotations

import logging

import pytest

from aerotape.archive.error_log import ErrorLog
from aerotape.errors import ClosedError


class Sink:
    """A counter and a file that remember."""

    def __init__(self) -> None:
        self.count = 0
        self.texts: list[str] = []

    def add(self, delta: int) -> int:
        self.count += delta
        return self.count - delta

    def record_error(self, text: str, now_ms: int) -> bool:
        self.texts.append(text)
        return True


def test_repetitions_are_counted_but_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand of a kind make one line; after a second another, with the number."""
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    sink = Sink()
    log = ErrorLog(sink, sink)
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            log.record("bad message", f"number {number}")
        now_s[0] += 1.0
        log.record("bad message", "the last")
    assert sink.count == 1001
    assert [record.getMessage() for record in caplog.records] == [
        "bad message: number 0",
        "bad message (1001 times): the last",
    ]
    assert sink.texts == ["bad message: number 0", "bad message: the last"]


def test_memory_does_not_grow_with_kinds() -> None:
    """However many kinds there are, only the newest are remembered."""
    log = ErrorLog()
    for number in range(1000):
        log.record(f"kind {number}", "")
    assert len(log._kinds) <= 256


def test_a_counter_that_is_gone_does_no_harm() -> None:
    """After the loss of the driver errors can still be told."""

    class Gone(Sink):
        def add(self, delta: int) -> int:
            raise ClosedError("gone")

    sink = Gone()
    ErrorLog(sink, sink).record("driver lost", "at last")
    assert sink.texts == ["driver lost: at last"]
