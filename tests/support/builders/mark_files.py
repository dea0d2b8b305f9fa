"""Mark files without a running archive, for directories that are, or were, in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aerotape.catalog.mark.layout import MarkFileHeader
from aerotape.catalog.mark.mark_file import MarkFile

AERON_DIRECTORY = "/dev/shm/aeron-nobody"
SETTINGS: dict[str, Any] = {
    "archive_id": 42,
    "control_channel": "aeron:udp?endpoint=localhost:8010",
    "control_stream_id": 10,
    "local_control_channel": "aeron:ipc",
    "local_control_stream_id": 11,
    "events_channel": "",
    "events_stream_id": 30,
    "aeron_directory": AERON_DIRECTORY,
}


def acquire(directory: Path, **changes: Any) -> MarkFile:
    """Take over a directory for this process, with settings that may differ from the above."""
    options = ("liveness_timeout_ms", "mark_file_dir")
    given = {name: changes.pop(name) for name in options if name in changes}
    mark_file = MarkFile(directory, MarkFileHeader(**(SETTINGS | changes)), **given)
    mark_file.acquire()
    return mark_file


@contextmanager
def in_use(directory: Path, **changes: Any) -> Iterator[MarkFile]:
    """Make a directory look in use; afterwards it looks like that of a stopped archive."""
    with acquire(directory, **changes) as mark_file:
        mark_file.ready()
        yield mark_file


def leave(directory: Path, **changes: Any) -> None:
    """Write the mark file of a stopped archive."""
    with in_use(directory, **changes):
        pass
