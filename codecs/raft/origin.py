"""The segment that a recorded record of a journal came from, in its frames' reserved value.

With it a recording can be exported to the segment files it was imported from, byte for byte, also
after a replication or from a running archive. The bits of the 64-bit value, from the lowest:

=======  ====================================================================================
bits
=======  ====================================================================================
0-23     id of the segment
24-54    length of the segment file, bytes
55-58    format of its descriptor: 1 for 1.0, 2 for 8.2, 3 for 8.3
59       the descriptor has the last index and position
60-62    number of files after it that no segment uses yet; newer releases create one in advance
63       zero
=======  ====================================================================================

A record that was not imported from a journal has the reserved value 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aerotape.codecs.raft.formats import FORMATS, JournalFormat
from aerotape.errors import CodecError

_ID_BITS: Final = 24
_SIZE_BITS: Final = 31
_FORMAT_BITS: Final = 4
_UNUSED_BITS: Final = 3
_FORMATS: Final = tuple(FORMATS.values())


@dataclass(frozen=True, slots=True)
class Origin:
    """A segment.

    Attributes:
        segment_id: number of the segment, from 1.
        segment_size: length of its file, bytes.
        format: of its descriptor.
        is_complete: the descriptor has the last index and position.
        unused: number of files after it without a segment; at most 7 are stored.
    """

    segment_id: int
    segment_size: int
    format: JournalFormat
    is_complete: bool
    unused: int = 0

    def encode(self) -> int:
        """Return the reserved value (CodecError: a number is too large)."""
        if not 0 < self.segment_id < 1 << _ID_BITS or not 0 < self.segment_size < 1 << _SIZE_BITS:
            raise CodecError(
                f"segment {self.segment_id} of {self.segment_size} bytes cannot be stored in a "
                f"recording: ids are below {1 << _ID_BITS}, lengths below {1 << _SIZE_BITS}"
            )
        flags = _FORMATS.index(self.format) + 1 | self.is_complete << _FORMAT_BITS
        flags |= min(self.unused, (1 << _UNUSED_BITS) - 1) << _FORMAT_BITS + 1
        return self.segment_id | self.segment_size << _ID_BITS | flags << _ID_BITS + _SIZE_BITS

    @classmethod
    def decode(cls, reserved_value: int) -> Origin | None:
        """Return the segment in a reserved value; None if it holds none."""
        flags = reserved_value >> _ID_BITS + _SIZE_BITS
        form = flags & (1 << _FORMAT_BITS) - 1
        if reserved_value < 0 or not 0 < form <= len(_FORMATS):
            return None
        return cls(
            reserved_value & (1 << _ID_BITS) - 1,
            reserved_value >> _ID_BITS & (1 << _SIZE_BITS) - 1,
            _FORMATS[form - 1],
            bool(flags >> _FORMAT_BITS & 1),
            flags >> _FORMAT_BITS + 1,
        )
