"""Holes in segment files, as after a power cut in pages that were never written."""

from __future__ import annotations

import os
from pathlib import Path

PAGE_LENGTH = 4096


def punch(path: Path, offset: int) -> None:
    """Replace the page around an offset of a file by a hole; the same for all other pages of
    zeros."""
    data, at = path.read_bytes(), offset - offset % PAGE_LENGTH
    with path.open("wb") as file:
        file.truncate(len(data))
        for begin in range(0, len(data), PAGE_LENGTH):
            page = data[begin : begin + PAGE_LENGTH]
            if begin != at and any(page):
                os.pwrite(file.fileno(), page, begin)
