"""Segment files of an exported journal, as they were when the journal was imported."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from aerotape.catalog.durability import write_at
from aerotape.catalog.no_follow import open_no_follow
from aerotape.codecs.raft.descriptor import Descriptor, encode_descriptor
from aerotape.codecs.raft.origin import Origin
from aerotape.codecs.raft.record import check_index, decode_record
from aerotape.codecs.raft_journal.segment import check_name
from aerotape.context import Closing
from aerotape.errors import ConfigurationError, JournalError

_BUFFER_LENGTH = 1 << 20


class SegmentLayout:
    """The places of records in the segments that they were imported from.

    Attributes:
        origin: the segment of the last record; None before the first.
        end: the offset after it, bytes.
    """

    def __init__(self) -> None:
        self.origin: Origin | None = None
        self.end = 0

    def place(self, index: int, length: int, origin: Origin | None) -> int:
        """Return the offset of the next record in its segment, bytes.

        Raises:
            ConfigurationError: its segment is not known, precedes the last record's, or has no
                room for it.
        """
        why = ""
        if origin is None:
            why = "it was not imported from a journal"
        elif self.origin is None or origin.segment_id > self.origin.segment_id:
            self.end = len(encode_descriptor(Descriptor(1, 1, 1), origin.format))
        elif origin.segment_id < self.origin.segment_id:
            why = f"its segment {origin.segment_id} follows segment {self.origin.segment_id}"
        if origin is None or why or self.end + length > origin.segment_size:
            raise ConfigurationError(
                f"record {index} has no place in the segments of the imported journal: "
                f"{why or 'its segment is full'}; give --segment-size, to divide the records again",
                "--segment-size",
            )
        self.origin = origin
        self.end += length
        return self.end - length


class RestoredSegments(Closing):
    """Writes records into segment files with the ids, lengths and descriptors of their origin.

    Bytes after a segment's last record are zero.
    """

    def __init__(self, directory: Path, name: str) -> None:
        """Write into a directory (ConfigurationError: the name cannot be that of files)."""
        self._directory = directory
        self._name = check_name(name)
        self._file = -1
        self._layout = SegmentLayout()
        self._origin: Origin | None = None
        self._descriptor = Descriptor(0, 0, 0)
        self._buffer = bytearray()
        self._written_to = 0
        self._last_offset = 0
        self._next_index: int | None = None

    def append(self, record: bytes, origin: Origin | None) -> None:
        """Append a record.

        Raises:
            JournalError: it is damaged, or not the next one.
            ConfigurationError: it has no place in its segment.
            OSError: a file cannot be written.
        """
        decoded = decode_record(record)
        if decoded is None or decoded.length != len(record):
            raise JournalError(f"a message of {len(record)} bytes is not one record of a journal")
        if self._next_index is not None:
            check_index(decoded.index, self._next_index)
        offset = self._layout.place(decoded.index, len(record), origin)
        assert origin is not None
        if self._origin is None or origin.segment_id != self._origin.segment_id:
            self._finish_segment()
            self._begin(origin, decoded.index)
        self._buffer += record
        self._last_offset = offset
        self._next_index = decoded.index + 1
        if len(self._buffer) >= _BUFFER_LENGTH:
            self._flush()

    def _begin(self, origin: Origin, index: int) -> None:
        self._create(origin.segment_id, origin.segment_size)
        self._origin = origin
        self._descriptor = Descriptor(origin.segment_id, index, origin.segment_size)
        self._buffer = bytearray(encode_descriptor(self._descriptor, origin.format))
        self._written_to = 0

    def _create(self, segment_id: int, length: int) -> None:
        path = self._directory / f"{self._name}-{segment_id}.log"
        self._file = open_no_follow(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.ftruncate(self._file, length)

    def _flush(self) -> None:
        self._written_to = write_at(self._file, memoryview(self._buffer), self._written_to)
        self._buffer = bytearray()

    def _finish_segment(self) -> None:
        if self._origin is None or self._next_index is None:
            return
        self._flush()
        if self._origin.is_complete:
            complete = replace(
                self._descriptor,
                last_index=self._next_index - 1,
                last_position=self._last_offset,
            )
            os.pwrite(self._file, encode_descriptor(complete, self._origin.format), 0)
        self._sync_file()

    def _sync_file(self) -> None:
        os.fsync(self._file)
        self.close()

    def finish(self) -> None:
        """Complete the last segment, and create the files after it that had no segment yet."""
        self._finish_segment()
        if self._origin is not None:
            for number in range(1, self._origin.unused + 1):
                self._create(self._origin.segment_id + number, self._origin.segment_size)
                self._sync_file()

    def close(self) -> None:
        """Close the open file. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
