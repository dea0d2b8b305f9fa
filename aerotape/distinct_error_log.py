"""The distinct error log at the end of a mark file, in Agrona's format.

Each error is stored once, with its count and times of observation, so that a repeated fault does
not displace the others. An entry is: length (int32, of the whole entry), observation count
(int32), last observation (int64, epoch milliseconds), first observation (int64), then the text in
UTF-8; entries start on 8-byte boundaries and end where a length is not positive. The length is
stored last, so a reader never sees half an entry.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

_ENTRY = struct.Struct("<iiqq")
_COUNT = struct.Struct("<i")
_TIMESTAMP = struct.Struct("<q")
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class ErrorObservation:
    """An error and how often it was seen; timestamps in epoch milliseconds."""

    count: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    text: str


def read_errors(data: bytes | memoryview) -> list[ErrorObservation]:
    """Read the entries of an error buffer; stops quietly at the first that cannot be one."""
    view, offset, found = memoryview(data), 0, []
    while offset + _ENTRY.size <= len(view):
        length, count, last_ms, first_ms = _ENTRY.unpack_from(view, offset)
        if length < _ENTRY.size or offset + length > len(view):
            break
        text = bytes(view[offset + _ENTRY.size : offset + length]).decode("utf-8", "replace")
        found.append(ErrorObservation(count, first_ms, last_ms, text))
        offset += (length + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    return found


class ErrorLog:
    """Writes an error buffer that lies within a mapped mark file."""

    def __init__(self, mapping: mmap.mmap, offset: int, length: int) -> None:
        self._map = mapping
        self._begin = offset
        self._end = offset + length
        self._known: dict[str, int] = {}
        self._next = offset

    def clear(self) -> None:
        """Forget all entries."""
        self._map[self._begin : self._end] = bytes(self._end - self._begin)
        self._known.clear()
        self._next = self._begin

    def record(self, text: str, now_ms: int) -> bool:
        """Count an error. Return False if there is no space for a new one."""
        offset = self._known.get(text)
        if offset is not None:
            (count,) = _COUNT.unpack_from(self._map, offset + 4)
            _TIMESTAMP.pack_into(self._map, offset + 8, now_ms)
            _COUNT.pack_into(self._map, offset + 4, count + 1)
            return True
        # Names of files may contain bytes that are not text.
        encoded = text.encode("utf-8", "backslashreplace")
        offset, length = self._next, _ENTRY.size + len(encoded)
        if offset + length > self._end:
            return False
        begin = offset + _ENTRY.size
        self._map[begin : begin + len(encoded)] = encoded
        _COUNT.pack_into(self._map, offset + 4, 1)
        _TIMESTAMP.pack_into(self._map, offset + 8, now_ms)
        _TIMESTAMP.pack_into(self._map, offset + 16, now_ms)
        _COUNT.pack_into(self._map, offset, length)
        self._known[text] = offset
        self._next = offset + (length + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        return True
