"""Colours of errors and states on terminals, unless NO_COLOR is set (https://no-color.org)."""

from __future__ import annotations

import os
from typing import IO, Final

_RED: Final = 31
_GREEN: Final = 32
_YELLOW: Final = 33
_STATES: Final = {"live": _GREEN, "ok": _GREEN, "warning": _YELLOW, "failed": _RED}


def has_colours(stream: IO[str]) -> bool:
    """Return whether text on the stream is coloured: a terminal, without NO_COLOR."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def error_prefix(text: str, stream: IO[str]) -> str:
    """Return the start of an error, in red where the stream has colours."""
    return _coloured(text, _RED) if has_colours(stream) else text


def warning_prefix(text: str, stream: IO[str]) -> str:
    """Return a diagnostic, the word `warning:` at its start in yellow."""
    word = "warning:"
    if text.startswith(word) and has_colours(stream):
        return _coloured(word, _YELLOW) + text.removeprefix(word)
    return text


def state(padded: str) -> str:
    """Return a cell of a table in the colour of its state, and unchanged if it is not a state."""
    text = padded.strip()
    colour = _STATES.get(text)
    return padded if colour is None else padded.replace(text, _coloured(text, colour))


def _coloured(text: str, colour: int) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"
