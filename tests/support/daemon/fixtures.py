"""Fixtures of all tests: a running archive daemon, started as a user would, by its command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.daemon.archives import ARCHIVES, KINDS
from support.daemon.daemon import AerotapeArchive
from support.daemon.replication import Pair, Side
from support.damage.full_disk_rig import PROPERTIES as SMALL_DISK_PROPERTIES
from support.damage.full_disk_rig import Rig
from support.damage.small_disk import SmallDisk, small_disk
from support.jvm.java import JavaClient
from support.processes import ArchiveProcess

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
# DEDICATED, as by default: the interoperation tests use SHARED.
PROPERTIES = {
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.archive.threading.mode": "DEDICATED",
}


def daemon(
    archive_dir: Path,
    aeron_dir: Path,
    properties: Mapping[str, str] | None = None,
    **options: Any,
) -> AerotapeArchive:
    """Our archive with the properties of these tests, not started yet."""
    properties = {**PROPERTIES, **(properties or {})}
    return AerotapeArchive(archive_dir, aeron_dir, properties=properties, **options)


@pytest.fixture
def start_daemon(tmp_path: Path, aeron_dir: Path) -> Iterator[Callable[..., AerotapeArchive]]:
    """A function that starts a daemon (its arguments: those of `daemon`) and awaits it."""
    with ExitStack() as stack:

        def start(**options: Any) -> AerotapeArchive:
            options.setdefault("archive_dir", tmp_path / "archive")
            options.setdefault("aeron_dir", aeron_dir)
            return stack.enter_context(daemon(**options))

        yield start


@contextmanager
def running(kind: str, properties: Mapping[str, str] | None = None) -> Iterator[ArchiveProcess]:
    """Our daemon ("aerotape") or the Java archive ("java") in new directories, in memory."""
    properties = {**PROPERTIES, **(properties or {})}
    with (
        tempfile.TemporaryDirectory(prefix="aerotape-test-", dir=IN_MEMORY) as parent,
        ARCHIVES[kind](
            Path(parent, "archive"), Path(parent, "aeron"), properties=properties
        ) as archive,
    ):
        yield archive


@pytest.fixture(scope="session")
def run_archive() -> Callable[..., AbstractContextManager[ArchiveProcess]]:
    """The function `running`, for tests that need other properties."""
    return running


# Both, so that a test shows that our archive behaves as the reference does. One archive serves a
# whole module, because starting it takes longer than most tests; each test uses its own streams and
# recordings.
@pytest.fixture(scope="module", params=KINDS)
def either(request: pytest.FixtureRequest) -> Iterator[ArchiveProcess]:
    """Our daemon, then the Java archive."""
    with running(request.param) as archive:
        yield archive


@pytest.fixture(scope="module")
def client(either: Any) -> Iterator[JavaClient]:
    """A Java client connected to `either`."""
    with JavaClient(either.aeron_dir) as connected:
        connected.connect(either.control_channel)
        yield connected


# ---- replication: an archive of each kind that replicates, one of each to replicate from --------


@pytest.fixture(scope="module")
def sides(run_archive: Any) -> Iterator[Callable[[str, str], Side]]:
    """A function that returns one of four archives: each kind once in each role."""
    with ExitStack() as stack:
        started: dict[tuple[str, str], Side] = {}

        def side(role: str, kind: str) -> Side:
            if (role, kind) not in started:
                archive = stack.enter_context(
                    run_archive(kind, {"aeron.archive.message.timeout": "5s"})
                )
                client = stack.enter_context(JavaClient(archive.aeron_dir))
                client.connect(archive.control_channel)
                started[role, kind] = Side(kind, archive, client)
            return started[role, kind]

        yield side


@pytest.fixture(scope="module", params=KINDS)
def destination(request: pytest.FixtureRequest, sides: Callable[[str, str], Side]) -> Side:
    """The archive that runs the replication."""
    return sides("destination", request.param)


@pytest.fixture(scope="module", params=KINDS)
def pair(
    request: pytest.FixtureRequest, destination: Side, sides: Callable[[str, str], Side]
) -> Pair:
    """All four combinations of an archive and the source it replicates from."""
    return Pair(destination, sides("source", request.param))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of 8 MiB, empty."""
    with small_disk(tmp_path / "disk", 8 << 20) as mounted:
        yield mounted


@pytest.fixture
def start_rig(disk: SmallDisk, aeron_dir: Path) -> Iterator[Callable[..., Rig]]:
    """A function that starts an archive on the small disk (`kind`: aerotape or java)."""
    with ExitStack() as stack:

        def start(kind: str = "aerotape", properties: dict[str, str] | None = None) -> Rig:
            archive_dir = disk.path / "archive"
            given = {**SMALL_DISK_PROPERTIES, **(properties or {})}
            archive = ARCHIVES[kind](archive_dir, aeron_dir, properties=given)
            return Rig(stack.enter_context(archive), stack)

        yield start
