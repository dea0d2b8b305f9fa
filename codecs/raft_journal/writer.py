"""Writes journals in the formats of Zeebe's releases, so that those open them.

Segment files are allocated in full. A record that does not fit into the rest of a segment begins
the next one; in format 8.3 the descriptor of the complete segment then gets the last index and the
offset of the last record. The frame of a record is written last, so that a record that was not
written completely reads as the end of the journal.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from aerotape.catalog.durability import make_directory, sync_directory
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
from aerotape.codecs.raft_journal.directory import (
    SEGMENT_NAME,
    RaftJournal,
    RecordColumns,
    check_name,
    segment_paths,
)
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

        Segments that its last writer created for later use are deleted.

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
        if not journal.segments():
            raise JournalError(f"{directory}: journal {name} has no segment yet", directory)
        last = journal.segments()[-1].descriptor
        self._begin(
            directory,
            name,
            last.format if format is None else format,
            last.max_segment_size,
            journal.first_index,
        )
        try:
            for file in segment_paths(directory, name):
                if file.id > journal.segments()[-1].id:
                    file.path.unlink()
        except OSError as error:
            raise self._storage_error(error) from None
        self._continue(journal)
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
        """
        check_index(index, after + 1)
        last_asqn = self.last_asqn if after + 1 == self.next_index else self._last_asqn(after)
        check_asqn(asqn, last_asqn, index)
        record = encode_record(index, asqn, data, self.format.journal_version)
        _check_checksum(record, index, checksum)

    def delete_after(self, index: int) -> None:
        """Delete the records after an index.

        Raises:
            InvalidIndexError: the index is below the first one less 1.
            StorageError: a file cannot be written.
        """
        if index >= self.next_index - 1:
            return
        if index < self.first_index - 1:
            raise InvalidIndexError(
                f"records after {index} cannot be deleted: the journal begins with "
                f"{self.first_index}",
                index=index,
            )
        journal = self._journal()
        segments = journal.segments()
        kept = [each for each in segments if each.descriptor.index <= index] or segments[:1]
        first_deleted = next(journal.records(index + 1))
        try:
            os.close(self._descriptor_number)
            self._descriptor_number = -1
            for segment in reversed(segments[len(kept) :]):
                segment.path.unlink()
            self._open_last(kept[-1].path, kept[-1].descriptor)
            if first_deleted.segment == kept[-1].path:
                os.pwrite(self._descriptor_number, bytes([END_FRAME]), first_deleted.offset)
            self._store_last(0, 0)
            sync_directory(self.directory)
        except OSError as error:
            raise self._storage_error(error) from None
        self._continue(self._journal())

    def flush(self) -> None:
        """Force what was written to storage (StorageError)."""
        try:
            os.fdatasync(self._descriptor_number)
            sync_directory(self.directory)
        except OSError as error:
            raise self._storage_error(error) from None

    def close(self) -> None:
        """Flush and close the journal (StorageError). Idempotent."""
        if self._descriptor_number >= 0:
            try:
                self.flush()
            finally:
                os.close(self._descriptor_number)
                self._descriptor_number = -1

    def _journal(self) -> RaftJournal:
        return RaftJournal.open(self.directory, self.name)

    def _last_asqn(self, index: int) -> int:
        """The last asqn up to an index."""
        last = NO_ASQN
        for columns in self._journal().batches():
            for found, asqn in zip(columns.index, columns.asqn, strict=True):
                if found > index:
                    return last
                last = max(last, asqn)
        return last

    def _continue(self, journal: RaftJournal) -> None:
        """Append after the last record of the journal."""
        last: RecordColumns | None = None
        self.last_asqn = NO_ASQN
        self._last_record = None
        for last in journal.batches():
            self.last_asqn = max(self.last_asqn, max(last.asqn))
        segment = journal.segments()[-1]
        if self._descriptor_number < 0:
            try:
                self._open_last(segment.path, segment.descriptor)
            except OSError as error:
                raise self._storage_error(error) from None
        self.next_index = segment.descriptor.index
        self._end = segment.descriptor.length
        if last is not None and last.segment == segment.path:
            self.next_index = last.index[-1] + 1
            self._last_offset = last.offset[-1]
            self._end = self._last_offset + last.length[-1]

    def _open_last(self, path: Path, descriptor: Descriptor) -> None:
        self._descriptor_number = open_no_follow(path, os.O_RDWR)
        self._descriptor = descriptor
        self._last_offset = 0

    def _create_segment(self, segment_id: int, index: int) -> None:
        path = self.directory / f"{self.name}-{segment_id}.log"
        number = open_no_follow(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            os.posix_fallocate(number, 0, self.segment_size)
            descriptor = Descriptor(segment_id, index, self.segment_size)
            encoded = encode_descriptor(descriptor, self.format)
            os.pwrite(number, encoded, 0)
        except BaseException:
            os.close(number)
            path.unlink()
            raise
        self._descriptor_number = number
        self._descriptor = replace(
            descriptor,
            version=self.format.descriptor_version,
            schema_version=self.format.journal_version,
            length=len(encoded),
        )
        self._end = len(encoded)
        self._last_offset = 0

    def _write(self, record: bytes) -> None:
        try:
            if self._end + len(record) > self._descriptor.max_segment_size:
                self._roll(len(record))
            number, begin = self._descriptor_number, self._end
            end = begin + len(record)
            has_next = end < self._descriptor.max_segment_size
            rest = record[FRAME_LENGTH:] + bytes([END_FRAME]) * has_next
            os.pwrite(number, rest, begin + FRAME_LENGTH)
            os.pwrite(number, bytes([RECORD_FRAME]), begin)
        except OSError as error:
            raise self._storage_error(error) from None
        self._last_offset = begin
        self._last_record = record
        self._end = end
        self.next_index += 1

    def _roll(self, length: int) -> None:
        """Complete the segment and begin the next one."""
        check_fits(self.next_index, length, self.segment_size, self.format)
        if self._last_offset:
            self._store_last(self.next_index - 1, self._last_offset)
        os.fdatasync(self._descriptor_number)
        complete = self._descriptor_number
        self._create_segment(self._descriptor.id + 1, self.next_index)
        os.close(complete)

    def _store_last(self, index: int, offset: int) -> None:
        """Store the last index and offset in the descriptor, where its format has them."""
        self._descriptor = replace(self._descriptor, last_index=index, last_position=offset)
        encoded = encode_descriptor(self._descriptor, self._descriptor.format)
        if len(encoded) == self._descriptor.length:
            os.pwrite(self._descriptor_number, encoded, 0)

    def _storage_error(self, error: OSError) -> StorageError:
        return StorageError(
            f"cannot write journal {self.name} in {self.directory}: {error.strerror}",
            self.directory,
        )


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
