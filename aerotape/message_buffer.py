"""What was taken from a stream and has been given to nobody yet.

A signal's handler may raise (Ctrl-C does), and Python lets it do so where a call returns: what the
call has returned is lost then. From a stream that would be messages, which do not come again. So
they are put into a `Backlog` within the one call that takes them, and where they are given out no
call comes behind the note that they have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from aerotape.message import Message

# Without a look at how many fields there are: the polls have them right.
_new: Final = tuple.__new__


class Backlog:
    """Messages as the native polls return them. For one thread at a time."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        """Begin with none."""
        # The oldest is the last.
        self._fields: list[tuple[Any, ...]] = []

    def __bool__(self) -> bool:
        return bool(self._fields)

    def take(self, poll: Callable[..., list[tuple[Any, ...]]], *arguments: object) -> None:
        """Poll a stream and keep what comes; no interrupt comes between the two."""
        polled = map(poll, *((each,) for each in arguments))
        self._fields[:0] = chain.from_iterable(map(reversed, polled))

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
