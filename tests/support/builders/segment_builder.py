"""Segment files written byte by byte, for tests of their readers.

Implements Aeron's data frame layout (32-byte header, little endian, frames on 32-byte boundaries)
independently of the readers that are tested.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from aerotape import _native

HEADER = struct.Struct("<iBBHiiiiq")
PAD, DATA = 0, 1
BEGIN, END = 0x80, 0x40


def crc32(data: bytes) -> int:
    """CRC-32 as the signed integer in a frame, from zlib rather than from our own code."""
    return int.from_bytes(zlib.crc32(data).to_bytes(4, "little"), "little", signed=True)


@dataclass
class BuiltMessage:
    """A message as it was written, which a reader must return."""

    position: int
    end_position: int
    term_id: int
    term_offset: int
    flags: int
    reserved_value: int
    payload: bytes


@dataclass
class SegmentBuilder:
    """Writes a stream into memory as a publication would, then into segment files.

    Messages longer than `mtu_length - 32` are fragmented, and a message that does not fit in the
    rest of its term is preceded by padding to the term's end.
    """

    recording_id: int = 0
    start_position: int = 0
    term_length: int = 65_536
    segment_length: int = 131_072
    mtu_length: int = 1408
    initial_term_id: int = 7
    session_id: int = -42
    stream_id: int = 1001
    checksum: Callable[[bytes], int] | None = None
    position: int = field(init=False)
    messages: list[BuiltMessage] = field(init=False, default_factory=list)
    frames: dict[int, bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.position = self.start_position

    def term_id(self, position: int) -> int:
        return self.initial_term_id + position // self.term_length

    def frame(
        self,
        payload: bytes,
        flags: int = BEGIN | END,
        reserved_value: int = 0,
        frame_type: int = DATA,
        length: int | None = None,
    ) -> int:
        """Append one frame with these fields; return its position."""
        position = self.position
        frame_length = 32 + len(payload) if length is None else length
        aligned = (frame_length + 31) & ~31
        body = payload.ljust(aligned - 32, b"\0") if frame_type == DATA else b""
        session_id = self.session_id
        if self.checksum is not None and frame_type == DATA:
            session_id = self.checksum(body)
        header = HEADER.pack(
            frame_length,
            0,
            flags,
            frame_type,
            position % self.term_length,
            session_id,
            self.stream_id,
            self.term_id(position),
            reserved_value,
        )
        self.frames[position] = header + body
        self.position += aligned
        return position

    def pad_term(self) -> None:
        """Fill the rest of the term with one padding frame."""
        left = self.term_length - self.position % self.term_length
        self.frame(b"", flags=BEGIN | END, frame_type=PAD, length=left)

    def message(self, payload: bytes, reserved_value: int = 0) -> BuiltMessage:
        """Append a message, fragmented and preceded by padding as in Aeron."""
        room = self.mtu_length - 32
        parts = [payload[i : i + room] for i in range(0, len(payload), room)] or [b""]
        needed = sum((len(part) + 63) & ~31 for part in parts)
        if self.position % self.term_length + needed > self.term_length:
            self.pad_term()
        begin = self.position
        for index, part in enumerate(parts):
            flags = (BEGIN if index == 0 else 0) | (END if index == len(parts) - 1 else 0)
            self.frame(part, flags, reserved_value)
        message = BuiltMessage(
            begin,
            self.position,
            self.term_id(begin),
            begin % self.term_length,
            BEGIN | END,
            reserved_value,
            payload,
        )
        self.messages.append(message)
        return message

    def segment_base(self, position: int) -> int:
        first = self.start_position - self.start_position % self.term_length
        return first + (position - first) // self.segment_length * self.segment_length

    def segment_path(self, archive_dir: Path, position: int) -> Path:
        return archive_dir / f"{self.recording_id}-{self.segment_base(position)}.rec"

    def write(self, archive_dir: Path) -> None:
        """Write all frames into segment files of full length."""
        segments: dict[int, bytearray] = {}
        for position, frame in self.frames.items():
            base = self.segment_base(position)
            if base not in segments:
                segments[base] = bytearray(self.segment_length)
            data = segments[base]
            data[position - base : position - base + len(frame)] = frame
        for base, data in segments.items():
            (archive_dir / f"{self.recording_id}-{base}.rec").write_bytes(data)

    def scan(self, directory: Path, **changes: Any) -> _native.SegmentScan:
        """Return a scan of all of the recording, with `changes` to its range and options."""
        fields: dict[str, Any] = {
            "archive_dir": str(directory),
            "recording_id": self.recording_id,
            "start_position": self.start_position,
            "term_length": self.term_length,
            "segment_length": self.segment_length,
            "initial_term_id": self.initial_term_id,
            "session_id": self.session_id,
            "stream_id": self.stream_id,
            "max_frame_length": self.mtu_length,
            "from_position": self.start_position,
            "to_position": self.position,
            "limit_position": self.position,
            "from_boundary": False,
        }
        for name in fields.keys() & changes.keys():
            fields[name] = changes.pop(name)
        return _native.SegmentScan(cast(Any, SimpleNamespace(**fields)), **changes)
