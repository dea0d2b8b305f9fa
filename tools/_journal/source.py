"""A journal as the source of an import: its records, each with the segment that it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aerotape.codecs.raft.origin import Origin
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.segment import JournalSegment
from aerotape.errors import JournalError

Progress = Callable[[int], object]
Append = Callable[[memoryview, int], object]
"""Appends a message, given its reserved value."""


@dataclass(slots=True)
class Copied:
    """The records that were copied.

    Attributes:
        records: their number.
        first_index: index of the first one.
        last_index: index of the last one.
        damage: why the records after the last one were not read; None at the journal's end.
    """

    records: int = 0
    first_index: int | None = None
    last_index: int | None = None
    damage: JournalError | None = None


class JournalSource:
    """Reads a journal for an import.

    Attributes:
        journal: the journal.
        length: of its segment files, bytes.
    """

    def __init__(self, directory: Path, name: str | None) -> None:
        """Open the journal (JournalError, ConfigurationError, StorageError)."""
        self.journal = RaftJournal.open(directory, name)
        self._segments = {segment.path: segment for segment in self.journal.segments()}
        self.length = sum(segment.limit for segment in self._segments.values())
        last_id = max((segment.id for segment in self._segments.values()), default=0)
        ids = [file.id for file in self.journal.unused()]
        self._unused = 0
        while last_id + self._unused + 1 in ids:
            self._unused += 1

    def copy(self, append: Append, progress: Progress) -> Copied:
        """Append each record up to the end, or to the first that is damaged.

        Args:
            append: takes a record and its reserved value.
            progress: called with the number of bytes read.

        Raises:
            JournalError: the journal is damaged before its first record.
        """
        copied = Copied()
        try:
            for payload, index, origin, done in self._records():
                append(payload, origin)
                copied.records += 1
                if copied.first_index is None:
                    copied.first_index = index
                copied.last_index = index
                progress(done)
        except JournalError as error:
            if not copied.records:
                raise
            copied.damage = error
        return copied

    def _records(self) -> Iterator[tuple[memoryview, int, int, int]]:
        """Yield each record, its index and origin, and the bytes read so far."""
        before = dict.fromkeys(self._segments, 0)
        total = 0
        for path, segment in self._segments.items():
            before[path] = total
            total += segment.limit
        for columns in self.journal.batches(with_data=True):
            segment = self._segments[columns.segment]
            origin = self._origin(segment).encode()
            data, begin = memoryview(columns.data), 0
            offset = before[columns.segment] + columns.offset[0]
            for index, length in zip(columns.index, columns.length, strict=True):
                end = begin + length
                yield data[begin:end], index, origin, offset + end
                begin = end

    def _origin(self, segment: JournalSegment) -> Origin:
        descriptor = segment.descriptor
        is_last = segment.path == self.journal.segments()[-1].path
        return Origin(
            segment.id,
            descriptor.max_segment_size,
            descriptor.format,
            bool(descriptor.last_position),
            self._unused if is_last else 0,
        )
