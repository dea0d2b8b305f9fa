"""What was taken from a stream and has been given to nobody yet.

A signal's handler may raise (Ctrl-C does), and Python lets it do so where a call returns: what the
call has returned is lost then. From a stream that would be messages, which do not come again. So
they are put into a `Backlog` within the one call that takes them, and where they are given out no
call comes behind the note that they have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from aerotape.message import Message


class Backlog:
    """Messages as the native polls return them, oldest first. For one thread at a time."""

    __slots__ = ("_fields", "_given")

    def __init__(self) -> None:
        """Begin with none."""
        self._fields: list[tuple[Any, ...]] = []
        self._given = 0

    def __bool__(self) -> bool:
        return self._given < len(self._fields)

    def take(self, poll: Callable[..., Iterable[tuple[Any, ...]]], *arguments: object) -> None:
        """Poll a stream and keep what comes; no interrupt comes between the two."""
        if not self:
            self._fields = []
            self._given = 0
        self._fields.extend(chain.from_iterable(map(poll, *((each,) for each in arguments))))

    def oldest(self) -> tuple[Any, ...]:
        """Return the oldest, as the poll has given it; it stays."""
        return self._fields[self._given]

    def drop_oldest(self) -> None:
        """Note that the oldest has been given out."""
        self._given += 1

    def next_message(self) -> Message:
        """Give out the oldest."""
        message = Message._make(self._fields[self._given])
        self._given += 1
        return message

    def messages(self) -> list[Message]:
        """Give out all."""
        messages = [Message._make(fields) for fields in self._fields[self._given :]]
        self._given += len(messages)
        return messages
