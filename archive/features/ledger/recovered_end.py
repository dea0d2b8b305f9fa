"""The end of a ledger's recording after a crash.

Frames that do not fit their places, and one that may not be written whole, end a plain recording.
Of a ledger more is known. As long as the machine runs, all is there that was written. After a power
cut all is that was forced to storage, which is noted about once in a second; it belongs to the
recording also if it is lost now. Which entries are whole show their digests, when the log is used:
what comes after the last sound one may be torn, what is before it is damaged.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from aerotape import _native
from aerotape.archive.features.ledger.alias import is_of_ledger
from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.metadata import FILE_NAME
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.recovery.stop_position import RecordingEnd
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.catalog.segment.scan_range import ScanRange
from aerotape.catalog.segment_files import SegmentFile, segment_file_name, segment_file_size
from aerotape.codecs.generated.ledger_control import DigestType
from aerotape.errors import AerotapeError
from aerotape.frame_header import align_frame

_NOT_CHECKED = (DigestType.HMAC, DigestType.DUMMY)


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


def recovered_end(
    archive_dir: Path, recording: RecordingDescriptor, end: RecordingEnd
) -> RecordingEnd:
    """Return the end of a recording that has no stop position, if it is that of a ledger.

    Args:
        archive_dir: the archive directory.
        recording: the recording.
        end: of the recording, as its frames show it.

    Raises:
        StorageError: its file cannot be read.
    """
    if not is_of_ledger(recording):
        return end
    known = _known(archive_dir, recording.recording_id)
    position = max(end.position, known.forced)
    if known.is_all_there or known.is_checked:
        written = _written_end(recording, end)
        limit = segment_base(recording, max(position, written)) + recording.segment_file_length
        gaps = _gaps(archive_dir, recording, end.position, limit)
        # Where whole frames end: what is not whole before others is damaged.
        reaches = bool(gaps) and gaps[-1][1] == limit
        position = max(position, gaps[-1][0] if reaches else limit)
        if known.is_all_there:
            position = max(position, written)
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
    position, limit = end.position, None
    for segment in (*filter(None, [end.segment]), *end.beyond):
        if limit is not None and segment.base_position != limit:
            # It may be there by mistake.
            break
        limit = segment.base_position + recording.segment_file_length
        begin = max(position - segment.base_position, 0)
        segment_file_size(segment.path)
        data_end = find_data_end(segment.path, begin)
        if data_end > begin:
            position = segment.base_position + align_frame(data_end)
    return position


def _gaps(
    archive_dir: Path, recording: RecordingDescriptor, begin: int, limit: int
) -> list[tuple[int, int]]:
    """Return begin and end of what is not a frame between two positions, bytes; the last one, too.

    Raises:
        StorageError: a file cannot be read.
    """
    part = ScanRange.of(archive_dir, recording, begin, limit, limit, from_boundary=True)
    counting = _native.RecordingPass(part, [])
    while not counting.advance(limit):
        pass
    counts = counting.counts()
    gaps = [(gap[0], gap[1]) for gap in counts.gaps]
    # More than those are listed: the end is not known by them.
    return gaps if counts.gap_count == len(gaps) else [*gaps, (limit, limit)]


def _known(archive_dir: Path, recording_id: int) -> _Known:
    """Return what the metadata shows; if that cannot be read, nothing is taken for torn.

    A recording that the metadata does not have is a plain one: a copy of a ledger's recording.
    """
    plain = _Known(0, is_all_there=False, is_checked=False)
    if not (archive_dir / FILE_NAME).exists():
        return plain
    unknown = plain._replace(is_all_there=True)
    # An archive without ledgers starts without SQLite.
    from aerotape.archive.features.ledger.metadata_store import MetadataStore

    try:
        with closing(MetadataStore.open(archive_dir)) as store:
            ledger = store.recordings().get(recording_id)
            if ledger is None:
                return plain
            forced = store.forced(ledger)
            is_checked = store.get(ledger).digest_type not in _NOT_CHECKED
    except AerotapeError:
        return unknown
    if forced is None:
        return unknown._replace(is_checked=is_checked)
    return _Known(forced.position, forced.boot == boot_id(), is_checked)
