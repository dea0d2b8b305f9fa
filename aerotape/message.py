"""A message as a subscription or a replay gives it."""

from __future__ import annotations

from typing import Final, NamedTuple

_HEADER_LENGTH: Final = 32
_MIN_TERM_LENGTH: Final = 64 * 1024
# A message is at most an eighth of a term (and 16 MiB).
_MAX_MESSAGE_SHARE: Final = 8


class _MessageFields(NamedTuple):
    payload: bytes
    end_position: int
    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    flags: int
    reserved_value: int


class Message(_MessageFields):
    """A message, its fragments put back together.

    Attributes:
        payload: the bytes that were sent.
        end_position: position in the stream just behind the message's last frame, bytes.
        session_id: session of the publication; of a replayed message, of the recording.
        stream_id: stream of the publication; of a replayed message, of the recording.
        term_id: of the message's first frame, like the three that follow.
        term_offset: bytes.
        flags: header flags.
        reserved_value: what the publisher put into the header's reserved field.
    """

    __slots__ = ()

    @property
    def position(self) -> int:
        """Position in the stream where the message's first frame begins, bytes."""
        return self.end_position - self._framed_length()

    def _framed_length(self) -> int:
        # A message lies within a term, whose length is a power of two from 64 KiB up and at
        # least eight times the message: modulo such a length, positions are term offsets. The
        # frames take at least a header more than the payload and less than twice as much again,
        # so that there is one solution.
        payload_length = len(self.payload)
        modulus = max(_MIN_TERM_LENGTH, 1 << (payload_length * _MAX_MESSAGE_SHARE - 1).bit_length())
        at_least = (payload_length + 2 * _HEADER_LENGTH - 1) & -_HEADER_LENGTH
        return at_least + (self.end_position - self.term_offset - at_least) % modulus
