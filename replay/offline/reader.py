"""Reading recordings offline, from the segment files of an archive directory.

Needs no daemon and disturbs none: the archive's files are only read, and only up to the recorded
position, so an archive may be recording. Scanning is native (`native/format/src/scan/`); this
module connects it to `aerotape.catalog.directory` and returns messages as `Message` or, with
pyarrow, as Arrow record batches.

A message belongs to the range of positions in which its first frame begins. Adjacent ranges
therefore return each message exactly once, and need not end at frame boundaries. Fragments of
incomplete messages are left out: the tail of a message whose beginning was not recorded (an image
that was joined in the middle of it), and the beginning of one whose end was not recorded.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

from aerotape import _native
from aerotape.catalog.directory import recording_key
from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.segment.scan_range import ScanRange
from aerotape.catalog.time_index.index import TimeIndex
from aerotape.errors import ConfigurationError, SegmentError, StorageError
from aerotape.frame_header import HEADER_LENGTH
from aerotape.message import Message
from aerotape.replay.offline.read_mode import Mode, parse_mode
from aerotape.replay.offline.selection import EVERYTHING, Selection
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import pyarrow

    from aerotape.catalog.directory import StoredRecording
    from aerotape.frame_header import ChecksumName

COLUMNS: Final[tuple[str, ...]] = _native.SCAN_COLUMNS
"""All columns in table order; the last, `_corrupt`, is for mode PERMISSIVE."""


_COUNTED_ROWS: Final = 4096


class Scan(Protocol):
    """A scan of a range, such as `_native.SegmentScan`."""

    @property
    def schema(self) -> Any:
        """Schema of the batches (Arrow's C interface)."""

    def next_batch(self) -> Any:
        """Return the next record batch (Arrow's C interface); None at the end (SegmentError)."""

    def next_messages(self) -> list[tuple[int, int, int, int, int, int, bytes]] | None:
        """Return the next messages, None at the end (SegmentError)."""

    @property
    def rows(self) -> int:
        """Messages returned so far."""

    @property
    def skipped_fragments(self) -> int:
        """Fragments of incomplete messages so far."""

    @property
    def unfinished_fragments(self) -> int:
        """Fragments of a message that had not ended at the limit."""

    @property
    def dropped_messages(self) -> int:
        """Damaged messages left out so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRange(ScanRange):
    """A range of an opened archive directory, which may be in remote storage.

    Attributes:
        storage: options of remote storage.
        imported_from: the scope of an imported recording, unsigned; None for an archive's own.
    """

    storage: StorageOptions = NO_OPTIONS
    imported_from: int | None = None

    @property
    def key(self) -> int:
        """Id of the recording among all recordings of a store, as of `StoredRecording`."""
        return recording_key(self.imported_from, self.recording_id)

    @property
    def positions(self) -> tuple[int, int]:
        """The first position, and the first one after the range."""
        return self.from_position, self.to_position

    @property
    def length(self) -> int:
        """Bytes of the recording that the range covers."""
        return self.to_position - self.from_position

    def part(self, from_position: int, to_position: int) -> RecordingRange:
        """Return a sub-range of this range."""
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
        mode: Mode = "FAILFAST",
    ) -> Scan:
        """Prepare the scan of this range (ConfigurationError)."""
        mode = parse_mode(mode)
        place = parse_location(self.archive_dir)
        remote = isinstance(place, UrlPath)
        try:
            scan = _native.SegmentScan(
                self,
                columns=columns,
                checksum=checksum,
                batch_rows=batch_rows,
                batch_bytes=batch_bytes,
                mode=mode,
                given=remote,
            )
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        if not isinstance(place, UrlPath):
            return scan
        from aerotape.replay.offline.remote_scan import RemoteScan

        return RemoteScan(scan, self, place)


def recording_range(
    recording: StoredRecording, selection: Selection = EVERYTHING
) -> RecordingRange:
    """Return the range of a recording that a selection has; it may be empty.

    Of times it has what was not certainly recorded at others
    (`aerotape.catalog.time_index.index`).

    Raises:
        CodecError: to seek, and a message is not a record of a raft journal.
        SegmentError: to find a record, a segment file is missing, too short or damaged.
    """
    return counted(recording, bounded_range(recording, selection, stacklevel=4), selection)


def bounded_range(
    recording: StoredRecording, selection: Selection, *, stacklevel: int = 2
) -> RecordingRange:
    """As `recording_range`, but without the number of messages (see `counted`).

    Args:
        recording: the recording.
        selection: the selection.
        stacklevel: of a warning that the time index is damaged.
    """
    begin, end = selection.from_position, selection.to_position
    start = recording.start_position
    limit = max(_limit_position(recording), start)
    begin = start if begin is None else min(max(begin, start), limit)
    end = limit if end is None else min(end, limit)
    if selection.times:
        index = TimeIndex.of(recording, selection.times)
        if index.problem:
            warnings.warn(index.problem, RuntimeWarning, stacklevel=stacklevel)
        earliest, latest = index.positions(selection.times)
        begin, end = max(begin, earliest), min(end, latest)
    if (target := selection.seek) is not None:
        from aerotape.replay.offline.seek import seek_position

        begin = max(begin, seek_position(range_of(recording, start, limit, limit), target))
    return range_of(recording, begin, max(begin, end), limit)


def counted(
    recording: StoredRecording, part: RecordingRange, selection: Selection
) -> RecordingRange:
    """Return the end of a range with its newest, or the begin with its first messages.

    All of it if the selection has no number of them. Errors as `recording_range`.
    """
    if selection.last is not None:
        from aerotape.replay.offline.newest import newest_part

        return newest_part(recording, part, selection.last)
    return part if selection.first is None else _first_part(part, selection.first)


def _first_part(part: RecordingRange, count: int) -> RecordingRange:
    """Return the begin of a range that has its first messages; all of it if it has no more."""
    if count == 0:
        return part.part(part.from_position, part.from_position)
    scan = part.scan(batch_rows=min(count, _COUNTED_ROWS), batch_bytes=1 << 20)
    try:
        while (batch := scan.next_messages()) is not None:
            if len(batch) >= count:
                _, end_position, *_ = batch[count - 1]
                return part.part(part.from_position, min(end_position, part.to_position))
            count -= len(batch)
    except SegmentError:
        pass  # the scan that returns the messages before the damage reports it
    return part


def selected_messages(recording: StoredRecording, selection: Selection) -> Iterator[Message]:
    """Iterate the messages of a recording that a selection has, as `Recording.messages`."""
    part = recording_range(recording, selection)
    return messages_of(part, part.scan(checksum=selection.checksum))


def _limit_position(recording: StoredRecording) -> int:
    """Return the position up to which a recording is to be scanned.

    If the file in which it may end cannot be read, the files before it can. The scan reports the
    file when it reaches it.
    """
    try:
        return recording.recorded_position
    except StorageError as error:
        for segment in recording.segment_files():
            if str(segment.path) == str(error.path):
                return segment.base_position + HEADER_LENGTH
        raise


def range_of(
    recording: StoredRecording,
    from_position: int,
    to_position: int,
    limit_position: int,
    *,
    from_boundary: bool = False,
) -> RecordingRange:
    """Return a range of positions that are known to be recorded (see `RecordingRange`)."""
    return RecordingRange.of(
        recording.archive_dir,
        recording.descriptor,
        from_position,
        to_position,
        limit_position,
        from_boundary=from_boundary,
        storage=recording.storage,
        imported_from=recording.imported_from,
    )


def messages_of(part: RecordingRange, scan: Scan) -> Iterator[Message]:
    """Iterate the messages of a range from its scan.

    While it looks for the next one, no message is held that its caller does not hold.
    """

    def of(batch: list[tuple[int, int, int, int, int, int, bytes]]) -> Iterator[Message]:
        for position, end_position, term_id, term_offset, flags, reserved, payload in batch:
            yield Message(
                payload, end_position, part.session_id, part.stream_id, term_id, term_offset,
                flags, reserved, position, part.recording_id,
            )  # fmt: skip

    return chain.from_iterable(map(of, iter(scan.next_messages, None)))


def arrow_batches(scan: Scan) -> Iterator[pyarrow.RecordBatch]:
    """Iterate the batches of a scan as pyarrow's."""
    import pyarrow

    while (batch := scan.next_batch()) is not None:
        yield pyarrow.record_batch(batch)
