"""The end of a ledger's recording after a crash.

Frames that do not fit their places, and one that may not be written whole, end a plain recording.
Of a ledger more is known. As long as the machine runs, all is there that was written. After a power
cut all is that was forced to storage, which is noted about once in a second; it belongs to the
recording also if it is lost now. Which entries are whole show their digests, when the log is used:
what comes after the last sound one may be torn, what is before it is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from aerotape import _native
from aerotape.archive.features.ledger.alias import is_of_ledger
from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.metadata import FILE_NAME
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.recovery.stop_position import RecordingEnd
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.catalog.segment.placement import frame_end
from aerotape.catalog.segment.scan_range import ScanRange
from aerotape.catalog.segment_files import SegmentFile, segment_file_name, segment_file_size
from aerotape.codecs.generated.ledger_control import DigestType
from aerotape.errors import AerotapeError
from aerotape.frame_header import align_frame

if TYPE_CHECKING:
    from aerotape.catalog.recovery.refresh import Judge
class _Known(NamedTuple):
    """What is known of a ledger's recording.

    Attributes:
        forced: all up to here was on storage, bytes.
        is_all_there: no power cut is known that may have taken what was written.
        is_checked: digests show whether an entry is whole.
    """

    forced: int
    is_all_there: bool
    is_checked: bool


# Of a plain recording, such as a copy of a ledger's recording.
_PLAIN: Final = _Known(0, is_all_there=False, is_checked=False)
# Of one whose metadata cannot be read: nothing is taken for torn.
_UNKNOWN: Final = _Known(0, is_all_there=True, is_checked=False)


def recovery(archive_dir: Path) -> Judge:
    """Return what decides about the ends of recordings that have no stop position.

    It is called with the descriptor of a recording and its end, as its frames show it, and returns
    the end of a ledger's recording; of another one that end. For several threads (StorageError: a
    segment file cannot be read).
    """
    # Only if a ledger's recording has no stop position.
    read = cache(partial(_known, archive_dir))

    def judge(recording: RecordingDescriptor, end: RecordingEnd) -> RecordingEnd:
        if not is_of_ledger(recording):
            return end
        known = read()(recording.recording_id)
        return _end(archive_dir, recording, end, known)

    return judge


def _end(
    archive_dir: Path, recording: RecordingDescriptor, end: RecordingEnd, known: _Known
) -> RecordingEnd:
    position = max(end.position, known.forced)
    if known.is_all_there or known.is_checked:
        written = _written_end(recording, end)
        if written > end.position:
            term_length = recording.term_buffer_length
            limit = (max(position, written) // term_length + 1) * term_length
            gaps = _gaps(archive_dir, recording, end.position, limit)
            # Where whole frames end: what is not whole before others is damaged.
            reaches = bool(gaps) and gaps[-1][1] == limit
            last = gaps[-1][0] if reaches else limit
            if known.is_all_there:
                last = max(last, _end_of_frame(archive_dir, recording, last, written))
            position = max(position, last)
            damaged = tuple(gap[0] for gap in gaps if gap[0] < position)
            end = replace(end, damaged_positions=(*end.damaged_positions, *damaged))
    return end if position == end.position else _ending_at(archive_dir, recording, end, position)


def _ending_at(
    archive_dir: Path, recording: RecordingDescriptor, end: RecordingEnd, position: int
) -> RecordingEnd:
    """Return an end at a later position, bytes (StorageError)."""
    base, length = segment_base(recording, position), recording.segment_file_length
    if end.segment is not None and position == end.segment.base_position + length:
        base -= length
    path = archive_dir / segment_file_name(recording.recording_id, base)
    offset = data_end = position - base
    if path.exists():
        data_end = max(offset, find_data_end(path, offset))
    return replace(
        end,
        position=position,
        segment=SegmentFile(path, base),
        offset=offset,
        data_end=data_end,
        torn=end.torn if data_end > offset else "",
        beyond=tuple(each for each in end.beyond if each.base_position > base),
    )


def _written_end(recording: RecordingDescriptor, end: RecordingEnd) -> int:
    """Return where the last data ends in the files that follow each other, bytes."""
    if end.segment is None:
        return end.position
    position = end.segment.base_position + align_frame(max(end.data_end, end.offset))
    limit = end.segment.base_position
    for segment in end.beyond:
        limit += recording.segment_file_length
        if segment.base_position != limit:
            # It may be there by mistake.
            break
        segment_file_size(segment.path)
        data_end = find_data_end(segment.path, 0)
        if data_end:
            position = segment.base_position + align_frame(data_end)
    return position


def _end_of_frame(
    archive_dir: Path, recording: RecordingDescriptor, position: int, written: int
) -> int:
    """Return where the last frame ends, of which nothing is cut.

    Args:
        position: where whole frames end, bytes.
        written: where data ends, which is within a frame if its file has lost the rest.

    Raises:
        StorageError: a file cannot be read.
    """
    base = segment_base(recording, written - 1)
    path = archive_dir / segment_file_name(recording.recording_id, base)
    if segment_file_size(path) == recording.segment_file_length:
        return written
    base = segment_base(recording, position)
    path = archive_dir / segment_file_name(recording.recording_id, base)
    return frame_end(recording, path, base, position) or position


def _gaps(
    archive_dir: Path, recording: RecordingDescriptor, begin: int, limit: int
) -> list[tuple[int, int]]:
    """Return begin and end of each part between two positions that is no frame, bytes.

    Raises:
        StorageError: a file cannot be read.
    """
    gaps: list[tuple[int, int]] = []
    while True:
        part = ScanRange.of(archive_dir, recording, begin, limit, limit, from_boundary=True)
        counting = _native.RecordingPass(part, [])
        while not counting.advance(limit):
            pass
        counts = counting.counts()
        gaps += [(gap[0], gap[1]) for gap in counts.gaps]
        if counts.gap_count == len(counts.gaps):
            return gaps
        # Only the first ones are listed.
        begin = gaps[-1][1]


def _known(archive_dir: Path) -> Callable[[int], _Known]:
    """Read what the metadata shows of each recording."""
    if not (archive_dir / FILE_NAME).exists():
        return lambda _: _PLAIN
    # An archive without ledgers starts without SQLite.
    from aerotape.archive.features.ledger.metadata_store import MetadataStore

    try:
        with closing(MetadataStore.open(archive_dir)) as store:
            found = store.forced_of_recordings()
    except AerotapeError:
        return lambda _: _UNKNOWN
    boot = boot_id()

    def known(recording_id: int) -> _Known:
        if recording_id not in found:
            return _PLAIN
        forced, digest_type = found[recording_id]
        if forced is None:
            return _UNKNOWN
        is_checked = digest_type is not DigestType.DUMMY
        return _Known(forced.position, forced.boot == boot, is_checked)

    return known
