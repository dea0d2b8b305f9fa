"""A journal's directory, opened for reading: its segments and their records.

A writer may delete segments while a journal is read: the first ones when it compacts the journal,
the last ones when it truncates it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from aerotape import _native
from aerotape.codecs.generated.raft_entry import EntryType
from aerotape.codecs.raft.record import blob_of
from aerotape.codecs.raft_journal.metadata import last_flushed_index
from aerotape.codecs.raft_journal.segment import (
    JournalSegment,
    SegmentGoneError,
    SegmentPath,
    in_descriptor,
    load_segment,
    segment_paths,
)
from aerotape.errors import (
    CorruptJournalError,
    InvalidAsqnError,
    InvalidChecksumError,
    InvalidIndexError,
    JournalError,
    StorageError,
    UnknownVersionError,
)

_ATTEMPTS: Final = 20
_NO_TYPE: Final = 255
_ERRORS: Final[dict[str, type[JournalError]]] = {
    "UnknownVersion": UnknownVersionError,
    "CorruptJournal": CorruptJournalError,
    "InvalidChecksum": InvalidChecksumError,
    "InvalidIndex": InvalidIndexError,
    "InvalidAsqn": InvalidAsqnError,
}


class RaftScan(NamedTuple):
    """A run of records to scan: from an offset up to the segment's end, and the first index.

    At most `rows` records are scanned, and none that begins after `bytes` bytes.
    """

    path: Path
    offset: int
    limit: int
    first_index: int
    rows: int
    bytes: int
    with_data: bool


@dataclass(slots=True)
class StoredRecord:
    """A record of a journal.

    Attributes:
        index: the place in the journal.
        asqn: the application's sequence number, -1 for none.
        checksum: of the data message; 0 to 2^32 - 1.
        term: of the raft entry; None if the data is not a raft entry, as for the type.
        type: of the raft entry.
        lowest_asqn: of an application entry, otherwise None.
        highest_asqn: of an application entry, otherwise None.
        record: all bytes of the record, from its frame on.
        segment: the file.
        offset: where in the file, bytes.
    """

    index: int
    asqn: int
    checksum: int
    term: int | None
    type: EntryType | None
    lowest_asqn: int | None
    highest_asqn: int | None
    record: bytes
    segment: Path
    offset: int

    @property
    def data(self) -> bytes:
        """The serialized raft entry."""
        return blob_of(self.record)


class RecordColumns:
    """A run of records of a segment, as columns of equal length.

    Attributes:
        segment: the file.
        rows: number of records.
        index: memoryview of uint64, as all columns but those noted.
        asqn: int64.
        checksum: int64.
        term: 2^64 - 1 if the data is not a raft entry.
        entry_type: uint8, as `EntryType`; 255 if the data is not a raft entry.
        lowest_asqn: 2^64 - 1 except in application entries, as is `highest_asqn`.
        offset: of the record in the file, bytes.
        length: of the record, bytes.
        data: the records one after the other, if requested.
    """

    def __init__(self, segment: Path, found: _native.RaftRecords) -> None:
        self.segment = segment
        self.rows = found.rows
        self.index = memoryview(found.index).cast("Q")
        self.asqn = memoryview(found.asqn).cast("q")
        self.checksum = memoryview(found.checksum).cast("q")
        self.term = memoryview(found.term).cast("Q")
        self.entry_type = memoryview(found.entry_type)
        self.lowest_asqn = memoryview(found.lowest_asqn).cast("Q")
        self.highest_asqn = memoryview(found.highest_asqn).cast("Q")
        self.offset = memoryview(found.offset).cast("Q")
        self.length = memoryview(found.length).cast("Q")
        self.data = found.data

    def records(self) -> Iterator[StoredRecord]:
        """Yield the records; their bytes are empty if the data was not requested."""
        start = self.offset[0] if self.rows else 0
        columns = zip(
            self.index, self.asqn, self.checksum, self.term, self.entry_type,
            self.lowest_asqn, self.highest_asqn, self.offset, self.length, strict=True,
        )  # fmt: skip
        for index, asqn, checksum, term, kind, lowest, highest, offset, length in columns:
            begin = offset - start
            yield StoredRecord(
                index,
                asqn,
                checksum,
                None if kind == _NO_TYPE else term,
                None if kind == _NO_TYPE else EntryType(kind),
                None if kind != EntryType.APPLICATION else lowest,
                None if kind != EntryType.APPLICATION else highest,
                self.data[begin : begin + length],
                self.segment,
                offset,
            )


class RaftJournal:
    """A journal that is open for reading. Nothing is changed, and no file stays open.

    Attributes:
        directory: the directory.
        name: the journal's name, from the names of its files.
    """

    def __init__(self, directory: Path, name: str, flushed: int | StorageError) -> None:
        """Use `open` instead; `flushed` is the broker's index, or why it cannot be read."""
        self.directory = directory
        self.name = name
        self._flushed = flushed
        self._segments: list[JournalSegment] = []
        self._unused: list[SegmentPath] = []
        # Why there are no segments after the last of these.
        self._damage: JournalError | None = None

    @classmethod
    def open(cls, directory: str | Path, name: str | None = None) -> RaftJournal:
        """Open the journal in a directory.

        A damaged segment descriptor does not prevent that: reading ends there with its error.

        Args:
            directory: the directory.
            name: the journal's name; needed if the directory holds several.

        Raises:
            ConfigurationError: there are several journals, and no name was given.
            StorageError: there is no journal, or the directory or a file cannot be read.
        """
        directory = Path(directory)
        for attempt in range(_ATTEMPTS):
            name = segment_paths(directory, name)[0].name
            # A running broker appends: what is flushed now is in the files that are listed after.
            self = cls(directory, name, _flushed(directory, name))
            try:
                self._load(segment_paths(directory, name))
            except SegmentGoneError:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                break
        return self

    def _load(self, files: list[SegmentPath]) -> None:
        for file in files:
            try:
                segment = load_segment(file)
            except JournalError as error:
                self._damage = error
                return
            if segment is None:
                self._unused.append(file)
            elif self._unused:
                path, why = self._unused[0].path, "a segment has no descriptor, and later ones have"
                self._damage = in_descriptor(path, CorruptJournalError, why)
                return
            else:
                self._segments.append(segment)

    def segments(self) -> list[JournalSegment]:
        """Return the segments in the order of their indices, without those not used yet.

        There are none after a damaged descriptor.
        """
        return list(self._segments)

    def unused(self) -> list[SegmentPath]:
        """Return the files after the last segment that have no descriptor yet; none after damage.

        Newer releases create them in advance.
        """
        return [] if self._damage is not None else list(self._unused)

    @property
    def first_index(self) -> int:
        """Index of the first record; of an empty journal the one that it will have."""
        return self._segments[0].descriptor.index if self._segments else 1

    def last_index(self) -> int:
        """Return the index of the last record; of an empty journal the one before the first.

        All records are read, because a damaged one may precede the last.

        Raises:
            JournalError, StorageError: as for `records`.
        """
        last = self.first_index - 1
        for columns in self.batches():
            last = columns.index[-1]
        return last

    def records(self, from_index: int | None = None) -> Iterator[StoredRecord]:
        """Yield the records with their bytes, in the order of their indices.

        Args:
            from_index: index of the first one; earlier records are skipped. Default: all.

        Raises:
            JournalError: a record is damaged, or has not the index that follows; `path`, `offset`
                and `index` are its place. All records before it have been returned. Damage after
                which records can be read is raised after them, and so are records that the
                broker has flushed and that are missing.
            StorageError: a file cannot be read, or was deleted meanwhile.
        """
        for columns in self.batches(from_index, with_data=True):
            for record in columns.records():
                if from_index is None or record.index >= from_index:
                    yield record

    def batches(
        self,
        from_index: int | None = None,
        *,
        with_data: bool = False,
        rows: int = 65_536,
        length: int = 8 << 20,
    ) -> Iterator[RecordColumns]:
        """Yield the records as columns; checksums and indices are checked.

        Args:
            from_index: a record that the first run has, if the journal does; the run may begin
                before it. Default: the first record.
            with_data: also return the bytes of the records.
            rows: at most this many records at once.
            length: about so many bytes of a segment at once.

        Raises:
            JournalError, StorageError: as for `records`.
        """
        first = 0
        if from_index is not None:
            starts: list[int] = []
            for segment in self._segments:  # up to one that is not in order
                if starts and segment.descriptor.index <= starts[-1]:
                    break
                starts.append(segment.descriptor.index)
            first = max(bisect.bisect_right(starts, from_index) - 1, 0)
        expected: int | None = None
        place: tuple[Path, int] | None = None
        later: JournalError | None = None  # after which records can be read
        for segment in self._segments[first:]:
            index = segment.descriptor.index
            if expected is not None and index != expected and segment.path.exists():
                raise InvalidIndexError(
                    f"the segment begins with index {index}, expected {expected}, the one after "
                    f"the previous segment's last (file {segment.path}, offset 0)",
                    segment.path,
                    0,
                    expected,
                )
            offset = segment.descriptor.length
            while True:
                limits = max(rows, 1), max(length, 1), with_data
                run = RaftScan(segment.path, offset, segment.limit, index, *limits)
                try:
                    found = _native.scan_raft_records(run)
                except StorageError:
                    if segment.path.exists():
                        raise
                    raise SegmentGoneError(
                        f"{segment.path} was deleted while the journal was read: read it again",
                        segment.path,
                    ) from None
                offset, index = found.next_offset, found.next_index
                if found.rows and (from_index is None or index > from_index):
                    yield RecordColumns(segment.path, found)
                if found.problem is not None:
                    raise _error(segment.path, found.problem)
                if found.ended:
                    break
            expected, place = index, (segment.path, offset)
            later = later or segment.damage or self._end_damage(segment, offset, index)
        if self._damage is not None:
            self._damage.index = -1 if expected is None else expected
            raise self._damage
        if later is not None:
            raise later
        self._check_flushed(expected, place)

    def _end_damage(self, segment: JournalSegment, offset: int, index: int) -> JournalError | None:
        """Return the reason why a segment's records cannot end before the record of an index."""
        if not segment.end_damage(index):
            return None
        # A writer that truncates the journal changes the descriptor first.
        file = SegmentPath(segment.path, self.name, segment.id)
        try:
            now = load_segment(file)
        except StorageError:
            return None
        why = now.end_damage(index) if now is not None else ""
        if not why:
            return None
        text = f"record {index}: {why} (file {segment.path}, offset {offset})"
        return CorruptJournalError(text, segment.path, offset, index)

    def _check_flushed(self, next_index: int | None, place: tuple[Path, int] | None) -> None:
        """Check that the journal has the records that the broker has flushed."""
        # It may have truncated the journal, and stores a lower index before it does.
        indices = []
        for found in (self._flushed, _flushed(self.directory, self.name)):
            if isinstance(found, StorageError):
                raise found
            indices.append(found)
        flushed = min(indices)
        if (next_index or 1) > flushed:
            return
        path, offset = place or (self._unused[0].path, 0)
        why = missing_records(next_index or 1, flushed)
        text = f"{why} (file {path}, offset {offset})"
        raise CorruptJournalError(text, path, offset, next_index or 1)


def missing_records(next_index: int, flushed: int) -> str:
    """Return the reason of the damage when a journal ends before records that were flushed."""
    return (
        f"the journal ends before index {next_index}, and the broker has flushed records up to "
        f"{flushed}"
    )


def _flushed(directory: Path, name: str) -> int | StorageError:
    try:
        return last_flushed_index(directory, name)
    except StorageError as error:
        return error


def _error(path: Path, finding: tuple[int, int, str, str]) -> JournalError:
    offset, index, problem, why = finding
    kind = _ERRORS[problem]
    return kind(f"record {index}: {why} (file {path}, offset {offset})", path, offset, index)
