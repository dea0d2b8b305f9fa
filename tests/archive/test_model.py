"""Random requests, valid and not, against a model of the archive: Java's and ours.

The continuous integration always draws the same ones. For others, and more of them::

    pytest tests/archive/test_model.py --model-examples 500
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from support.daemon.daemon import AerotapeArchive
from support.jvm.java import JavaArchive
from support.model.archive_model import Served, WholeArchiveModel

EXAMPLES = 30
PROPERTIES = {
    "aeron.archive.max.concurrent.recordings": "200",
    "aeron.archive.max.concurrent.replays": "200",
    "aeron.archive.low.storage.space.threshold": "1m",
}


@pytest.mark.parametrize("kind", [AerotapeArchive, JavaArchive])
def test_archives_do_as_the_model(kind: Any, request: pytest.FixtureRequest) -> None:
    """For any requests, in any order, and after restarts and crashes."""
    examples = request.config.getoption("--model-examples")
    with tempfile.TemporaryDirectory(prefix="aerotape-model-", dir="/dev/shm") as folder:
        served = Served(
            lambda: kind(Path(folder, "archive"), Path(folder, "aeron"), properties=PROPERTIES)
        )

        class Model(WholeArchiveModel):
            holds_replays = makes_next_segments = kind is AerotapeArchive

        Model.served = served
        try:
            run_state_machine_as_test(
                Model,
                settings=settings(
                    max_examples=examples or EXAMPLES,
                    stateful_step_count=40,
                    derandomize=examples is None,
                    deadline=None,
                    database=None,
                    print_blob=True,
                    # Shrinking takes minutes, and failures may depend on time.
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            served.close()
