"""Stub of the native core: files of an archive directory."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Final, Literal, Protocol, final

from typing_extensions import Buffer

from aerotape.catalog.segment.checks import SegmentTask
from aerotape.frame_header import ChecksumName

# ---- checksum.rs -------------------------------------------------------------------------------

def checksum(name: ChecksumName, data: bytes) -> int:
    """Return the checksum of `data` as the signed 32-bit integer of a frame header."""

# ---- time_points.rs ----------------------------------------------------------------------------

def decode_time_points(data: bytes, begin: int) -> tuple[bytes, bytes, bytes, str]:
    """Decode the points of a time index, which begin at offset `begin` of its file.

    Returns the times and the positions, int64 in the machine's order of bytes, a byte for each
    point that is 1 for an estimate, and why the file cannot be used, or "". Points at the end
    that fail their checksum are left out.
    """

def last_times_us(times: bytes, positions: bytes, wanted: bytes) -> bytes:
    """Return the time of the last point at or before each position, in microseconds.

    Positions before the first point are left out. All are int64 in the machine's order of bytes.

    Args:
        times: of the points, in nanoseconds.
        positions: of the points, ascending.
        wanted: positions, ascending.
    """

def running_extremes(numbers: bytes) -> tuple[bytes, bytes]:
    """Return for each int64 the largest up to it, and the smallest from it on.

    All are in the machine's order of bytes. ValueError when the length is not a multiple of 8.
    """

# ---- catalog/ ----------------------------------------------------------------------------------

def find_descriptors(
    catalog: Buffer,
    offsets: Buffer,
    states: bytearray,
    limit: int,
    *,
    stream_id: int | None = None,
    channel_fragment: bytes | None = None,
) -> tuple[bytes, bytes, int]:
    """Find recording descriptors in a mapped catalog file, in the order of `offsets`.

    Args:
        catalog: the catalog file.
        offsets: array of int64 with the offset of each descriptor, in bytes; others than valid
            ones, and damaged descriptors, are left out.
        states: the state of each recording; only those in state VALID are found.
        limit: how many to find at most.
        stream_id: the stream id that they must have.
        channel_fragment: what their original channel must contain.

    Returns:
        Recording ids as the memory of an array of int64; likewise offset and length of each
        descriptor without its padding, in bytes; and how many of `offsets` were read.
    """

def sound_entries(
    catalog: Buffer, offset: int, alignment: int
) -> tuple[tuple[bytes, bytes, bytes, bytes], int]:
    """Follow the entries of a mapped catalog file as long as they are sound.

    An entry is sound if its state is a known one, and its strings end where the length in its
    header says, up to the alignment.

    Args:
        catalog: the catalog file.
        offset: of the first entry, in bytes.
        alignment: of entries, in bytes.

    Returns:
        Of each entry the recording id, the offset of the descriptor, and its length as the header
        claims it, in bytes, each as the memory of an array of int64, and the state as a byte; and
        the offset of the first entry that is not sound.
    """

def irregular_recordings(
    catalog: Buffer,
    offsets: Buffer,
    states: bytearray,
    archive_dir: str | PathLike[str],
    names: Sequence[str],
) -> tuple[bytes, list[str]]:
    """Find the recordings for which a start may have something to do.

    All others are stopped, have possible figures, and just the segment files that they should
    have, up to the one in which they would continue, of the right length; or are empty without
    files.

    Args:
        catalog: the catalog file.
        offsets: array of int64 with the offset of each descriptor, in bytes.
        states: the state of each recording; only those in state VALID are looked at.
        archive_dir: the folder of the files.
        names: the names of the files in it.

    Returns:
        Their indices in `offsets` as the memory of an array of int64; and the names of all files
        but those of the others.
    """

# ---- segment/ ----------------------------------------------------------------------------------

@final
class SegmentWalk:
    """What a walk over the frames of a segment file found. Offsets are bytes in the file."""

    file_length: Final[int]
    end_offset: Final[int]
    """Offset after the last frame that is structurally whole."""
    end: Final[Literal["limit", "unwritten", "file-end", "invalid"]]
    """Why the walk ended there."""
    problem: Final[str | None]
    """What is wrong at `end_offset` when the walk ended as "invalid"."""
    frames: Final[int]
    """Whole frames, padding ones too."""
    last_frame_offset: Final[int]
    """Offset of the last whole frame, or -1."""
    last_frame_length: Final[int]
    """Its length as in its header, not aligned; -1 when there is none."""
    last_frame_is_padding: Final[bool]
    checksum_passes: Final[int]
    """Of either kind."""
    checksum_failures: Final[int]
    without_checksum: Final[int]
    """Data frames that hold the session id of their session in place of a checksum."""
    last_frame_is_unchecked: Final[bool]
    """Whether the last one does."""
    failed_offsets: Final[list[int]]
    """Offsets of the first 100 data frames whose checksum is wrong."""
    failed_tail_offset: Final[int]
    """Offset of the first of the failing frames that no good frame follows, or -1."""

def walk_segment(task: SegmentTask, *, checksum: ChecksumName = "none") -> SegmentWalk:
    """Walk the frames of a segment file from its `start_offset` to at most `end_offset`.

    Ends where nothing has been written, where the file ends, or at the first frame that is not
    what it should be there (length, at most the MTU for data, type, term id, term offset, stream
    id, within its term and the file). Failing checksums do not end the walk. Raises StorageError
    when the file cannot be read.
    """

@final
class BadFrame:
    """A place of a segment file without a good frame."""

    offset: Final[int]
    """Where it begins in the file, bytes."""
    length: Final[int]
    """Bytes up to the next good frame, or to the end of what was checked."""
    kind: Final[Literal["frame", "checksum", "unwritten", "file-end"]]
    detail: Final[str]

@final
class SegmentCheck:
    """What a check of a segment file found. Offsets are bytes in the file."""

    file_length: Final[int]
    frames: Final[int]
    """Frames that are sound but for their checksum, padding ones too."""
    payload_bytes: Final[int]
    checksum_passes: Final[int]
    other_checksum_passes: Final[int]
    """Frames with a right checksum of the other kind."""
    without_checksum: Final[int]
    """Frames that hold the session id of their session in place of a checksum."""
    checksum_failures: Final[int]
    bad: Final[list[BadFrame]]
    """The first bad places, at least a thousand if there are so many."""
    bad_places: Final[int]
    """How many there are."""
    last_frame_offset: Final[int]
    """Offset of the last sound frame, or -1."""
    last_frame_length: Final[int]
    """Its length as in its header, not aligned; -1 when there is none."""
    tail: Final[SegmentWalk | None]
    """A walk over the frames after `end_offset`, if requested."""
    error: Final[str | None]
    """Why the file could not be read."""

def list_segments(
    directory: str | PathLike[str],
) -> tuple[list[tuple[int, int, int, int]], list[str]]:
    """List the segment files of a directory, and what they take.

    Returns a tuple for each, ascending: recording id, base position, bytes of storage, and when it
    was written to last, nanoseconds since 1970. And the names of all else. StorageError when the
    directory or the status of a file cannot be read.
    """

def check_segments(
    tasks: Sequence[SegmentTask],
    *,
    checksum: ChecksumName = "none",
    progress: Callable[[int], None] | None = None,
) -> list[SegmentCheck]:
    """Check segment files on all processors, each from `start_offset` to `end_offset`.

    After a bad place it continues with the next frame whose header belongs to its place.
    With a `limit` beyond `end_offset`, the frames up to it are walked as by `walk_segment`.
    `progress` is called with the number of bytes done; what it raises ends the check.
    A file that cannot be read is an `error` of its check.
    """

@final
class ReferenceCheck:
    """What Aeron's ArchiveTool makes of a segment file. Offsets are bytes in the file."""

    end_offset: Final[int]
    """Where its frames end, going by their lengths alone."""
    doubtful_offset: Final[int]
    """Offset of the last frame if it may be torn, else -1."""
    invalid_offset: Final[int]
    """Offset of the first frame that makes the file invalid, or -1."""
    invalid: Final[str]
    """Why it does."""

