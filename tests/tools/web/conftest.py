"""Archives that the web service is tried with, beside those of `tests/tools`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine


@pytest.fixture(scope="package")
def own() -> Iterator[CommandLine]:
    """Our archive, for what the Java archive does not have."""
    with serve("aerotape") as served:
        yield CommandLine(served)
