"""A journal's directory, opened for reading: its segments and their records.

A segment file is named ``<name>-<id>.log``. Segments are in the order of their ids, which may have
gaps; a segment begins with the index after the last of the segment before it. The last files may be
empty: newer releases create a segment before it is needed, and write its descriptor when it is.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from aerotape import _native
from aerotape.codecs.generated.raft_entry import EntryType
from aerotape.codecs.raft.descriptor import Descriptor, decode_descriptor
from aerotape.codecs.raft.record import blob_of
from aerotape.errors import (
    ConfigurationError,
    CorruptJournalError,
    InvalidAsqnError,
    InvalidChecksumError,
    InvalidIndexError,
    JournalError,
    StorageError,
    UnknownVersionError,
)

SEGMENT_NAME: Final = re.compile(r"(?P<name>.+)-(?P<id>0|[1-9][0-9]{0,18})\.log")
_HEAD_LENGTH: Final = 4096
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


class SegmentPath(NamedTuple):
    """A segment file: its path, and name and id from the file's name."""

    path: Path
    name: str
    id: int


@dataclass(frozen=True, slots=True)
class JournalSegment:
    """A segment of a journal.

    Attributes:
        path: the file.
        id: from the file's name.
        descriptor: the head of the file.
        limit: where the records end at the latest, bytes.
    """

    path: Path
    id: int
    descriptor: Descriptor
    limit: int


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


def segment_paths(directory: str | Path, name: str | None = None) -> list[SegmentPath]:
    """Return the segment files of the journal in a directory, in the order of their ids.

    Args:
        directory: the directory.
        name: the journal's name; needed if the directory holds several.

    Raises:
        ConfigurationError: there are several journals, and no name was given.
        StorageError: the directory cannot be read, or has no journal of the name.
    """
    directory = Path(directory)
    try:
        matches = [(path, SEGMENT_NAME.fullmatch(path.name)) for path in directory.iterdir()]
    except OSError as error:
        raise StorageError(f"cannot read {directory}: {error.strerror}", directory) from None
    found = [SegmentPath(path, match["name"], int(match["id"])) for path, match in matches if match]
    names = sorted({each.name for each in found})
    if name is None and len(names) > 1:
        raise ConfigurationError(
            f"{directory} holds several journals, {', '.join(names)}: give the name of one", "name"
        )
    chosen = [each for each in found if name in (None, each.name)]
    if not chosen:
        what = "no journal" if name is None else f"no journal {name}"
        raise StorageError(
            f"{directory} holds {what}: expected segment files named <name>-<id>.log", directory
        )
    return sorted(chosen, key=lambda each: each.id)


def check_name(name: str) -> str:
    """Check that files can be named after a journal, and return its name.

    Raises:
        ConfigurationError: it is empty, or has a character that a file's name cannot have.
    """
    if "/" in name or "\0" in name or not SEGMENT_NAME.fullmatch(f"{name}-1.log"):
        raise ConfigurationError(
            f"{name!r} is not a journal's name: files must be named <name>-<id>.log", "name"
        )
    return name


def load_segment(file: SegmentPath) -> JournalSegment | None:
    """Read the descriptor of a segment file.

    Returns:
        None if the file has no descriptor yet.

    Raises:
        JournalError: the descriptor is damaged; its attributes have the place.
        StorageError: the file cannot be read.
    """
    if not file.path.is_file():  # a pipe would be waited for
        raise StorageError(f"cannot read {file.path}: not a regular file", file.path)
    try:
        with file.path.open("rb") as opened:
            head = opened.read(_HEAD_LENGTH)
            length = opened.seek(0, 2)
    except OSError as error:
        raise StorageError(f"cannot read {file.path}: {error.strerror}", file.path) from None
    if not any(head):
        return None
    try:
        descriptor = decode_descriptor(head)
    except JournalError as error:
        raise type(error)(f"{error} (file {file.path}, offset 0)", file.path, 0) from None
    limit = min(length, descriptor.max_segment_size)
    return JournalSegment(file.path, file.id, descriptor, limit)


class RaftJournal:
    """A journal that is open for reading. Nothing is changed, and no file stays open.

    Attributes:
        directory: the directory.
        name: the journal's name, from the names of its files.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        segments: list[JournalSegment],
        damage: JournalError | None = None,
    ) -> None:
        """Use `open` instead; `damage` is why there are no segments after the last of these."""
        self.directory = directory
        self.name = name
        self._segments = segments
        self._damage = damage

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
        files = segment_paths(directory, name)
        segments: list[JournalSegment] = []
        damage: JournalError | None = None
        empty: SegmentPath | None = None
        for file in files:
            try:
                segment = load_segment(file)
            except JournalError as error:
                damage = error
                break
            if segment is None:
                empty = empty or file
            elif empty is not None:
                damage = CorruptJournalError(
                    f"a segment has no descriptor, and later ones have (file {empty.path}, "
                    "offset 0)",
                    empty.path,
                    0,
                )
                break
            else:
                segments.append(segment)
        return cls(Path(directory), files[0].name, segments, damage)

    def segments(self) -> list[JournalSegment]:
        """Return the segments in the order of their indices, without those not used yet.

        There are none after a damaged descriptor.
        """
        return list(self._segments)

    @property
    def first_index(self) -> int:
        """Index of the first record; of an empty journal the one that it will have."""
        return self._segments[0].descriptor.index if self._segments else 1

    def last_index(self) -> int:
        """Return the index of the last record; of an empty journal the one before the first.

        Raises:
            JournalError, StorageError: as for `records`.
        """
        if not self._segments:
            return self.first_index - 1
        begin = self._segments[-1].descriptor.index
        last = begin - 1
        for columns in self.batches(begin):
            last = columns.index[-1]
        return last

    def records(self, from_index: int | None = None) -> Iterator[StoredRecord]:
        """Yield the records with their bytes, in the order of their indices.

        Args:
            from_index: index of the first one; earlier records are skipped. Default: all.

        Raises:
            JournalError: a record is damaged, or has not the index that follows; `path`, `offset`
                and `index` are its place. All records before it have been returned.
            StorageError: a file cannot be read.
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
            starts = [segment.descriptor.index for segment in self._segments]
            first = max(bisect.bisect_right(starts, from_index) - 1, 0)
        expected: int | None = None
        for segment in self._segments[first:]:
            index = segment.descriptor.index
            if expected is not None and index != expected:
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
                found = _native.scan_raft_records(run)
                offset, index = found.next_offset, found.next_index
                if found.rows and (from_index is None or index > from_index):
                    yield RecordColumns(segment.path, found)
                if found.problem is not None:
                    raise _error(segment.path, found.problem)
                if found.ended:
                    break
            expected = index
        if self._damage is not None:
            self._damage.index = -1 if expected is None else expected
            raise self._damage


def _error(path: Path, finding: tuple[int, int, str, str]) -> JournalError:
    offset, index, problem, why = finding
    kind = _ERRORS[problem]
    return kind(f"record {index}: {why} (file {path}, offset {offset})", path, offset, index)
