"""Messages of subscriptions and replays, and the buffer of those not yet returned to the user.

An interrupt (see `uninterrupted`) must lose no message, since a stream delivers each only once. So
one uninterrupted call both polls and stores, and a message is dropped from the buffer by the last
operation before it is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from aerotape.frame_header import HEADER_LENGTH
from aerotape.uninterrupted import stack_uninterrupted

_MIN_TERM_LENGTH: Final = 64 * 1024
# A message is at most an eighth of a term (and 16 MiB).
_MAX_MESSAGE_SHARE: Final = 8
# Skips the check of the number of fields, which the polls guarantee.
_new: Final = tuple.__new__


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
        end_position: position in the stream at the end of the message's last frame, bytes.
        session_id: session of the publication; of a replayed message, of the recording.
        stream_id: stream of the publication; of a replayed message, of the recording.
        term_id: of the message's first frame, like the three that follow.
        term_offset: bytes.
        flags: header flags.
        reserved_value: the header's reserved field, set by the publisher.
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
        at_least = (payload_length + 2 * HEADER_LENGTH - 1) & -HEADER_LENGTH
        return at_least + (self.end_position - self.term_offset - at_least) % modulus


class MessageBuffer:
    """Messages as the native polls return them. For one thread at a time."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        """Create an empty buffer."""
        # The oldest is the last.
        self._fields: list[tuple[Any, ...]] = []

    def __bool__(self) -> bool:
        return bool(self._fields)

    def take(self, poll: Callable[..., list[tuple[Any, ...]]], *arguments: object) -> None:
        """Poll a stream and store the messages that it returns, uninterrupted."""
        stack_uninterrupted(self._fields, poll, *arguments)

    def oldest(self) -> tuple[Any, ...]:
        """Return the oldest message, as polled, without removing it."""
        return self._fields[-1]

    def drop_oldest(self) -> None:
        """Remove the oldest message."""
        del self._fields[-1]

    def next_message(self) -> Message:
        """Remove and return the oldest message."""
        message = _new(Message, self._fields[-1])
        del self._fields[-1]
        return message

    def drain(self) -> Iterator[Message]:
        """Iterate over the messages, removing each; those not taken stay."""
        fields = self._fields
        while fields:
            message = _new(Message, fields[-1])
            del fields[-1]
            yield message

    def messages(self) -> list[Message]:
        """Remove and return all messages."""
        messages = list(map(Message._make, reversed(self._fields)))
        del self._fields[:]
        return messages
