"""Fixtures that every test may ask for: places of its own, ports, and the Java archive."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import hypothesis
import pytest
from support.jvm import java

from aerotape import _native


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGINT be what it is at a terminal: started in the background, tests find it ignored.

    An example of hypothesis may take long, for the machine may be busy.
    """
    hypothesis.settings.register_profile("patient", hypothesis.settings(deadline=None))
    hypothesis.settings.load_profile("patient")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """How hard the archive is tried; the defaults are those of the continuous integration."""
    parser.addoption(
        "--kill-rounds", type=int, default=4, help="SIGKILLs for each sync level and checksum"
    )
    parser.addoption("--kill-seed", type=int, default=1, help="what their moments are drawn from")
    parser.addoption("--damage-seeds", type=int, help="seeds for each kind of damage")
    parser.addoption("--damage-seed", type=int, default=1, help="the first of them")
    parser.addoption(
        "--power-cuts", type=int, default=2, help="directories drawn for each place of a power cut"
    )
    parser.addoption(
        "--model-examples", type=int, help="sequences of random requests; not the same each time"
    )


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """A path for a media driver's directory, in memory, not there yet, removed afterwards."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    parent = Path(tempfile.mkdtemp(prefix="aerotape-test-", dir=base))
    yield parent / "aeron"
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def driver(aeron_dir: Path) -> Iterator[_native.MediaDriver]:
    """A media driver that outlives the archives."""
    running = _native.MediaDriver.launch(
        {
            "aeron.dir": str(aeron_dir),
            "aeron.threading.mode": "SHARED",
            "aeron.term.buffer.sparse.file": "true",
            "aeron.ipc.term.buffer.length": "65536",
        }
    )
    yield running
    running.close()


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A function that returns a free UDP port of the loopback interface at each call."""
    return java.free_port


@pytest.fixture(scope="session")
def jars() -> dict[str, Path]:
    """The jars by what they are: `aeron-all` and `sbe-all`."""
    return {
        "aeron-all": java.find_jar(java.AERON_ALL),
        "sbe-all": java.find_jar(java.SBE_ALL),
    }


@pytest.fixture
def java_archive(tmp_path: Path, aeron_dir: Path) -> Iterator[java.JavaArchive]:
    """A running Java archive with its own driver, its directory under tmp_path."""
    with java.JavaArchive(tmp_path / "java-archive", aeron_dir) as archive:
        yield archive


@pytest.fixture
def java_client() -> Iterator[Callable[[Path | str], java.JavaClient]]:
    """A function that starts a Java client on a driver's directory; closed afterwards."""
    with ExitStack() as clients:
        yield lambda aeron_dir: clients.enter_context(java.JavaClient(aeron_dir))
