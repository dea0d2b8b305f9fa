"""Fixtures for all tests (directories, ports, the Java archive), markers and options."""

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

pytest_plugins = ["support.daemon.fixtures"]
# A test that uses one of these fixtures has the marker.
_MARKERS = {
    "jars": "jvm",
    "rigs": "jvm",
    "java_archive": "jvm",
    "java_client": "jvm",
    "java_codecs": "jvm",
    "sides": "jvm",
    "spark": "spark",
    "disk": "root",
}
_LONG = frozenset({"slow", "spark", "crash"})
_PATH = os.environ["PATH"]
_IN_MEMORY = Path("/dev/shm")
_MIN_MEMORY_BYTES = 4 << 30
_NO_JAVA = Path(__file__).parent / "support" / "jvm" / "none"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, before `-m` selects; begin with the files that take long.

    Several processes then end at about the same time: none runs the last long file alone.
    """
    long = set()
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in _MARKERS:
                item.add_marker(_MARKERS[fixture])
        if not _LONG.isdisjoint(marker.name for marker in item.iter_markers()):
            long.add(item.path)
    items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need root; make `java` fail in tests not marked `jvm` or `spark`."""
    markers = {marker.name for marker in item.iter_markers()}
    if "root" in markers and os.geteuid() != 0:
        pytest.skip("needs root")
    os.environ["PATH"] = _PATH if markers & {"jvm", "spark"} else f"{_NO_JAVA}:{_PATH}"


def pytest_configure(config: pytest.Config) -> None:
    """Restore the defaults of SIGINT, which a shell's background jobs ignore, and of SIGTERM.

    SIGHUP may stay ignored, so that a run under nohup outlives its terminal: a test that sends it
    sets what its process inherits (`support.processes.inherited`).

    Examples of hypothesis are the same in each run, and others in each one with more `--seeds`:
    a run fails for what was changed, not by chance. They have no time limit, because the machine
    may be busy.

    A difference is explained as on a terminal, also in a continuous integration: there pytest
    compares all lines of both sides, which takes minutes for directories of some MiB. Tests of
    crashes compare many of them, and expect some to differ.

    Directories of tests are in memory where there is enough: most of them have archives, and a
    disk takes longer to store what is forced to it than these tests take. `--basetemp` and
    PYTEST_DEBUG_TEMPROOT choose another place.
    """
    for name in ("CI", "BUILD_NUMBER"):
        os.environ.pop(name, None)
    if _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free >= _MIN_MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))
    hypothesis.settings.register_profile(
        "tests",
        derandomize=config.getoption("--seeds") == 1,
        database=None,
        deadline=None,
        print_blob=True,
    )
    hypothesis.settings.load_profile("tests")
    for number, default in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tests with random input, and of those that make pictures."""
    parser.addoption(
        "--seeds",
        type=int,
        default=1,
        help="seeds for each kind of damage, for kills, power cuts and the model of the archive",
    )
    parser.addoption("--seed", type=int, default=1, help="the first of them")
    parser.addoption(
        "--screenshots", type=Path, help="write the pictures of docs/web.md into this folder"
    )


@pytest.fixture(scope="session")
def seeds(pytestconfig: pytest.Config) -> range:
    """The seeds for random input; more seeds run more tests than the continuous integration."""
    first: int = pytestconfig.getoption("--seed")
    return range(first, first + pytestconfig.getoption("--seeds"))


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """A path for a media driver's directory, in memory, removed afterwards."""
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
    """A function that returns another free UDP port of the loopback interface at each call."""
    return java.free_port


@pytest.fixture(scope="session")
def jars() -> dict[str, Path]:
    """The jar of sbe-tool, `sbe-all`."""
    return {"sbe-all": java.find_jar(java.SBE_ALL)}


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
