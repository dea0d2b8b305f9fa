"""An archive for each module, and stores of all kinds, whose servers are started once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive, serve
from support.stores.cassandra import CassandraServer
from support.stores.postgresql import PostgresqlServer

import aerotape

NAMESPACES = itertools.count()


@pytest.fixture(scope="module")
def archive() -> Iterator[ServedArchive]:
    """A running archive."""
    with serve("aerotape") as served:
        yield served


@pytest.fixture(scope="module")
def client(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    """A client of the archive."""
    with archive.connect() as connected:
        yield connected


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A PostgreSQL server."""
    with PostgresqlServer() as server:
        yield server


@pytest.fixture(scope="session")
def cassandra_server() -> Iterator[CassandraServer]:
    """A Cassandra node."""
    with CassandraServer() as server:
        yield server


@pytest.fixture(
    params=[
        "sqlite",
        "postgresql",
        pytest.param("cassandra", marks=(pytest.mark.jvm, pytest.mark.slow)),
    ]
)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """A function that returns the URL of a new, empty store with this query."""
    namespaces: list[str] = []

    def url(query: str = "") -> str:
        namespaces.append(f"test_{next(NAMESPACES)}")
        options = f"?namespace={namespaces[-1]}&{query}"
        if request.param == "sqlite":
            return f"sqlite:{tmp_path / 'entities.db'}{options}"
        server = request.getfixturevalue(f"{request.param}_server")
        return f"{server.url}{options}"

    yield url
    if request.param == "cassandra":  # its tables take memory, and time at each schema change
        request.getfixturevalue("cassandra_server").drop(namespaces)
