"""Files that are changed in place."""

from __future__ import annotations

from pathlib import Path


def overwrite(path: Path, offset: int, data: bytes) -> None:
    """Replace bytes of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
