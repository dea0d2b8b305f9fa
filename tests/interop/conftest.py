"""A fixture that starts either archive, so that tests treat both alike."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ARCHIVES
from support.processes import ArchiveProcess

StartArchive = Callable[..., ArchiveProcess]


@pytest.fixture
def start_archive(tmp_path: Path, aeron_dir: Path) -> Iterator[StartArchive]:
    """A function that starts an archive: `start("aerotape" or "java", **options)`.

    Both use tmp_path/archive unless another directory is given, and a separate driver directory.
    """
    with ExitStack() as stack:

        def start(kind: str, **options: Any) -> ArchiveProcess:
            options.setdefault("archive_dir", tmp_path / "archive")
            options.setdefault("aeron_dir", aeron_dir)
            if options.get("driver", "embedded") == "embedded":
                shutil.rmtree(options["aeron_dir"], ignore_errors=True)
            return stack.enter_context(ARCHIVES[kind](**options))

        yield start
