"""Colours of a terminal, for errors and states: nothing is said by colour alone."""

from __future__ import annotations

import os
from typing import IO, Final

RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"


def styled(text: str, colour: str, stream: IO[str]) -> str:
    """Return a text in a colour if the stream is a terminal and NO_COLOR is not set."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{colour}m{text}\033[0m"
