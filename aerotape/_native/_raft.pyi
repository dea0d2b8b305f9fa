"""Stub of the native core: raft journals."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Final, Literal, Protocol, final

from aerotape._native._scan import ArrowArray, ArrowRecordBatch, ArrowSchema
from aerotape.codecs.raft_journal.directory import RaftScan

# ---- raft_journal ------------------------------------------------------------------------------

# Offset in the file, index, problem, why.
_RaftFinding = tuple[int, int, str, str]

@final
class RaftRecords:
    """A run of records of a raft journal as columns: bytes, eight for each record.

    Numbers are unsigned, in the machine's order of bytes, except where noted.
    """

    rows: Final[int]
    """Number of records."""
    index: Final[bytes]
    asqn: Final[bytes]
    """Signed; -1 for none."""
    checksum: Final[bytes]
    """Signed."""
    term: Final[bytes]
    """2^64 - 1 if the data is not a raft entry."""
    entry_type: Final[bytes]
    """One byte each: the type of the raft entry; 255 if the data is not one."""
    lowest_asqn: Final[bytes]
    """2^64 - 1 except in application entries."""
    highest_asqn: Final[bytes]
    """2^64 - 1 except in application entries."""
    offset: Final[bytes]
    """Of the record's frame in the file."""
    length: Final[bytes]
    """Of the record, frame included."""
    data: Final[bytes]
    """The records one after the other; empty unless requested."""
    next_offset: Final[int]
    """Where the scan continues."""
    next_index: Final[int]
    """The index that the record there must have."""
    ended: Final[bool]
    """Whether the records of the segment end there."""
    problem: Final[_RaftFinding | None]
    """Why the scan cannot continue, if it cannot."""

def scan_raft_records(run: RaftScan) -> RaftRecords:
    """Read records of a segment; their checksums and indices are checked (StorageError)."""

@final
class RaftSegmentCheck:
    """The result of a check of a segment's records."""

    records: Final[int]
    """Sound records."""
    end_offset: Final[int]
    """Where the check ended."""
    next_index: Final[int]
    """The index after the last record's."""
    is_complete: Final[bool]
    """Whether the check reached the end of the records."""
    first_asqn: Final[tuple[int, int, int] | None]
    """Offset, index and asqn of the first record that has one."""
    last_asqn: Final[int]
    """The highest asqn, -1 if there is none."""
    first_lowest: Final[tuple[int, int, int] | None]
    """Offset, index and lowest asqn of the first application entry."""
    last_highest: Final[int | None]
    """The highest asqn of the last application entry."""
    findings: Final[list[_RaftFinding]]
    """The first thousand."""
    problems: Final[int]
    """How many there are."""

class _RaftSegmentTask(Protocol):
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def offset(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def first_index(self) -> int: ...

def verify_raft_segments(
    tasks: Sequence[_RaftSegmentTask], *, progress: Callable[[int], None] | None = None
) -> list[RaftSegmentCheck]:
    """Check every record of segments on all processors.

    After records whose checksums do not match the check resumes at the sound record that their
    lengths lead to.
    `progress` as in `check_segments`.
    """

def raft_record_schema() -> ArrowSchema:
    """Return the schema of the batches of `decode_raft_records`."""

def decode_raft_records(
    payloads: ArrowArray, *, malformed: Literal["fail", "drop", "null"]
) -> tuple[ArrowRecordBatch, ArrowArray | None, list[tuple[int, str]], dict[str, int]]:
    """Decode payloads that each hold a record of a raft journal into columns.

    Columns of a record whose data fails its checksum are null, but for `checksum_ok`. Returns the
    rows, the indices of their payloads unless all are rows, and each payload that is not a record,
    with the reason; the last is empty. Decoding ends before the first of them with "fail"; with
    "null" it is a row of nulls.
    """
