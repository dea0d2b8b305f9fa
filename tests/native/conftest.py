"""A client of the native core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aerotape import _native


@pytest.fixture
def client(driver: _native.MediaDriver) -> Iterator[_native.AeronClient]:
    """A client of the test's media driver."""
    connected = _native.AeronClient(driver.aeron_dir, client_name="test")
    yield connected
    connected.close()
