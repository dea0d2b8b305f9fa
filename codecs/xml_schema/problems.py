"""The mistakes in a schema: all of them are collected, each with its file, line and element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from aerotape.errors import SchemaError

if TYPE_CHECKING:
    from aerotape.codecs.xml_schema.document import Element

# A hostile file has a mistake in every byte.
_MAX_PROBLEMS: Final = 1000
_MAX_LENGTH: Final = 300


class MistakeError(Exception):
    """A mistake in an element, not reported yet.

    Attributes:
        text: the description; empty if the cause has been reported already.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.text = text


class Problems:
    """Collects the mistakes in a schema."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def report(self, element: Element, text: str) -> None:
        """Add a mistake in an element.

        Raises:
            SchemaError: there are too many.
        """
        self._found.append(f"{element.place}: {_short(element.label)}: {_short(text)}")
        if len(self._found) == _MAX_PROBLEMS:
            raise SchemaError(self._found)

    @contextmanager
    def of(self, element: Element) -> Iterator[None]:
        """Report a `MistakeError` that is raised within; the code after this continues."""
        try:
            yield
        except MistakeError as mistake:
            if mistake.text:
                self.report(element, mistake.text)

    def check(self) -> None:
        """Raise all that were reported (SchemaError)."""
        if self._found:
            raise SchemaError(self._found)


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 3]}..."
