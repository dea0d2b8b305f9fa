"""Fixtures of the recording and replay tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.worker_rig import WorkerRig


@pytest.fixture
def rig(aeron_dir: Path, tmp_path: Path) -> Iterator[WorkerRig]:
    """A driver and a client, and workers on the archive directory tmp_path."""
    rig = WorkerRig(aeron_dir, tmp_path)
    yield rig
    rig.close()
