"""Changes of the catalog while the disk does not respond."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aerotape.archive.recording import storage
from aerotape.archive.recording.storage import CatalogChanges


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
    changes, made = CatalogChanges(tmp_path, disk.woken.set), list[int]()
    for change in range(3):
        changes.run_when_disk_responds(lambda change=change: made.append(change))  # type: ignore[misc]
        changes.do_work()
    assert not made
    assert len(changes) == 3
    disk.respond()
    while changes:
        changes.do_work()
    assert made == [0, 1, 2]
    changes.close()


def test_once_closed_changes_pass(disk: Disk, tmp_path: Path) -> None:
    """After closing, what waits is made by the next step, and later changes at once."""
    changes, made = CatalogChanges(tmp_path, disk.woken.set), list[int]()
    changes.run_when_disk_responds(lambda: made.append(0))
    disk.responds.set()
    changes.close()
    changes.do_work()
    changes.run_when_disk_responds(lambda: made.append(1))
    assert made == [0, 1]


def test_an_error_is_a_response(tmp_path: Path) -> None:
    """A directory without a lock file lets changes pass."""
    changes, made = CatalogChanges(tmp_path, lambda: None), list[int]()
    changes.run_when_disk_responds(lambda: made.append(0))
    while changes:
        changes.do_work()
    assert made == [0]
    changes.close()


def test_changes_wait_where_the_docstring_says() -> None:
    """A new caller is added to the list of `CatalogChanges`, or need not wait."""
    archive = Path(storage.__file__).parents[1]
    callers: dict[str, set[str]] = {}
    for path in archive.rglob("*.py"):
        for name in re.findall(r"changes\.(\w+)\(", path.read_text()):
            callers.setdefault(name, set()).add(path.stem)
    assert callers["run_when_disk_responds"] == {
        "control_session_adapter",
        "recordings",
        "conductor",
    }
    # The conductor does so before it reads the free space.
    assert callers["does_disk_respond"] == {"recordings", "retention", "conductor"}
    assert callers["await_disk"] == {"operations", "replication_session", "log"}
