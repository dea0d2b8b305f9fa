"""Writes journals in the formats of Zeebe's releases, so that those open them.

Segment files are allocated in full. A record that does not fit into the rest of a segment begins
the next one; in format 8.3 the descriptor of the complete segment then gets the last index and the
offset of the last record. A complete segment gets no more records. The frame of a record is written
last, so that a record that was not written completely reads as the end of the journal.

After a kill between any two changes of files, the journal is one that Zeebe opens: a segment gets
its name when it has its descriptor, and a truncation lowers the broker's flushed index, deletes
segments from the last to the first, resets the last index of the one that remains, and ends its
records, in this order. Each step is on storage before the next one, because of power cuts.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from aerotape.catalog.durability import make_directory, sync_directory, write_at
from aerotape.catalog.no_follow import check_directory, open_no_follow
from aerotape.codecs.raft.descriptor import Descriptor, encode_descriptor
from aerotape.codecs.raft.entries import converted_entry
from aerotape.codecs.raft.formats import LATEST, JournalFormat, journal_format
from aerotape.codecs.raft.record import (
    END_FRAME,
    FRAME_LENGTH,
    NO_ASQN,
    RECORD_FRAME,
    JournalRecord,
    check_asqn,
    check_index,
    decode_record,
    encode_record,
)
from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.codecs.raft_journal.metadata import lower_flushed_index
from aerotape.codecs.raft_journal.segment import SEGMENT_NAME, JournalSegment, check_name
from aerotape.context import Closing
from aerotape.errors import (
    ConfigurationError,
    InvalidChecksumError,
    InvalidIndexError,
    JournalError,
    StorageError,
)

DEFAULT_NAME: Final = "raft-partition-partition-1"
DEFAULT_SEGMENT_SIZE: Final = 128 << 20
MAX_SEGMENT_SIZE: Final = (1 << 31) - 1
_NEW_SUFFIX: Final = ".tmp"
_CLEARED_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _End:
    """The end of records: after the one with an index.

    Attributes:
        segment: the segment.
        next_index: the index after it.
        last_asqn: the last asqn up to there that was not -1.
        last_offset: offset of the segment's last record, bytes; 0 if it has none.
        offset: offset after it, bytes.
    """

    segment: JournalSegment
    next_index: int
    last_asqn: int
    last_offset: int
    offset: int


class JournalWriter(Closing):
    """A journal that is written.

    Attributes:
        directory: the directory.
        name: the journal's name: files are named ``<name>-<id>.log``.
        format: the format of new segments and records.
        segment_size: length of new segment files, bytes.
        first_index: index of the first record.
        next_index: index of the next record.
        last_asqn: the last asqn that was not -1; -1 if there is none.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        name: str = DEFAULT_NAME,
        format: str | JournalFormat = LATEST,
        segment_size: int = DEFAULT_SEGMENT_SIZE,
        first_index: int = 1,
        first_id: int = 1,
    ) -> None:
        """Create a journal, in a directory that is created if it is missing.

        Raises:
            ConfigurationError: the format is not known, the name cannot be that of files, or a
                number is out of its range.
            StorageError: the directory holds a journal of that name, or cannot be written.
        """
        self._begin(directory, name, format, segment_size, first_index)
        try:
            make_directory(self.directory)
            check_directory(self.directory)
            found = [SEGMENT_NAME.fullmatch(path.name) for path in self.directory.iterdir()]
            if any(match and match["name"] == name for match in found):
                raise StorageError(
                    f"{self.directory} holds a journal {name}: choose another directory or name",
                    self.directory,
                )
            self._create_segment(first_id, first_index)
        except OSError as error:
            raise self._storage_error(error) from None

    def _begin(
        self,
        directory: str | Path,
        name: str,
        format: str | JournalFormat,
        segment_size: int,
        first_index: int,
    ) -> None:
        self._descriptor_number = -1
        self.format = format if isinstance(format, JournalFormat) else journal_format(format)
        head = len(encode_descriptor(Descriptor(1, 1, 1), self.format))
        if not head < segment_size <= MAX_SEGMENT_SIZE:
            raise ConfigurationError(
                f"segment size {segment_size}: expected {head + 1} to {MAX_SEGMENT_SIZE} bytes",
                "segment_size",
            )
        if first_index < 1:
            raise ConfigurationError(f"first index {first_index}: expected 1 or more", "index")
        self.directory = Path(directory)
        self.name = check_name(name)
        self.segment_size = segment_size
        self.first_index = self.next_index = first_index
        self.last_asqn = NO_ASQN
        # The last record, if it was written here.
        self._last_record: bytes | None = None

    @classmethod
    def open(
        cls, directory: str | Path, *, name: str = DEFAULT_NAME, format: str | None = None
    ) -> JournalWriter:
        """Open a journal to append to it; it has to have a segment.

        All of it is checked first. Then segments that its last writer created for later use are
        deleted; a journal that is refused is not changed.

        Args:
            directory: the directory.
            name: the journal's name.
            format: of new segments and records. Default: that of the last segment.

        Raises:
            JournalError: it is damaged, or has no segment yet.
            StorageError: there is no journal, or it cannot be read or written.
        """
        self = cls.__new__(cls)
        journal = RaftJournal.open(directory, name)
        end = _end(journal)
        if end is None:
            raise JournalError(f"{directory}: journal {name} has no segment yet", directory)
        last = end.segment.descriptor
        self._begin(
            directory,
            name,
            last.format if format is None else format,
            last.max_segment_size,
            journal.first_index,
        )
        try:
            self._continue(end, open_no_follow(end.segment.path, os.O_RDWR))
            for file in reversed(journal.unused()):
                file.path.unlink(missing_ok=True)
        except OSError as error:
            self._abandon()
            raise self._storage_error(error) from None
        return self

    def append(self, data: bytes, asqn: int = NO_ASQN) -> int:
        """Append a record with the next index, and return that index.

        Raises:
            InvalidAsqnError: the asqn is neither -1 nor above the last one.
            CodecError: the asqn is out of range.
            ConfigurationError: the record is larger than a segment.
            StorageError: it cannot be written.
        """
        index = self.next_index
        self.append_record(index, asqn, data)
        return index

    def append_record(
        self, index: int, asqn: int, data: bytes, checksum: int | None = None
    ) -> None:
        """Append a record; its index must be the next one, and a checksum given the right one.

        Raises:
            InvalidIndexError: another index is next.
            InvalidChecksumError: the record built here has another checksum.
            others: as for `append`.
        """
        check_index(index, self.next_index)
        last_asqn = check_asqn(asqn, self.last_asqn, index)
        record = encode_record(index, asqn, data, self.format.journal_version)
        if checksum is not None:
            _check_checksum(record, index, checksum)
        self._write(record)
        self.last_asqn = last_asqn

    def append_bytes(self, record: bytes) -> None:
        """Append a whole record, frame included; one of another format is converted.

        Raises:
            JournalError: the bytes are not one valid record.
            CodecError: its raft entry cannot be written in this format.
            others: as for `append_record`.
        """
        decoded, converted = converted_record(record, self.format)
        check_index(decoded.index, self.next_index)
        last_asqn = check_asqn(decoded.asqn, self.last_asqn, decoded.index)
        self._write(converted)
        self.last_asqn = last_asqn

    def read(self, index: int) -> JournalRecord:
        """Return the record with an index (InvalidIndexError: the journal does not hold it)."""
        if index == self.next_index - 1 and self._last_record is not None:
            written = decode_record(self._last_record)
            assert written is not None
            return written
        found = next(self._journal().records(index), None)
        decoded = None if found is None or found.index != index else decode_record(found.record)
        if decoded is None:
            raise InvalidIndexError(f"the journal holds no record {index}", index=index)
        return decoded

    def check(self, index: int, asqn: int, data: bytes, checksum: int, *, after: int) -> None:
        """Check that a record can be appended after the one with index `after`.

        Raises:
            InvalidIndexError, InvalidAsqnError, InvalidChecksumError: it cannot.
            ConfigurationError: the record is larger than a segment.
        """
        check_index(index, after + 1)
        last_asqn = self.last_asqn
        if after + 1 != self.next_index:
            end = _end(self._journal(), after)
            last_asqn = NO_ASQN if end is None else end.last_asqn
        check_asqn(asqn, last_asqn, index)
        record = encode_record(index, asqn, data, self.format.journal_version)
        _check_checksum(record, index, checksum)
        check_fits(index, len(record), self.segment_size, self.format)

    def delete_after(self, index: int) -> None:
        """Delete the records after an index; when it returns, that is on storage.

        All of the journal is checked first. If a broker has flushed later records, the flushed
        index in its metadata is lowered.

        Raises:
            InvalidIndexError: the index is below the first one less 1.
            JournalError: the journal is damaged; nothing was changed.
            StorageError: a file cannot be written; the journal has to be opened again.
        """
        if index >= self.next_index - 1:
            return
        if index < self.first_index - 1:
            raise InvalidIndexError(
                f"records after {index} cannot be deleted: the journal begins with "
                f"{self.first_index}",
                index=index,
            )
        self._check_open()
        journal = self._journal()
        end = _end(journal, index)
        assert end is not None
        later = [each.path for each in journal.segments() if each.id > end.segment.id]
        later += [each.path for each in journal.unused()]
        try:
            number = open_no_follow(end.segment.path, os.O_RDWR)
            self._abandon()
            self._continue(end, number)
            lower_flushed_index(self.directory, self.name, index)
            for path in reversed(later):
                path.unlink(missing_ok=True)
            sync_directory(self.directory)
            if self._descriptor.last_index:
                self._store_last(0, 0)
                os.fdatasync(number)
            self._end_records()
        except OSError as error:
            self._abandon()
            raise self._storage_error(error) from None

    def _end_records(self) -> None:
        """End the records of the last segment, and clear all that follows.

        A record of before would be one of the journal again, if it were where the next one ends
        and a power cut left only that one.
        """
        number, begin = self._descriptor_number, self._end
        if begin < self._descriptor.max_segment_size:
            write_at(number, bytes([END_FRAME]), begin)
            os.fdatasync(number)
        while found := os.pread(number, _CLEARED_AT_ONCE, begin):
            if found.strip(b"\0"):
                write_at(number, bytes(len(found)), begin)
            begin += len(found)
        os.fdatasync(number)

    def flush(self) -> None:
        """Force what was written to storage (StorageError)."""
        self._check_open()
        try:
            os.fdatasync(self._descriptor_number)
        except OSError as error:
            raise self._storage_error(error) from None

    def close(self) -> None:
        """Flush and close the journal (StorageError). Idempotent."""
        if self._descriptor_number >= 0:
            try:
                self.flush()
            finally:
                self._abandon()

    def _abandon(self) -> None:
        """Close the last segment's file."""
        if self._descriptor_number >= 0:
            os.close(self._descriptor_number)
            self._descriptor_number = -1

    def _check_open(self) -> None:
        if self._descriptor_number < 0:
            raise StorageError(
                f"journal {self.name} in {self.directory} is closed: open it again", self.directory
            )

    def _journal(self) -> RaftJournal:
        return RaftJournal.open(self.directory, self.name)

    def _continue(self, end: _End, number: int) -> None:
        """Append to a segment, whose file is open."""
        self.next_index, self.last_asqn = end.next_index, end.last_asqn
        self._descriptor_number = number
        self._descriptor = end.segment.descriptor
        self._last_offset, self._end = end.last_offset, end.offset
        self._last_record = None

    def _create_segment(self, segment_id: int, index: int) -> None:
        """Create a segment; it is on storage, with its descriptor, when it gets its name."""
        descriptor = Descriptor(segment_id, index, self.segment_size)
        encoded = encode_descriptor(descriptor, self.format)
        path = self.directory / f"{self.name}-{segment_id}.log"
        new = path.with_name(path.name + _NEW_SUFFIX)
        number = open_no_follow(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            os.posix_fallocate(number, 0, self.segment_size)
            write_at(number, encoded, 0)
            os.fsync(number)
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, f"{path.name} exists already")
            new.rename(path)
        except BaseException:
            os.close(number)
            with suppress(OSError):
                new.unlink()
            raise
        self._abandon()
        self._descriptor_number = number
        self._descriptor = replace(
            descriptor,
            version=self.format.descriptor_version,
            schema_version=self.format.journal_version,
            length=len(encoded),
        )
        self._end = len(encoded)
        self._last_offset = 0
        sync_directory(self.directory)

    def _write(self, record: bytes) -> None:
        self._check_open()
        try:
            is_full = self._end + len(record) > self._descriptor.max_segment_size
            if is_full or self._descriptor.last_index:
                self._roll(len(record))
            number, begin = self._descriptor_number, self._end
            end = begin + len(record)
            has_next = end < self._descriptor.max_segment_size
            rest = record[FRAME_LENGTH:] + bytes([END_FRAME]) * has_next
            write_at(number, rest, begin + FRAME_LENGTH)
            write_at(number, bytes([RECORD_FRAME]), begin)
        except OSError as error:
            raise self._storage_error(error) from None
        self._last_offset = begin
        self._last_record = record
        self._end = end
        self.next_index += 1

    def _roll(self, length: int) -> None:
        """Complete the segment and begin the next one."""
        check_fits(self.next_index, length, self.segment_size, self.format)
        os.fdatasync(self._descriptor_number)
        if self._last_offset and not self._descriptor.last_index:
            self._store_last(self.next_index - 1, self._last_offset)
        self._create_segment(self._descriptor.id + 1, self.next_index)

    def _store_last(self, index: int, offset: int) -> None:
        """Store the last index and offset in the descriptor, where its format has them."""
        self._descriptor = replace(self._descriptor, last_index=index, last_position=offset)
        encoded = encode_descriptor(self._descriptor, self._descriptor.format)
        if len(encoded) == self._descriptor.length:
            write_at(self._descriptor_number, encoded, 0)

    def _storage_error(self, error: OSError) -> StorageError:
        return StorageError(
            f"cannot write journal {self.name} in {self.directory}: {error.strerror}",
            self.directory,
        )


