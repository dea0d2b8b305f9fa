"""An archive for the tests of ledgers, and clients of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.daemon.archives import ServedArchive, serve

import aerotape


@pytest.fixture(scope="module")
def archive() -> Iterator[ServedArchive]:
    """A running archive, shared by the tests of a module: each has its own ledgers."""
    with serve("aerotape") as served:
        yield served


@pytest.fixture
def client(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    """A client on the media driver of the archive, over IPC."""
    with archive.connect(control_request_channel="aeron:ipc") as connected:
        yield connected


@pytest.fixture
def other(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    """Another client."""
    with archive.connect(control_request_channel="aeron:ipc") as connected:
        yield connected