def reference_check(task: SegmentTask, *, checksum: ChecksumName = "none") -> ReferenceCheck:
    """Check the frames of a segment file as ArchiveTool does (StorageError)."""

@final
class RewrittenSegment:
    """What was done to the checksums of a segment file. Offsets are bytes in the file."""

    frames: Final[int]
    """Data frames."""
    changed: Final[int]
    """Those that had another checksum."""
    changed_kind: Final[int]
    """Those of them whose checksum of the other kind was right."""
    without: Final[int]
    """Those of them that had the session id, and so no checksum."""
    end_offset: Final[int]
    """Where the frames ended."""
    problem: Final[str | None]
    """Why, when that was not the end of the frames."""
    error: Final[str | None]
    """Why the file could not be rewritten."""

class _RewriteTask(Protocol):
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def start_offset(self) -> int: ...
    @property
    def session_id(self) -> int: ...
    @property
    def max_frame_length(self) -> int: ...

def rewrite_checksums(
    tasks: Sequence[_RewriteTask],
    *,
    checksum: ChecksumName,
    dry_run: bool,
    progress: Callable[[int], None] | None = None,
) -> list[RewrittenSegment]:
    """Put checksums into the data frames of segment files, up to the first empty place of each.

    On all processors; with `dry_run` the files are only read. `progress` as in
    `check_segments`.
    """
