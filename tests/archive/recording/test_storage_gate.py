"""The gate before changes of the catalog."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aerotape.archive.recording.storage import StorageGate


class Disk:
    """Lets the probe wait until it responds."""

    def __init__(self) -> None:
        self.responds, self.woken = threading.Event(), threading.Event()

    def utime(self, *_: Any, **__: Any) -> None:
        self.responds.wait()

    def respond(self) -> None:
        self.responds.set()
        assert self.woken.wait(10)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(os, "utime", disk.utime)
    yield disk
    disk.responds.set()


def test_changes_wait_in_their_order(disk: Disk, tmp_path: Path) -> None:
    """Those that come while the disk does not respond are made after the conductor is woken."""
    gate, made = StorageGate(tmp_path, disk.woken.set), list[int]()
    for change in range(3):
        gate.run(lambda change=change: made.append(change))  # type: ignore[misc]
        gate.do_work()
    assert not made
    assert len(gate) == 3
    disk.respond()
    while gate:
        gate.do_work()
    assert made == [0, 1, 2]
    gate.close()


def test_a_closed_gate_is_open(disk: Disk, tmp_path: Path) -> None:
    """After closing, what waits is made by the next step, and later changes at once."""
    gate, made = StorageGate(tmp_path, disk.woken.set), list[int]()
    gate.run(lambda: made.append(0))
    disk.responds.set()
    gate.close()
    gate.do_work()
    gate.run(lambda: made.append(1))
    assert made == [0, 1]


def test_an_error_is_a_response(tmp_path: Path) -> None:
    """A directory without a lock file has an open gate."""
    gate, made = StorageGate(tmp_path, lambda: None), list[int]()
    gate.run(lambda: made.append(0))
    while gate:
        gate.do_work()
    assert made == [0]
    gate.close()
