"""Journals that `aerotape.codecs.raft_journal.writer` wrote, for tests of what reads journals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.writer import JournalWriter
from support.journals.raft_recording import records

SEGMENT_SIZE = 65_536


def write_journal(
    directory: Path,
    journal_format: str = "8.3",
    found: Iterable[tuple[int, int, bytes]] | None = None,
    *,
    first_index: int = 1,
    unused: int = 0,
) -> list[bytes]:
    """Write a journal of about nine segments; return its records.

    Args:
        found: index, asqn and bytes of its records, by default 800 of all types.
        unused: number of files after the last segment, as newer releases create them in advance.
    """
    with JournalWriter(
        directory, format=journal_format, segment_size=SEGMENT_SIZE, first_index=first_index
    ) as writer:
        for _, _, record in records(800, first_index=first_index) if found is None else found:
            writer.append_bytes(record)
    count = len(list(directory.iterdir()))
    for number in range(count + 1, count + 1 + unused):
        path = directory / f"raft-partition-partition-1-{number}.log"
        path.write_bytes(bytes(SEGMENT_SIZE))

    return [each.record for each in RaftJournal.open(directory).records()]


def files(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
