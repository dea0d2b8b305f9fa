"""Messages of subscriptions and replays, and the buffer of those not yet returned to the user.

An interrupt (see `uninterrupted`) must lose no message, since a stream delivers each only once. So
one uninterrupted call both polls and stores, and a message is dropped from the buffer by the last
operation before it is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from aerotape.uninterrupted import stack_uninterrupted

# Skips the check of the number of fields, which the polls guarantee.
_new: Final = tuple.__new__


class Message(NamedTuple):
    """A message of a subscription, a replay or a recording, its fragments put back together.

    >>> message = next(recording.messages())
    >>> message.recording_id, message.position, message.end_position, message.payload
    (0, 0, 64, b'first')

    Attributes:
        payload: the bytes that were sent.
        end_position: position in the stream at the end of the message's last frame, bytes.
        session_id: session of the publication. Of a recording, the descriptor's: with checksums,
            frames do not contain it.
        stream_id: stream of the publication, or of the recording.
        term_id: of the message's first frame, like the three that follow.
        term_offset: bytes.
        flags: header flags: 0xC0, and any others that the publisher set.
        reserved_value: the header's reserved field, set by the publisher.
        position: position in the stream where the message's first frame begins, bytes.
        recording_id: the recording that the message was read or replayed from; None of a live one.
    """

    payload: bytes
    end_position: int
    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    flags: int
    reserved_value: int
    position: int
    recording_id: int | None = None

    @property
    def length(self) -> int:
        """Length of the payload in bytes."""
        return len(self.payload)


class MessageBuffer:
    """Messages as the native polls return them. For one thread at a time."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
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
