"""Stub of the native core: reading recordings offline, decoding payloads."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol, final

from aerotape.frame_header import ChecksumName

# ---- scan/ (reading recordings offline) --------------------------------------------------------

SCAN_COLUMNS: tuple[str, ...]
"""All columns that a scan can build, in table order."""

class ArrowRecordBatch(Protocol):
    """A record batch of the Arrow C data interface: `pyarrow.record_batch(batch)` takes it."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

class ArrowSchema(Protocol):
    """A schema of the Arrow C data interface: `pyarrow.schema(schema)` takes it."""

    def __arrow_c_schema__(self) -> object: ...

# (position of its first frame, position after its last frame, term_id, term_offset, flags,
# reserved_value, payload); term_id, term_offset and reserved_value are those of the first frame,
# flags those of the first and the last frame together, as Aeron's assemblers give them.
_RecordedMessage = tuple[int, int, int, int, int, int, bytes]

class _Range(Protocol):
    """A range of a recording: `aerotape.replay.offline.reader.RecordingRange`."""

    @property
    def archive_dir(self) -> str: ...
    @property
    def recording_id(self) -> int: ...
    @property
    def start_position(self) -> int: ...
    @property
    def term_length(self) -> int: ...
    @property
    def segment_length(self) -> int: ...
    @property
    def initial_term_id(self) -> int: ...
    @property
    def session_id(self) -> int: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def max_frame_length(self) -> int: ...
    @property
    def from_position(self) -> int: ...
    @property
    def to_position(self) -> int: ...
    @property
    def limit_position(self) -> int: ...
    @property
    def from_boundary(self) -> bool:
        """Whether a message is known to end at `from_position`; then a scan begins there instead
        of at the start of its term.
        """

@final
class SegmentScan:
    """Messages of one recording that begin in a range of positions, from its segment files.

    Fragments are put together, padding is skipped, and so are fragments that belong to no whole
    message (they are counted). `limit_position` is the recorded position: nothing at or after it
    is read, but a message that begins before `to_position` is read to its end. With a checksum
    every data frame from `from_position` on is verified. What is wrong with a segment raises
    SegmentError, which names recording, file, offset and position; messages before it are given
    first. Batches end at `batch_rows` messages or `batch_bytes` bytes of payload, so memory does
    not depend on the size of the recording.
    """

    def __init__(
        self,
        range: _Range,
        *,
        columns: Sequence[str] | None = None,
        checksum: ChecksumName = "none",
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
        mode: Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"] = "FAILFAST",
        given: bool = False,
    ) -> None:
        """Prepare a scan; no file is opened yet. ValueError for arguments that make no sense.

        `mode` is how messages with a frame that fails its checksum are handled: an error, no row,
        or a row without payload and with the reason in `_corrupt`. That column is among those of
        `columns=None` in the last case only. `given`: no file is opened; when the next batch is
        None and `wanted` is not, the caller has to `give` bytes of the recording, or to `refuse`,
        and to request the batch again. `archive_dir` then only appears in errors.
        """
    wanted: Final[int | None]
    """Position of the first byte that is to be given, None when none is needed."""
    def give(self, data: bytes) -> None:
        """Give any number of bytes from `wanted` on (ValueError when none are)."""
    def refuse(self, reason: str) -> None:
        """End the scan, as these bytes cannot be had: SegmentError after the last message."""
    schema: Final[ArrowSchema]
    def next_batch(self) -> ArrowRecordBatch | None:
        """Return the next batch with the requested columns, None at the end."""
    def next_messages(self) -> list[_RecordedMessage] | None:
        """Return the next batch as tuples, None at the end. Needs no Arrow on the Python side.

        ValueError in mode PERMISSIVE, as a tuple has no column for the reason.
        """
    position: Final[int]
    """Position after the last frame that was read."""
    rows: Final[int]
    """Messages given so far."""
    dropped_messages: Final[int]
    """Damaged messages left out so far, in mode DROPMALFORMED."""
    skipped_fragments: Final[int]
    """Fragments so far that belong to no whole message."""
    unfinished_fragments: Final[int]
    """Fragments of a message that has begun but not ended at the limit."""

