"""The end of a ledger's recording after a crash.

Frames that do not fit their places, and one that may not be written whole, end a plain recording.
Of a ledger more is known. As long as the machine runs, all is there that was written: later frames
show that what precedes them is damaged, and not torn. After a power cut that holds up to where the
recording was forced to storage. Whether a last entry is whole shows its digest, when it is used.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from aerotape import _native
from aerotape.archive.features.ledger.alias import ledger_of_channel
from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.metadata import FILE_NAME
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.recovery.stop_position import RecordingEnd
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.catalog.segment.scan_range import ScanRange
from aerotape.codecs.generated.ledger_control import DigestType
from aerotape.errors import AerotapeError
from aerotape.frame_header import align_frame

_ALL = (1 << 63) - 1
_NOT_CHECKED = (DigestType.HMAC, DigestType.DUMMY)


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
    named = ledger_of_channel(recording.original_channel)
    if named is None or end.segment is None or end.data_end <= end.offset:
        return end
    try:
        written, is_checked = _written(archive_dir, recording.recording_id)
    except AerotapeError:
        # It ends as a plain recording does, and what follows is in the quarantine.
        return end
    path, base = end.segment.path, end.segment.base_position
    limit = base + recording.segment_file_length
    part = ScanRange.of(archive_dir, recording, end.position, limit, limit, from_boundary=True)
    counting = _native.RecordingPass(part, [])
    while not counting.advance(limit):
        pass
    counts = counting.counts()
    gaps = counts.gaps
    # Whole frames end at the first gap, others at the last one, which may reach to the limit.
    first = gaps[0][0] if gaps else limit
    last = gaps[-1][0] if gaps and gaps[-1][1] == limit else limit
    position = max(end.position, min(written, base + align_frame(end.data_end)))
    if is_checked or first <= written:
        position = max(position, first)
    if last <= written and counts.gap_count == len(gaps):
        position = max(position, last)
    if position == end.position:
        return end
    data_end = max(find_data_end(path, position - base), position - base)
    return replace(
        end,
        position=position,
        offset=position - base,
        data_end=data_end,
        torn=end.torn if data_end > position - base else "",
        damaged_positions=(*end.damaged_positions, *(gap[0] for gap in gaps if gap[0] < position)),
    )


def _written(archive_dir: Path, recording_id: int) -> tuple[int, bool]:
    """Return up to where a ledger's recording was written, and whether digests can be checked."""
    if not (archive_dir / FILE_NAME).exists():
        return 0, False
    # An archive without ledgers starts without SQLite.
    from aerotape.archive.features.ledger.metadata_store import MetadataStore

    with closing(MetadataStore.open(archive_dir)) as store:
        ledger = store.recordings().get(recording_id)
        if ledger is None:
            return 0, False
        forced = store.forced(ledger)
        is_checked = store.get(ledger).digest_type not in _NOT_CHECKED
    if forced is None:
        return 0, is_checked
    return (_ALL if forced.boot == boot_id() else forced.position), is_checked
