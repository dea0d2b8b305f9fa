"""Recordings without a stop position after a crash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders.crashed_recording import Crashed


@pytest.fixture
def crashed(tmp_path: Path) -> Iterator[Crashed]:
    made = Crashed(tmp_path)
    yield made
    made.catalog.close()


@pytest.fixture
def summed(tmp_path: Path) -> Iterator[Crashed]:
    made = Crashed(tmp_path, "crc-32")
    yield made
    made.catalog.close()
