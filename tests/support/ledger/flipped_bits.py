"""Damage to a recording's segment files."""

from __future__ import annotations

from pathlib import Path

from aerotape.catalog.segment_files import list_segment_files


def flip(archive_dir: Path, recording_id: int, position: int, bit: int) -> None:
    """Flip a bit of the byte at a position of a recording."""
    for segment in reversed(list_segment_files(archive_dir, recording_id)):
        if segment.base_position <= position:
            with segment.path.open("r+b") as file:
                file.seek(position - segment.base_position)
                byte = file.read(1)[0]
                file.seek(position - segment.base_position)
                file.write(bytes((byte ^ 1 << bit,)))
            return
    raise AssertionError(f"no segment file has position {position}")


def zero(archive_dir: Path, recording_id: int, begin: int, end: int) -> None:
    """Replace all between two positions by zeros."""
    for segment in list_segment_files(archive_dir, recording_id):
        base = segment.base_position
        with segment.path.open("r+b") as file:
            length = segment.path.stat().st_size
            first, last = max(begin, base), min(end, base + length)
            if first < last:
                file.seek(first - base)
                file.write(bytes(last - first))
