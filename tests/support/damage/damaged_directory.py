"""An archive directory to be damaged, and the part of it that exists afterwards.

Everything is derived from the frames as they were written, never from our readers.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.time_index.file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_index.points import TimePoint
from aerotape.frame_header import ChecksumName
from support.builders.built_archive import add_recording
from support.builders.mark_files import leave
from support.builders.segment_builder import DATA, HEADER, SegmentBuilder

FRAME = 32
LIVE = frozenset({2, 3})
"""Recordings that have no stop position, as a crash leaves them."""
HIDDEN = 6
"""A recording that was marked as invalid."""
SUMMED = frozenset({1, 3, 5})
"""Recordings whose frames and descriptor have CRC-32C."""
_START_MS = 1_700_000_000_000
_MAX_MESSAGE = 6_000
# A part of a segment file in quarantine.
_PART = re.compile(r"(.+\.rec)\.([0-9]+)-[0-9]+")


@dataclass(frozen=True)
class Original:
    """A recording as it was written."""

    stream: SegmentBuilder
    descriptor: RecordingDescriptor
    live: bool

    @property
    def recording_id(self) -> int:
        return self.stream.recording_id

    @property
    def checksum(self) -> ChecksumName:
        return "crc-32c" if self.stream.checksum is not None else "none"

    @property
    def messages(self) -> list[tuple[int, bytes]]:
        return [(message.position, message.payload) for message in self.stream.messages]

    def messages_before(self, position: int) -> list[tuple[int, bytes]]:
        """Return the messages that end at or below a position."""
        return [
            (message.position, message.payload)
            for message in self.stream.messages
            if message.end_position <= position
        ]


@dataclass(frozen=True)
class BuiltDirectory:
    """The directory without damage, and its content."""

    path: Path
    originals: Mapping[int, Original]
    frames: Mapping[bytes, bytes]
    """Each data frame by its header; both without the session id, where a checksum may come."""


def build(path: Path) -> BuiltDirectory:
    """Write a directory as an archive that was killed leaves it.

    Recordings of one segment and of several, with a start within a term or not, with and without
    checksums, with and without a stop position, and one that was marked as invalid.
    """
    path.mkdir()
    crc = partial(_native.checksum, "crc-32c")
    term = 65_536
    streams = [
        SegmentBuilder(segment_length=2 * term),
        SegmentBuilder(segment_length=term, start_position=term + 96, checksum=crc),
        SegmentBuilder(segment_length=2 * term),
        SegmentBuilder(segment_length=term, checksum=crc, initial_term_id=-3),
        SegmentBuilder(segment_length=term),
        SegmentBuilder(segment_length=2 * term, start_position=5 * term, checksum=crc),
        SegmentBuilder(segment_length=term),
    ]
    lengths = [5 * term - 9_000, 3 * term, 3 * term, 2 * term + 30_000, 21_000, 2 * term, 82_000]
    originals = {}
    rng = random.Random(1)
    for number, (stream, length) in enumerate(zip(streams, lengths, strict=True)):
        stream.stream_id = 1001 + number
        while stream.position < stream.start_position + length - 2 * _MAX_MESSAGE:
            size = rng.choice([0, 1, 31, 32, 33, 256, 1376, 1377, rng.randrange(_MAX_MESSAGE)])
            # No zeros, so that a zeroed page differs from the original.
            payload = rng.randbytes(size).replace(b"\0", b"\1")
            stream.message(payload, reserved_value=rng.randrange(1 << 40))
        if number == 5:
            stream.pad_term()
        live = number in LIVE
        summed: ChecksumName = "crc-32c" if number in SUMMED else "none"
        add_recording(path, stream, live=live, checksum=summed)
        if number == 5:
            # It ends at the end of a segment: the recorder has created the next one.
            next_segment = stream.segment_path(path, stream.position)
            with next_segment.open("xb") as file:
                file.truncate(stream.segment_length)
    with Catalog.open(path) as catalog:
        for number, stream in enumerate(streams):
            descriptor = catalog.descriptor(number)
            originals[number] = Original(stream, descriptor, number in LIVE)
        catalog.change_state(HIDDEN, RecordingState.INVALID)
    _write_time_index(path, originals[0])
    leave(path, error_buffer_length=65_536)
    for segment in path.glob("*.rec"):
        os.utime(segment, (_START_MS / 1000, _START_MS / 1000))
    frames = {
        _header_key(frame): _masked(frame)
        for stream in streams
        for frame in stream.frames.values()
        if HEADER.unpack_from(frame)[3] == DATA
    }
    return BuiltDirectory(path, originals, frames)


def _write_time_index(path: Path, original: Original) -> None:
    stream = original.stream
    points = [
        TimePoint(_START_MS * 1_000_000 + number, message.end_position, stream.session_id)
        for number, message in enumerate(stream.messages)
    ]
    provenance = Provenance(0, _START_MS, stream.start_position, 0, stream.session_id)
    write_time_index(time_index_path(path, 0), provenance, points)


# ---- content -------------------------------------------------------------------------------------


def content(directory: Path) -> dict[str, tuple[str, bytes]]:
    """Return the kind of each name in a directory, and the bytes of each file, recursively."""
    found = {}
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        kind = stat.filemode(mode)[0]
        data = b""
        if stat.S_ISREG(mode):
            data = path.read_bytes()
        elif stat.S_ISLNK(mode):
            data = os.fsencode(path.readlink())
        found[str(path.relative_to(directory))] = (kind, data)
    return found


def surviving(built: BuiltDirectory, directory: Path) -> set[bytes]:
    """Return the original frames that still exist in any file of a directory.

    Data in quarantine may begin within a frame. The names of the copies give their positions.
    """
    found: set[bytes] = set()
    files = {name: data for name, (_, data) in content(directory).items()}
    for name, data in files.items():
        found.update(_frames_in(built, data))
        if match := _PART.fullmatch(Path(name).name):
            offset = int(match[2])
            left = files.get(match[1], b"")[:offset].ljust(offset, b"\0")
            found.update(_frames_in(built, left + data))
    return found


def _frames_in(built: BuiltDirectory, data: bytes) -> Iterator[bytes]:
    # Copies end at the last byte that is not zero.
    data = data.ljust((len(data) + FRAME - 1) & -FRAME, b"\0")
    offset = 0
    while offset < len(data):
        header = data[offset : offset + FRAME]
        step = FRAME
        if any(header[:4]):
            key = _header_key(header)
            frame = built.frames.get(key)
            if (
                frame
                and _masked(data[offset : offset + len(frame)].ljust(len(frame), b"\0")) == frame
            ):
                yield key
                step = len(frame)
        offset += step


def _header_key(frame: bytes) -> bytes:
    return frame[:12] + frame[16:32]


def _masked(frame: bytes) -> bytes:
    return frame[:12] + bytes(4) + frame[16:]


def recording_of(key: bytes) -> int:
    """Return the recording id of a frame."""
    return int.from_bytes(key[12:16], "little", signed=True) - 1001


def first_damage(
    original: Original, directory: Path, *, is_summed: bool = True
) -> tuple[int | None, int | None]:
    """Return the positions of the first frame that differs from the original, and of the first one
    whose damage is provable: by its header, or by its checksum if it has one that is verified.

    None if there is no such frame. Only the header of padding counts.
    """
    stream = original.stream
    first = None
    for position in sorted(stream.frames):
        frame = stream.frames[position]
        there = _bytes_at(stream, directory, position, len(frame))
        if there == frame:
            continue
        first = position if first is None else first
        if _is_provable(frame, there, is_summed=is_summed and stream.checksum is not None):
            return first, position
    return first, None


def _bytes_at(stream: SegmentBuilder, directory: Path, position: int, length: int) -> bytes:
    path = stream.segment_path(directory, position)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""
        with path.open("rb") as file:
            return os.pread(file.fileno(), length, position - stream.segment_base(position))
    except OSError:
        return b""


def _is_provable(frame: bytes, there: bytes, *, is_summed: bool) -> bool:
    if len(there) < len(frame):
        return True
    before, now = HEADER.unpack_from(frame), HEADER.unpack_from(there)
    # Length with padding, type, term offset, stream id, term id.
    places = [((each[0] + 31) & -32, *each[3:5], *each[6:8]) for each in (before, now)]
    if places[0] != places[1] or now[0] < FRAME:
        return True
    return is_summed and before[3] == DATA and _summed(frame) != _summed(there)


def _summed(frame: bytes) -> bytes:
    return frame[12:16] + frame[32:]


def copy_directory(source: Path, target: Path) -> Path:
    """Copy a directory with its content, pipes and links as such; return the copy."""
    target.mkdir()
    for path in source.iterdir():
        copy = target / path.name
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            copy_directory(path, copy)
        elif stat.S_ISFIFO(mode):
            os.mkfifo(copy)
        else:
            shutil.copy2(path, copy, follow_symlinks=False)
    return target
