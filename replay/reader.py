"""Reading recordings offline, from the segment files of an archive directory.

No daemon is needed and none is disturbed: files are only read, and no further than the recorded
position, so the archive may be recording meanwhile. The work is done natively
(`native/src/scan/`); this module ties it to `aerotape.catalog.directory`, gives messages as
`Message` and, for who has pyarrow, as Arrow record batches.

A message belongs to a range of positions when its first frame begins in it. Ranges that touch
therefore give each message exactly once, and need not fall on frame boundaries. Fragments that
belong to no whole message are left out: the tail of a message whose beginning was not recorded
(an image that was joined in the middle of one), and the beginning of one whose end never came.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from aerotape import _native
from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.errors import ConfigurationError, StorageError
from aerotape.records import record, replace
from aerotape.replay.damage import Mode, check_mode, parse_mode
from aerotape.text import argument
from aerotape.times import ALL_TIMES, TimeLike, TimeRange
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import pyarrow

    from aerotape._native import ChecksumName
    from aerotape.catalog.directory import Recording

COLUMNS: Final[tuple[str, ...]] = _native.SCAN_COLUMNS
"""All columns in table order; the last, `_corrupt`, is for mode PERMISSIVE."""
_FRAME_HEADER_LENGTH: Final = 32
CHECKSUMS: Final[tuple[ChecksumName, ...]] = ("none", "crc-32", "crc-32c")


class Message(NamedTuple):
    """One recorded message, its fragments put together. Positions and lengths are bytes.

    Attributes:
        recording_id: the recording it is in.
        position: where its first frame begins.
        end_position: where the frame after it begins.
        stream_id: of the recording.
        session_id: of the recording's descriptor. With checksums, frames do not hold it.
        term_id: of its first frame.
        term_offset: of its first frame.
        flags: of its first and last frame together, as Aeron's assemblers give them: 0xC0, and
            whatever else the publisher set.
        reserved_value: of its first frame.
        payload: what was published.
    """

    recording_id: int
    position: int
    end_position: int
    stream_id: int
    session_id: int
    term_id: int
    term_offset: int
    flags: int
    reserved_value: int
    payload: bytes

    @property
    def length(self) -> int:
        """Length of the payload in bytes."""
        return len(self.payload)


class Scan(Protocol):
    """A scan of a range; see `_native.SegmentScan`, which is one."""

    @property
    def schema(self) -> Any:
        """Schema of the batches (Arrow's C interface)."""

    def next_batch(self) -> Any:
        """Return the next record batch (Arrow's C interface), None at the end (SegmentError)."""

    def next_messages(self) -> list[tuple[int, int, int, int, int, int, bytes]] | None:
        """Return the next messages, None at the end (SegmentError)."""

    @property
    def rows(self) -> int:
        """Messages given so far."""

    @property
    def skipped_fragments(self) -> int:
        """Fragments so far that belong to no whole message."""

    @property
    def unfinished_fragments(self) -> int:
        """Fragments of a message that had not ended at the limit."""

    @property
    def dropped_messages(self) -> int:
        """Damaged messages left out so far."""


@record(frozen=True, slots=True)
class RecordingRange:
    """Messages of one recording that begin from `from_position` up to `to_position`.

    All that is needed to read them, in plain values, so that it can go to another process that
    sees the same directory.

    Attributes:
        archive_dir: path of the directory, or its URL when it is in a storage elsewhere.
        limit_position: the recorded position when the range was made. Nothing from there on is
            read; a message that begins in the range is read to its end.
        storage: how that storage is reached.
        from_boundary: a message is known to have ended at `from_position`. Scanning begins there
            instead of at the start of its term.
    """

    archive_dir: str
    recording_id: int
    start_position: int
    term_length: int
    segment_length: int
    initial_term_id: int
    session_id: int
    stream_id: int
    from_position: int
    to_position: int
    limit_position: int
    storage: StorageOptions = NO_OPTIONS
    from_boundary: bool = False

    @property
    def length(self) -> int:
        """Bytes of the recording that the range covers."""
        return self.to_position - self.from_position

    def part(self, from_position: int, to_position: int) -> RecordingRange:
        """Return the same with another range of positions, within this one."""
        return replace(
            self,
            from_position=from_position,
            to_position=to_position,
            from_boundary=self.from_boundary and from_position == self.from_position,
        )

    def scan(
        self,
        columns: Sequence[str] | None = None,
        checksum: ChecksumName = "none",
        *,
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
        nullable: bool = False,
        mode: Mode = "FAILFAST",
    ) -> Scan:
        """Prepare the scan of this range (ConfigurationError)."""
        mode = parse_mode(mode)
        check_mode(mode, checksum)
        place = parse_location(self.archive_dir)
        remote = isinstance(place, UrlPath)
        try:
            scan = _native.SegmentScan(
                archive_dir=self.archive_dir,
                recording_id=self.recording_id,
                start_position=self.start_position,
                term_length=self.term_length,
                segment_length=self.segment_length,
                initial_term_id=self.initial_term_id,
                session_id=self.session_id,
                stream_id=self.stream_id,
                from_position=self.from_position,
                to_position=self.to_position,
                limit_position=self.limit_position,
                columns=columns,
                checksum=checksum,
                batch_rows=batch_rows,
                batch_bytes=batch_bytes,
                nullable=nullable,
                mode=mode,
                given=remote,
                from_boundary=self.from_boundary,
            )
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        if not isinstance(place, UrlPath):
            return scan
        from aerotape.replay.remote_scan import RemoteScan

        return RemoteScan(scan, self, place)


def recording_range(
    recording: Recording,
    from_position: int | None = None,
    to_position: int | None = None,
    times: TimeRange = ALL_TIMES,
) -> RecordingRange:
    """Clip a range of positions to what is recorded now; it may be empty.

    Args:
        recording: of an opened archive directory.
        from_position: messages that begin before are left out; the recording's start when None.
        to_position: messages that begin there or later are left out; what is recorded when None.
        times: messages that were certainly recorded at other times are left out
            (`aerotape.catalog.time_index`).

    Raises:
        ConfigurationError: a position is negative, or the range goes backwards.
    """
    for name, position in (("from_position", from_position), ("to_position", to_position)):
        if position is not None and position < 0:
            raise ConfigurationError(f"{name} {position} is negative", name)
    if from_position is not None and to_position is not None and from_position > to_position:
        raise ConfigurationError(
            f"{argument('from_position', '--from-position')} {from_position} is after "
            f"{argument('to_position', '--to-position')} {to_position}",
            "from_position",
        )
    start = recording.start_position
    limit = max(_limit_position(recording), start)
    begin = start if from_position is None else min(max(from_position, start), limit)
    end = limit if to_position is None else min(to_position, limit)
    if times:
        index = recording.time_index
        if index.problem:
            warnings.warn(index.problem, RuntimeWarning, stacklevel=3)
        earliest, latest = index.positions(times)
        begin, end = max(begin, earliest), min(end, latest)
    return range_of(recording, begin, max(begin, end), limit)


def _limit_position(recording: Recording) -> int:
    """Return up to where a recording can be read, or begins not to be.

    Where the file in which it may end cannot be read, all before it can. A scan finds that out, and
    names it, when it comes there.
    """
    try:
        return recording.recorded_position
    except StorageError as error:
        for segment in recording.segment_files():
            if str(segment.path) == str(error.path):
                return segment.base_position + _FRAME_HEADER_LENGTH
        raise


def range_of(
    recording: Recording,
    from_position: int,
    to_position: int,
    limit_position: int,
    *,
    from_boundary: bool = False,
) -> RecordingRange:
    """Return a range of positions that are known to be recorded; see `RecordingRange`."""
    descriptor = recording.descriptor
    return RecordingRange(
        archive_dir=str(recording.archive_dir),
        recording_id=descriptor.recording_id,
        start_position=recording.start_position,
        term_length=descriptor.term_buffer_length,
        segment_length=descriptor.segment_file_length,
        initial_term_id=descriptor.initial_term_id,
        session_id=descriptor.session_id,
        stream_id=descriptor.stream_id,
        from_position=from_position,
        to_position=to_position,
        limit_position=limit_position,
        storage=recording.storage,
        from_boundary=from_boundary,
    )


def read_messages(
    recording: Recording,
    from_position: int | None = None,
    to_position: int | None = None,
    checksum: ChecksumName = "none",
    *,
    from_time: TimeLike | None = None,
    to_time: TimeLike | None = None,
) -> Iterator[Message]:
    """Iterate the messages that begin in a range of positions, in order.

    Needs no pyarrow. Memory does not grow with the recording.

    Args:
        recording: of an opened archive directory; it may still be recorded: the iteration ends
            at the position that was recorded when it began.
        from_position: as for `recording_range`.
        to_position: as for `recording_range`.
        checksum: verify each frame against the checksum that `aeron.archive.record.checksum`
            wrote: "crc-32" or "crc-32c"; "none" verifies nothing.
        from_time: messages that were certainly recorded before are left out. See
            `aerotape.times` for how times are given, and `aerotape.catalog.time_index` for what
            is known of when a message was recorded.
        to_time: messages that were certainly recorded then or later are left out.

    Raises:
        ConfigurationError: a position, a time or the checksum's name cannot be.
        SegmentError: a segment file is missing, too short, damaged or fails its checksum; it
            names recording, file, offset and position. Messages before that come first.
    """
    times = TimeRange.of(from_time, to_time)
    chosen = recording_range(recording, from_position, to_position, times)
    return _messages(chosen, chosen.scan(checksum=checksum))


def _messages(chosen: RecordingRange, scan: Scan) -> Iterator[Message]:
    recording_id, stream_id = chosen.recording_id, chosen.stream_id
    session_id = chosen.session_id
    while (batch := scan.next_messages()) is not None:
        for position, end_position, term_id, term_offset, flags, reserved, payload in batch:
            yield Message(
                recording_id, position, end_position, stream_id, session_id,
                term_id, term_offset, flags, reserved, payload,
            )  # fmt: skip


def arrow_batches(scan: Scan) -> Iterator[pyarrow.RecordBatch]:
    """Iterate the batches of a scan as pyarrow's."""
    import pyarrow

    while (batch := scan.next_batch()) is not None:
        yield pyarrow.record_batch(batch)
