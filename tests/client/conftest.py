"""Fixtures that run every test of a request against the Java archive and ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve

import aerotape


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """A running archive, shared by the tests of a module: each uses its own stream ids."""
    with serve(request.param) as served:
        yield served


@pytest.fixture
def client(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    """A client of that archive, over UDP."""
    with archive.connect() as connected:
        yield connected


@pytest.fixture
def impatient(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    """A client of that archive that waits two seconds for what it waits five seconds otherwise."""
    with archive.connect(timeout_ns=2_000_000_000) as connected:
        yield connected
