"""A running archive, the Java one or ours, for commands that are run as a user runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.daemon.archives import KINDS, serve
from support.daemon.command_line import CommandLine

import aerotape


@pytest.fixture(scope="package", params=KINDS)
def cli(request: pytest.FixtureRequest) -> Iterator[CommandLine]:
    """The command line, with a running archive that all tests of commands share."""
    with serve(request.param) as served:
        yield CommandLine(served)


@pytest.fixture
def client(cli: CommandLine) -> Iterator[aerotape.ArchiveClient]:
    """A client of the archive that the commands connect to."""
    with cli.archive.connect() as connected:
        yield connected
