"""Archives that the web service is tried with, beside those of `tests/tools`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support import browser as browsers
from support.daemon.archives import serve
from support.daemon.command_line import CommandLine


@pytest.fixture(scope="package")
def own() -> Iterator[CommandLine]:
    """Our archive, for what the Java archive does not have."""
    with serve("aerotape") as served:
        yield CommandLine(served)


@pytest.fixture(scope="package")
def driver() -> Iterator[Any]:
    """A browser."""
    with browsers.browser() as started:
        yield started


@pytest.fixture
def page(driver: Any) -> Iterator[Any]:
    """A browser, without a page."""
    yield driver
    driver.get("about:blank")
    driver.get_log("browser")