def _end(journal: RaftJournal, index: int | None = None) -> _End | None:
    """Return the end of the record with an index, or of the last one; None without segments.

    All records are read, so that all damage is found (JournalError).
    """
    last: tuple[Path, int, int] | None = None
    last_asqn, next_index = NO_ASQN, journal.first_index
    for columns in journal.batches():
        count = columns.rows
        if index is not None:
            count = max(0, min(count, index + 1 - columns.index[0]))
        if count:
            offset = columns.offset[count - 1]
            last = columns.segment, offset, offset + columns.length[count - 1]
            last_asqn = max(last_asqn, max(columns.asqn[:count]))
            next_index = columns.index[count - 1] + 1
    segments = journal.segments()
    if not segments:
        return None
    if index is not None:
        segments = [each for each in segments if each.descriptor.index <= index] or segments[:1]
    segment = segments[-1]
    if last is not None and last[0] == segment.path:
        return _End(segment, next_index, last_asqn, *last[1:])
    return _End(segment, next_index, last_asqn, 0, segment.descriptor.length)


def converted_record(
    record: bytes, journal_format: JournalFormat | None
) -> tuple[JournalRecord, bytes]:
    """Decode a whole record, frame included, and return it in a format, too; None: as it is.

    Raises:
        JournalError: the bytes are not one valid record.
        CodecError: its raft entry cannot be written in this format.
    """
    decoded = decode_record(record)
    if decoded is None or decoded.length != len(record):
        raise JournalError(f"{len(record)} bytes are not one record of a journal")
    if journal_format is None:
        return decoded, record
    data = converted_entry(decoded.data, journal_format.raft_version)
    version = journal_format.journal_version
    if decoded.version == version and data == decoded.data:
        return decoded, record
    return decoded, encode_record(decoded.index, decoded.asqn, data, version)


def check_fits(index: int, length: int, segment_size: int, journal_format: JournalFormat) -> None:
    """Check that a record is not longer than a segment (ConfigurationError); lengths in bytes."""
    room = segment_size - len(encode_descriptor(Descriptor(1, 1, 1), journal_format))
    if length > room:
        raise ConfigurationError(
            f"record {index} has {length} bytes, and a segment of {segment_size} bytes has room "
            f"for {room}: use larger segments",
            "segment_size",
        )


def _check_checksum(record: bytes, index: int, checksum: int) -> None:
    decoded = decode_record(record)
    assert decoded is not None
    if decoded.checksum != checksum:
        raise InvalidChecksumError(
            f"record {index}: the checksum given is {checksum}, but that of the record "
            f"{decoded.checksum}",
            index=index,
        )
