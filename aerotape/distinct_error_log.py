"""The distinct error log at the end of a mark file, in Agrona's format.

Each error is stored once, with its count and times of observation, so that a repeated fault does
not displace the others. An entry is: length (int32, of the whole entry), observation count
(int32), last observation (int64, epoch milliseconds), first observation (int64), then the text in
UTF-8; entries start on 8-byte boundaries and end where a length is not positive. The length is
stored last, so a reader never sees half an entry.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
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


class DistinctErrorLog:
    """Writes an error buffer that lies within a mark file."""

    def __init__(self, store: Callable[[int, bytes], None], offset: int, length: int) -> None:
        """Prepare to write `length` bytes from `offset` with `store(offset, data)`."""
        self._store = store
        self._begin = offset
        self._end = offset + length
        # Offset and count.
        self._known: dict[str, tuple[int, int]] = {}
        self._next = offset

    def clear(self) -> None:
        """Forget all entries."""
        self._store(self._begin, bytes(self._end - self._begin))
        self._known.clear()
        self._next = self._begin

    def record(self, text: str, now_ms: int) -> bool:
        """Count an error. Return False if there is no space for a new one."""
        known = self._known.get(text)
        if known is not None:
            offset, count = known[0], known[1] + 1
            self._store(offset + 8, _TIMESTAMP.pack(now_ms))
            self._store(offset + 4, _COUNT.pack(count))
            self._known[text] = (offset, count)
            return True
        # Names of files may contain bytes that are not text.
        encoded = text.encode("utf-8", "backslashreplace")
        offset, length = self._next, _ENTRY.size + len(encoded)
        if offset + length > self._end:
            return False
        entry = _ENTRY.pack(length, 1, now_ms, now_ms) + encoded
        self._store(offset + _COUNT.size, entry[_COUNT.size :])
        self._store(offset, entry[: _COUNT.size])
        self._known[text] = (offset, 1)
        self._next = offset + (length + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        return True
