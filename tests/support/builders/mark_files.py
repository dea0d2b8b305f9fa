"""Mark files of archives that do not run: what makes a directory one that is, or was, in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aerotape.catalog.mark.mark_file import MarkFile

SETTINGS: dict[str, Any] = {
    "archive_id": 42,
    "control_channel": "aeron:udp?endpoint=localhost:8010",
    "control_stream_id": 10,
    "local_control_channel": "aeron:ipc",
    "local_control_stream_id": 11,
    "events_channel": "",
    "events_stream_id": 30,
    "aeron_directory": "/dev/shm/aeron-nobody",
}


def acquire(directory: Path, **changes: Any) -> MarkFile:
    """Take a directory for this process, with settings that may be other than those above."""
    return MarkFile.acquire(directory, **(SETTINGS | changes))


@contextmanager
def in_use(directory: Path, **changes: Any) -> Iterator[MarkFile]:
    """Have a directory used by an archive; afterwards it is as one leaves it that was stopped."""
    with acquire(directory, **changes) as mark_file:
        mark_file.ready()
        yield mark_file


def leave(directory: Path, **changes: Any) -> None:
    """Leave the mark file of an archive that was stopped."""
    with in_use(directory, **changes):
        pass
