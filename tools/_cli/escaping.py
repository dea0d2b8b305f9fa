"""Standard streams that escape control characters: no output of a command controls a terminal.

While a command runs, everything that it, `argparse`, `logging` or `warnings` writes to standard
output or standard error goes through `EscapingStream`. Bytes that are written to `buffer` do not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, TextIO, cast

from aerotape.formatting import printable

_LAYOUT: Final = "\n\t"


class EscapingStream:
    """A text stream in which control characters are escaped, except line ends and tabs."""

    def __init__(self, stream: IO[str]) -> None:
        """Escape what is written to `stream`, for a terminal or not."""
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; return its length before it was escaped."""
        self.stream.write(printable(text, _LAYOUT))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def write_styled(text: str, stream: IO[str]) -> None:
    """Write text with control characters of our own: colours, a progress bar.

    What the text quotes must be escaped already.
    """
    _inner(stream).write(text)


def data_stream(stream: IO[str]) -> IO[str]:
    """Return the stream for text that programs read: as it is, but escaped on a terminal."""
    return stream if stream.isatty() else _inner(stream)


def _inner(stream: IO[str]) -> IO[str]:
    return stream.stream if isinstance(stream, EscapingStream) else stream


@contextmanager
def escaping_streams() -> Iterator[None]:
    """Escape what is written to the standard streams.

    An exception that is not caught leaves them so: Python prints it, with the text that caused it.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast(TextIO, each if isinstance(each, EscapingStream) else EscapingStream(each))
        for each in before
    )
    yield
    sys.stdout, sys.stderr = before
