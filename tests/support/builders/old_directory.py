"""Archive directories in the formats of old versions.

According to these versions: 1024 bytes for the catalog's header and for each entry, no message
header in the mark file, other names of segment files.
"""

from __future__ import annotations

import struct
from pathlib import Path

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from support.builders.offline_directory import SEGMENT_LENGTH, build

ENTRY_LENGTH = 1024


def version(major: int, minor: int = 0, patch: int = 0) -> int:
    """Return a semantic version as it is encoded in files."""
    return major << 16 | minor << 8 | patch


def build_old(directory: Path, of_version: int) -> Path:
    """Write the directory of `offline_directory.build`, but with 2 valid and 4 invalid.

    One file has a name of recording 4 but is not a segment file. Returns the directory.
    """
    build(directory)
    with Catalog.open(directory) as catalog:
        catalog.change_state(2, RecordingState.VALID)
        catalog.change_state(4, RecordingState.INVALID)
        frames = [
            struct.pack("<ii", 80 + _strings_length(entry.body), entry.state).ljust(32, b"\0")
            + entry.body[: 80 + _strings_length(entry.body)]
            for entry in catalog.entries()
        ]
    (directory / "4-junk.rec").write_bytes(b"junk")
    if of_version < version(3):
        _write_catalog(directory / "archive.catalog", of_version, frames)
        _write_mark_file(directory / "archive-mark.dat", of_version)
    if of_version < version(2):
        for path in directory.glob("[0-3]-*.rec"):
            recording_id, position = map(int, path.stem.split("-"))
            # Recording 2 begins in the second term of a segment.
            number = position - 65_536 if recording_id == 2 else position
            if of_version < version(1):
                number //= SEGMENT_LENGTH
            path.rename(directory / f"{recording_id}-{number}.rec-old")
        for path in directory.glob("*.rec-old"):
            path.rename(path.with_suffix(".rec"))
    return directory


def _strings_length(body: bytes) -> int:
    end = 80
    for _ in range(3):
        end += 4 + int.from_bytes(body[end : end + 4], "little")
    return end - 80


def _write_catalog(path: Path, of_version: int, frames: list[bytes]) -> None:
    header = struct.pack("<ii", of_version, ENTRY_LENGTH)
    path.write_bytes(b"".join(part.ljust(ENTRY_LENGTH, b"\0") for part in (header, *frames)))


def _write_mark_file(path: Path, of_version: int) -> None:
    data = path.read_bytes()
    header = struct.pack("<i", of_version) + data[12:8192]
    path.write_bytes(header.ljust(8192, b"\0") + data[8192:])
