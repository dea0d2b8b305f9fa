"""Readers only read: an archive directory stays as it is, to the times of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.damage.permissions import without_privileges
from support.journals.raft_recording import record_into, records

import aerotape
from aerotape.catalog.time_index.file import time_index_path
from aerotape.replay.offline.directory import Recording, open_directory
from aerotape.replay.offline.polars_source import scan_polars
from aerotape.tools._cli.main import main

READERS: dict[str, Callable[[Recording], object]] = {
    "messages": lambda r: list(r.messages()),
    "from position": lambda r: list(r.messages(70_000, 90_000)),
    "from time": lambda r: list(r.messages(from_time="2020-01-01T00:00:00Z")),
    "from index": lambda r: list(r.messages(from_index=900)),
    "from asqn": lambda r: list(r.messages(from_asqn=900)),
    "arrow": lambda r: r.to_arrow(),
    "arrow of a journal": lambda r: r.to_arrow(payload="raft-journal", from_index=900),
    "statistics": lambda r: r.stats(),
    "verify": lambda r: r.find_end("crc-32c"),
    "polars": lambda r: scan_polars(r.archive_dir).collect(),
    "copy in an object store": lambda r: list(
        open_directory(f"file://{r.archive_dir}").recording(0).messages(from_index=900)
    ),
} | {
    " ".join(("tool", *command)): lambda r, command=command: main(
        ["tool", str(r.archive_dir), *command]
    )
    for command in (
        ("describe",),
        ("describe-all",),
        ("dump",),
        ("stats", "0"),
        ("count-entries",),
        ("verify", "--dry-run"),
    )
}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Path]:
    """A directory that may not be written, with a raft journal of several terms."""
    directory = tmp_path / "archive"
    directory.mkdir()
    record_into(directory, records(1_000))
    time_index_path(directory, 0).write_bytes(b"damaged")
    paths = [*directory.iterdir(), directory]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield directory
    directory.chmod(0o755)


def listing(directory: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return modes, lengths, times and bytes of all files, and of the directory."""
    found = {}
    for path in (directory, *directory.rglob("*")):
        status = path.stat()
        data = b"" if path.is_dir() else path.read_bytes()
        found[str(path)] = status.st_mode, status.st_mtime_ns, status.st_ctime_ns, data
    return found


@pytest.mark.filterwarnings("ignore:.*time index:RuntimeWarning")
@pytest.mark.parametrize("name", READERS)
def test_a_reader_changes_nothing(archive: Path, name: str) -> None:
    """Without the permission to write, and with it."""
    before = listing(archive)
    with without_privileges():
        result = READERS[name](aerotape.open_directory(archive).recording(0))
    assert result is not None and listing(archive) == before
    archive.chmod(0o755)
    before = listing(archive)
    READERS[name](aerotape.open_directory(archive).recording(0))
    assert listing(archive) == before
