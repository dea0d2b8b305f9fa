"""What `aerotape archive` tells the service manager that has started it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.daemon import AerotapeArchive
from support.processes import FAST_ARCHIVE

import aerotape
from aerotape.tools._cli.daemon.service_manager import ServiceManager


class Manager:
    """A service manager's end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1) if address[0] == "@" else address)

    def received(self, timeout_s: float = 30.0) -> str:
        """Return the next message."""
        self._socket.settimeout(timeout_s)
        return self._socket.recv(4096).decode()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Manager]:
    """A service manager, of which the environment tells."""
    address = str(tmp_path / "notify")
    if request.param == "abstract":
        address = f"@aerotape-test-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    made = Manager(address)
    yield made
    made.close()


def started(tmp_path: Path, aeron_dir: Path, **properties: str) -> AerotapeArchive:
    channels = {"aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0"}
    return AerotapeArchive(
        tmp_path / "archive", aeron_dir, properties=FAST_ARCHIVE | channels | properties
    )


def test_an_archive_is_ready_then_alive_then_stopping(
    manager: Manager, tmp_path: Path, aeron_dir: Path
) -> None:
    with started(tmp_path, aeron_dir) as archive:
        ready, status = manager.received().split("\n")
        assert ready == "READY=1"
        assert status == f"STATUS=recording into {archive.archive_dir}"
        assert [manager.received() for _ in range(3)] == ["WATCHDOG=1"] * 3
        archive.stop()
        while (last := manager.received()) == "WATCHDOG=1":
            pass
    assert last == "STOPPING=1"


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_a_conductor_that_hangs_gives_no_sign_of_life(
    manager: Manager, tmp_path: Path, aeron_dir: Path
) -> None:
    guard = {"aeron.archive.authenticator.supplier": "support.daemon.authenticator:Guard"}
    with started(tmp_path, aeron_dir, **guard) as archive:
        assert manager.received().startswith("READY=1")
        with pytest.raises(aerotape.AerotapeError):
            aerotape.connect(
                aeron_dir=archive.aeron_dir, credentials=b"block", timeout_ns=1_000_000_000
            )
        # The messages sent while the conductor worked, of which the socket has few.
        for _ in range(20):
            try:
                assert manager.received(1.5) == "WATCHDOG=1"
            except TimeoutError:
                break
        else:
            pytest.fail("still alive")
        archive.process.kill()


def test_a_socket_that_does_not_exist_is_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"NOTIFY_SOCKET": str(tmp_path / "none"), "WATCHDOG_USEC": "2000000"}
    manager = ServiceManager(environ)
    assert manager.interval_s(5.0) == 1.0
    manager.ready("status")
    manager.alive(time.monotonic_ns())
    manager.stopping()
    [line] = capsys.readouterr().err.splitlines()
    assert f"cannot notify the service manager at {tmp_path / 'none'}: No such file" in line


@pytest.mark.parametrize(
    "environ",
    [
        {"WATCHDOG_USEC": "1000000"},
        {"NOTIFY_SOCKET": "@a", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"},
        {"NOTIFY_SOCKET": "@a", "WATCHDOG_USEC": "soon"},
        {"NOTIFY_SOCKET": "@a", "WATCHDOG_USEC": "0"},
    ],
)
def test_no_watchdog(environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a socket, for another process, or without a time there are no signs of life."""
    manager = ServiceManager(environ)
    assert manager.watchdog_s is None
    manager.alive(0)
    assert capsys.readouterr().err == ""