@final
class RecordingPass:
    """One pass over a range of a recording that counts messages and gaps.

    Damage does not end it: where there is no frame (a file is missing or too short, nothing was
    written, other bytes are there) it continues at the next frame that can be found. Memory does
    not depend on the size of the recording.
    """

    def __init__(self, range: _Range, edges: Sequence[int]) -> None:
        """Prepare a pass. `edges` ascend from the range's first position to its end: a bin lies
        between each two of them. Without edges there are no bins. ValueError for arguments that
        make no sense.
        """
    def advance(self, length: int) -> bool:
        """Continue for about `length` bytes; return whether the range is done."""
    position: Final[int]
    """Position after the last frame that was read."""
    def counts(self) -> RecordingCounts:
        """Return what was counted, once the range is done."""

@final
class RecordingCounts:
    """What a pass has counted. What crosses an edge counts where it begins, gaps on both sides."""

    messages: Final[int]
    payload_bytes: Final[int]
    fragments: Final[int]
    """Frames of whole messages."""
    fragmented_messages: Final[int]
    skipped_fragments: Final[int]
    unfinished_fragments: Final[int]
    padding_frames: Final[int]
    padding_bytes: Final[int]
    filler_frames: Final[int]
    """Padding frames that do not reach to the end of their term."""
    filler_bytes: Final[int]
    shortest_bytes: Final[int]
    longest_bytes: Final[int]
    lengths: Final[list[tuple[int, int, int, int]]]
    """Buckets of message lengths that hold any, ascending: first length, first length beyond,
    messages, bytes. A bucket is at most 1/128 of its first length wide.
    """
    gap_count: Final[int]
    gap_bytes: Final[int]
    gaps: Final[list[tuple[int, int, Literal["missing", "unwritten", "damaged"], str]]]
    """The first 1000: positions from and to, kind, the error that a reader would get there."""
    bins: Final[list[tuple[int, int, int, int, int, int, int, int, int, int]]]
    """Positions from and to; messages, payload bytes, padding bytes, gap bytes; lengths of
    messages: shortest, median, 99th percentile, longest (0 without messages).
    """

# ---- sbe/ (payloads of users' own schemas) -----------------------------------------------------

class ArrowArray(Protocol):
    """An array of the Arrow C data interface."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

@final
class SbeDecoder:
    """Decodes SBE payloads into Arrow columns by a plan (`aerotape.codecs.payload_plan.Plan`).

    The columns are the template names if requested, then those of the plan's messages (of a flat
    plan the message's fields, else one struct a message), then the errors if requested. A payload
    of another schema or template is null in all of them. Safe for several threads.
    """

    def __init__(
        self, plan: object, *, template_column: str | None = None, error_column: str | None = None
    ) -> None:
        """Adopt a plan. ValueError, TypeError or OverflowError if it is not one."""
    schema: Final[ArrowSchema]
    def decode(self, payloads: ArrowArray) -> ArrowRecordBatch:
        """Decode a binary array (Arrow's Binary, else TypeError); null stays null.

        A payload that does not match the plan, or has a value that does not fit its column, is a
        null row with its error in the error column; without that column CodecError with the number
        of the row. OverflowError if a column would be longer than Arrow's 32-bit offsets reach.
        """
    def decode_messages(
        self,
        payloads: ArrowArray,
        *,
        malformed: Literal["fail", "drop", "null"],
        keep_others: bool,
    ) -> tuple[ArrowRecordBatch, ArrowArray | None, list[tuple[int, str]], dict[str, int]]:
        """Decode those payloads that are to be rows; the decoder must have no error column.

        `malformed` is how one that does not match the plan is handled: decoding ends before it,
        it is left out, or a row of nulls. `keep_others` makes payloads of other schemas and
        templates rows of nulls; else they are left out. Nulls stay.

        Returns the rows, which payloads they are (indices, ascending; None when nothing was left
        out before the end), the index of each malformed payload with what is wrong, and by column
        how many texts had bytes that are not UTF-8.
        """
