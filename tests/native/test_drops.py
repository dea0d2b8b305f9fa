"""What may wait while it is dropped lets other Python threads run meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aerotape import _native

TIMEOUT_S = 60


class Counting:
    """A thread of Python that counts, whenever it has the interpreter."""

    def __init__(self) -> None:
        self.count = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._is_over:
            self.count += 1

    def __enter__(self) -> Counting:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()


def runs_meanwhile(create: Callable[[], object]) -> bool:
    """Return whether another thread has run during the drop of what `create` returns.

    The interpreter switches threads at calls and at jumps back, of which there are none between the
    two counts: it is released there by the drop or not at all.
    """
    with Counting() as other:
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            held = create()
            before = other.count
            del held
            after = other.count
            if after != before:
                return True
    return False


@pytest.fixture
def driver(tmp_path: Path) -> _native.MediaDriver:
    return launch(tmp_path / "aeron")


def launch(aeron_dir: Path) -> _native.MediaDriver:
    """Start a driver that removes its directory when it is closed."""
    return _native.MediaDriver.launch(
        {
            "aeron.dir": str(aeron_dir),
            "aeron.threading.mode": "SHARED",
            "aeron.shared.idle.strategy": "backoff",
            "aeron.dir.delete.on.shutdown": "true",
        }
    )


def test_drop_of_a_media_driver(tmp_path: Path) -> None:
    """A driver that is dropped joins its threads with the interpreter released."""
    assert runs_meanwhile(lambda: launch(tmp_path / "aeron"))


def test_drop_of_a_client(driver: _native.MediaDriver) -> None:
    """A client that is dropped joins its conductor with the interpreter released."""
    assert runs_meanwhile(lambda: _native.AeronClient(driver.aeron_dir))
    driver.close()


def test_drop_of_a_subscription(driver: _native.MediaDriver) -> None:
    """A subscription that is dropped closes its images with the interpreter released."""
    client = _native.AeronClient(driver.aeron_dir)
    assert runs_meanwhile(lambda: client.add_subscription("aeron:ipc", 1))
    client.close()
    driver.close()
