"""Random requests, valid and invalid, to both archives, compared with a model of the archive.

The continuous integration always runs the same requests. For others, and more of them::

    pytest tests/archive/test_model.py --seeds 30
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from support.daemon.archives import ARCHIVES, KINDS
from support.model.archive_model import Served, WholeArchiveModel

EXAMPLES = 15
PROPERTIES = {
    "aeron.archive.max.concurrent.recordings": "200",
    "aeron.archive.max.concurrent.replays": "200",
    "aeron.archive.low.storage.space.threshold": "1m",
}


@pytest.mark.parametrize("kind", KINDS)
def test_archives_behave_as_the_model(kind: str, seeds: range) -> None:
    """They do so for any requests, in any order, and after restarts and crashes."""
    with tempfile.TemporaryDirectory(prefix="aerotape-model-", dir="/dev/shm") as folder:
        served = Served(
            lambda: ARCHIVES[kind](
                Path(folder, "archive"), Path(folder, "aeron"), properties=PROPERTIES
            )
        )

        class Model(WholeArchiveModel):
            holds_replays = makes_next_segments = kind == "aerotape"

        Model.served = served
        try:
            run_state_machine_as_test(
                Model,
                settings=settings(
                    max_examples=EXAMPLES * len(seeds),
                    stateful_step_count=40,
                    derandomize=len(seeds) == 1,
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
