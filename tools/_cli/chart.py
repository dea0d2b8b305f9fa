"""Bar charts for terminals, of block characters or of ASCII."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

MIN_WIDTH: Final = 40
_NEEDED: Final = "▁▂▃▄▅▆▇█▏▎▍▌▋▊▉│└─…"


@dataclass(frozen=True, slots=True)
class Style:
    """The characters of charts.

    Attributes:
        columns: parts of a character filled from below, the full one last.
        rows: parts of a character filled from the left, the full one last.
        axis: the vertical axis, its lower end and the horizontal axis.
        ellipsis: the end of text that was cut.
        mark: below a column with a gap.
    """

    columns: str
    rows: str
    axis: str
    ellipsis: str
    mark: str


UNICODE: Final = Style("▁▂▃▄▅▆▇█", "▏▎▍▌▋▊▉█", "│└─", "…", "x")
ASCII: Final = Style(".:#", "#", "|+-", "...", "x")


def terminal_style(stream: TextIO | None = None) -> Style:
    """Return the style that standard output, or the stream, can encode."""
    stream = sys.stdout if stream is None else stream
    if os.environ.get("TERM") == "dumb":
        return ASCII
    try:
        _NEEDED.encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return ASCII
    return UNICODE


def terminal_width() -> int:
    """Return the width of the terminal in characters: 80 without a terminal, at least 40."""
    return max(shutil.get_terminal_size().columns, MIN_WIDTH)


def horizontal_bar(share: float, width: int, style: Style) -> str:
    """Return a bar for a share from 0 to 1; any share above 0 is visible."""
    steps = len(style.rows)
    filled = min(round(share * width * steps), width * steps)
    if share > 0:
        filled = max(filled, 1)
    full, part = divmod(filled, steps)
    return style.rows[-1] * full + (style.rows[part - 1] if part else "")


def columns(values: Sequence[float], height: int, top: float, style: Style) -> list[str]:
    """Return a chart with a column for each value, uppermost line first.

    Args:
        values: 0 or more.
        height: lines.
        top: the value of the full height.
        style: the characters.
    """
    steps = len(style.columns)
    filled = []
    for value in values:
        height_steps = round(value / top * height * steps) if top > 0 else 0
        filled.append(min(max(height_steps, int(value > 0)), height * steps))
    lines = []
    for line in reversed(range(height)):
        parts = (min(max(steps_up - line * steps, 0), steps) for steps_up in filled)
        lines.append("".join(style.columns[part - 1] if part else " " for part in parts))
    return lines


def spread(texts: Sequence[str], width: int) -> str:
    """Lay out three texts: at the left, in the middle and at the right of a line.

    The middle text is left out when there is no room for it.
    """
    left, middle, right = texts
    room = width - len(left) - len(right)
    if room < 1:
        return f"{left} {right}"
    gap = (width - len(middle)) // 2 - len(left)
    if gap >= 2 and room - gap - len(middle) >= 2:
        inner = " " * gap + middle
        return f"{left}{inner}{' ' * (room - len(inner))}{right}"
    return f"{left}{' ' * room}{right}"


def shortened(text: str, width: int, style: Style) -> str:
    """Cut a text that is longer than `width`."""
    if len(text) <= width:
        return text
    return text[: max(width - len(style.ellipsis), 0)] + style.ellipsis
