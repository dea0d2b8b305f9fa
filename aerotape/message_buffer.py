"""Messages that were polled from a stream and not yet returned to the user.

An interrupt (see `uninterrupted`) must lose no message, since a stream delivers each only once. So
one uninterrupted call both polls and stores, and a message is dropped from the buffer by the last
operation before it is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from aerotape.message import Message
from aerotape.uninterrupted import stack_uninterrupted

# Without a look at how many fields there are: the polls have them right.
_new: Final = tuple.__new__


class MessageBuffer:
    """Messages as the native polls return them. For one thread at a time."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        """Begin with none."""
        # The oldest is the last.
        self._fields: list[tuple[Any, ...]] = []

    def __bool__(self) -> bool:
        return bool(self._fields)

    def take(self, poll: Callable[..., list[tuple[Any, ...]]], *arguments: object) -> None:
        """Poll a stream and store the messages that it returns, uninterrupted."""
        stack_uninterrupted(self._fields, poll, *arguments)

    def oldest(self) -> tuple[Any, ...]:
        """Return the oldest, as the poll has given it; it stays."""
        return self._fields[-1]

    def drop_oldest(self) -> None:
        """Note that the oldest has been given out."""
        del self._fields[-1]

    def next_message(self) -> Message:
        """Give out the oldest."""
        message = _new(Message, self._fields[-1])
        del self._fields[-1]
        return message

    def drain(self) -> Iterator[Message]:
        """Give out one after the other; those that are not taken stay."""
        fields = self._fields
        while fields:
            message = _new(Message, fields[-1])
            del fields[-1]
            yield message

    def messages(self) -> list[Message]:
        """Give out all."""
        messages = list(map(Message._make, reversed(self._fields)))
        del self._fields[:]
        return messages
