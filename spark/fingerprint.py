"""Whether a recording's bytes are still those that were converted.

Reading them all again would cost as much as converting them. What changes a recording (truncating
and recording on, another recording under the same id) changes all that follows, so the last bytes
of what was converted tell.
"""

from __future__ import annotations

import zlib
from typing import Final

from aerotape.catalog.directory import Recording
from aerotape.catalog.segments import segment_base_position
from aerotape.errors import StorageError

_TAIL_LENGTH: Final = 64 * 1024


def tail_crc32(recording: Recording, from_position: int, to_position: int) -> int | None:
    """CRC-32 of the last bytes of a range: 64 KiB at most, of one segment file.

    Args:
        recording: the recording as it is now.
        from_position: where the range begins.
        to_position: where it ends, behind it.

    Returns:
        The checksum; None when the recording no longer begins before the range's end, or its
        segment file cannot be read.
    """
    descriptor = recording.descriptor
    base = segment_base_position(
        recording.start_position,
        to_position - 1,
        descriptor.term_buffer_length,
        descriptor.segment_file_length,
    )
    begin = max(from_position, to_position - _TAIL_LENGTH, base)
    if begin >= to_position or to_position <= recording.start_position:
        return None
    try:
        with recording.open_segment(base) as segment:
            segment.seek(begin - base)
            data = segment.read(to_position - begin)
    except (OSError, StorageError):
        return None
    return zlib.crc32(data)
