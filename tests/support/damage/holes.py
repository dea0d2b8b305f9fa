"""Holes in segment files, as a power cut leaves them where pages were never written."""

from __future__ import annotations

import os
from pathlib import Path

PAGE_LENGTH = 4096


def punch(path: Path, offset: int) -> None:
    """Make the page around an offset of a file a hole, as all pages of zeros then are."""
    data, at = path.read_bytes(), offset - offset % PAGE_LENGTH
    with path.open("wb") as file:
        file.truncate(len(data))
        for begin in range(0, len(data), PAGE_LENGTH):
            page = data[begin : begin + PAGE_LENGTH]
            if begin != at and any(page):
                os.pwrite(file.fileno(), page, begin)
