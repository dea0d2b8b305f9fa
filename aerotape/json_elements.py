"""Files of JSON whose elements are read one by one, so that a long file needs little memory."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

MAX_ELEMENT: Final = 1 << 20
"""The most characters of an element, or of another value."""
_PART: Final = 64 << 10
_SPACE: Final = re.compile(r"[ \t\n\r]*")


def elements_of(file: BinaryIO, name: str | None = None) -> Iterator[Any]:
    """Iterate over the elements of an array in a file; those before an error are returned first.

    Args:
        file: in UTF-8, from its begin on.
        name: of the member of an object that has the array; None: the file is the array.

    Raises:
        ValueError: the file is not JSON, has no such array, or a value of more than a MiB.
        RecursionError: a value is nested too deep.
        OSError: the file cannot be read.
    """
    text = _Text(file)
    if name is None:
        yield from text.elements()
    else:
        is_found = False
        for member in text.members():
            if member == name and not is_found:
                is_found = True
                yield from text.elements()
            else:
                text.value()
        if not is_found:
            raise ValueError(f"it has no {name!r}")
    if text.following():
        raise text.unexpected("its end")


class _Text:
    """The text of a file, of which only what is being read is in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = io.TextIOWrapper(file, "utf-8", newline="")
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._at = "", 0

    def members(self) -> Iterator[str]:
        """Iterate over the names of an object's members; the caller reads the value of each."""
        for _ in self._items("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise ValueError(f"expected a name, not {str(name)[:40]}")
            self._take(":")
            yield name

    def elements(self) -> Iterator[Any]:
        """Iterate over the elements of an array."""
        for _ in self._items("[", "]"):
            yield self.value()

    def value(self) -> Any:
        """Read a value."""
        self.following()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._more():
                    raise
            else:
                self._check(end - self._at)
                if end < len(self._text):
                    self._at = end
                    return value
                if not self._more():  # at the end; else a number may go on
                    self._at = len(self._text)
                    return value

    def following(self) -> str:
        """Skip space, and return the character after it; "" at the end."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if end < len(self._text):
                self._at = end
                return self._text[end]
            if not self._more():
                return ""

    def unexpected(self, wanted: str) -> ValueError:
        """Return the error for what follows."""
        return ValueError(f"expected {wanted}, not {self.following()!r}")

    def _items(self, begin: str, end: str) -> Iterator[None]:
        """Stop at each item of an object or array, for the caller to read it."""
        self._take(begin)
        if self.following() != end:
            yield
            while self.following() == ",":
                self._at += 1
                yield
        self._take(end)

    def _take(self, wanted: str) -> None:
        if self.following() != wanted:
            raise self.unexpected(repr(wanted))
        self._at += 1

    def _more(self) -> bool:
        """Read on, as much again as is in memory; return whether there was something."""
        left = self._text[self._at :]
        self._check(len(left))
        part = self._file.read(max(_PART, len(left)))
        self._text, self._at = left + part, 0
        return bool(part)

    def _check(self, length: int) -> None:
        if length > MAX_ELEMENT:
            raise ValueError(f"a value has more than {MAX_ELEMENT} characters")
