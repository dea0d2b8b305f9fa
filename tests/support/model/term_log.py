"""The bytes of Aeron's log buffers for given messages, according to its documentation.

A model of an exclusive publication: data frames with 32-byte headers (Aeron protocol: data frame),
messages longer than a frame's payload in fragments, and a padding frame where a message does not
fit into the rest of a term. The body of a padding frame is zero here, as in a segment file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

HEADER = struct.Struct("<iBBHiiiiq")
BEGIN, END = 0x80, 0x40
PADDING, DATA = 0, 1


def aligned(length: int) -> int:
    """Round up to the 32-byte frame alignment."""
    return (length + 31) & ~31


class TermLog:
    """Collects the frames of messages, from position 0 of a stream on."""

    def __init__(
        self,
        *,
        session_id: int,
        stream_id: int,
        initial_term_id: int,
        term_length: int,
        max_payload_length: int,
    ) -> None:
        self.session_id = session_id
        self.stream_id = stream_id
        self.initial_term_id = initial_term_id
        self.term_length = term_length
        self.max_payload_length = max_payload_length
        self.data = bytearray()
        self.frame_positions: list[int] = []

    def append(self, messages: Iterable[bytes]) -> None:
        """Append messages as `offer` does."""
        for message in messages:
            parts = [
                message[at : at + self.max_payload_length]
                for at in range(0, max(len(message), 1), self.max_payload_length)
            ]
            required = sum(aligned(32 + len(part)) for part in parts)
            left = self.term_length - len(self.data) % self.term_length
            if required > left:
                self._frame(PADDING, BEGIN | END, bytes(left - 32))
            for index, part in enumerate(parts):
                flags = BEGIN * (index == 0) | END * (index == len(parts) - 1)
                self._frame(DATA, flags, part)

    def _frame(self, frame_type: int, flags: int, payload: bytes) -> None:
        position = len(self.data)
        self.frame_positions.append(position)
        terms, term_offset = divmod(position, self.term_length)
        term_id = (self.initial_term_id + terms + (1 << 31)) % (1 << 32) - (1 << 31)
        length = 32 + len(payload)
        self.data += HEADER.pack(
            length, 0, flags, frame_type, term_offset, self.session_id, self.stream_id, term_id, 0
        )
        self.data += payload.ljust(aligned(length) - 32, b"\0")


def frames(data: bytes | bytearray) -> list[tuple[int, int, int, int]]:
    """Return (offset, aligned length, type, session id) of the frames up to the first gap."""
    found = []
    offset = 0
    while offset + 32 <= len(data):
        length, _, _, frame_type, _, session_id, _, _, _ = HEADER.unpack_from(data, offset)
        if length <= 0:
            break
        found.append((offset, aligned(length), frame_type, session_id))
        offset += aligned(length)
    return found
