"""Both archives with low limits, for tests of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.daemon.archives import ARCHIVES
from support.daemon.error_rig import Rig, properties


@pytest.fixture(scope="module")
def rigs(run_archive: Callable[..., Any]) -> Iterator[dict[str, Rig]]:
    """Both archives, with low limits."""
    with ExitStack() as stack:
        made = {}
        for kind in ARCHIVES:
            archive = stack.enter_context(run_archive(kind, properties(kind)))
            made[kind] = Rig(archive)
            stack.callback(made[kind].aeron.close)
        yield made
