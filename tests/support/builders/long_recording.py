"""Write long recordings without an archive.

All messages have the same length and differ in some bytes, which number them within a term. A term
is built once, and reused with other term ids.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape import _native
from aerotape.catalog.file.catalog import Catalog
from aerotape.frame_header import (
    HEADER_LENGTH,
    SESSION_ID_OFFSET,
    TERM_ID_OFFSET,
    TERM_OFFSET_OFFSET,
    TYPE_DATA,
    TYPE_PADDING,
    UNFRAGMENTED,
    FrameHeader,
    align_frame,
)

if TYPE_CHECKING:
    from aerotape.frame_header import ChecksumName

MTU_LENGTH: Final = 65_504
TERM_LENGTH: Final = 16 << 20
SEGMENT_LENGTH: Final = 128 << 20
_STREAM_ID: Final = 1001
_SESSION_ID: Final = 1
_NUMBER_BYTES: Final = 4


def write_recording(
    archive_dir: Path,
    payload: bytes | Sequence[bytes],
    length: int,
    checksum: ChecksumName = "none",
    counted_at: int = 0,
) -> tuple[int, int]:
    """Write a recording of whole terms into a directory; return its id and its messages.

    Args:
        archive_dir: created if it does not exist.
        payload: of every message, in one frame; or several of one length, used cyclically.
        length: least length of the recording, bytes.
        checksum: the checksum in each frame.
        counted_at: offset in the payload of the message's number within its term, 4 bytes.
    """
    archive_dir.mkdir(parents=True, exist_ok=True)
    terms = max(1, -(-length // TERM_LENGTH))
    with Catalog.open(archive_dir, create=True, checksum=checksum) as catalog:
        recording_id = catalog.add_recording(
            start_position=0,
            start_timestamp_ms=1_700_000_000_000,
            initial_term_id=0,
            segment_file_length=SEGMENT_LENGTH,
            term_buffer_length=TERM_LENGTH,
            mtu_length=MTU_LENGTH,
            session_id=_SESSION_ID,
            stream_id=_STREAM_ID,
            stripped_channel="aeron:ipc",
            original_channel="aeron:ipc",
            source_identity="aeron:ipc",
        )
        catalog.recording_stopped(recording_id, terms * TERM_LENGTH, 1_700_000_001_000)
    payloads = [payload] if isinstance(payload, bytes) else payload
    term, stride, count = _term(payloads, checksum, counted_at)
    has_padding = count * stride < TERM_LENGTH
    terms_per_segment = SEGMENT_LENGTH // TERM_LENGTH
    # As a recorder writes them: of full length, with a next one after a full one.
    for first in range(0, terms + 1, terms_per_segment):
        path = archive_dir / f"{recording_id}-{first * TERM_LENGTH}.rec"
        with path.open("wb") as file:
            for term_id in range(first, min(first + terms_per_segment, terms)):
                frames = count + has_padding
                _put(term, TERM_ID_OFFSET, stride, frames, itertools.repeat(term_id, frames))
                file.write(term)
            file.truncate(SEGMENT_LENGTH)
    return recording_id, terms * count


def _term(
    payloads: Sequence[bytes], checksum: ChecksumName, counted_at: int
) -> tuple[bytearray, int, int]:
    """Build a term; return it, the bytes from frame to frame, and the messages in it."""
    length = HEADER_LENGTH + len(payloads[0])
    stride = align_frame(length)
    count = TERM_LENGTH // stride
    header = _header(length, TYPE_DATA, 0)
    frames = [(header + payload).ljust(stride, b"\0") for payload in payloads]
    term = bytearray(b"".join(itertools.islice(itertools.cycle(frames), count)))
    _put(term, HEADER_LENGTH + counted_at, stride, count, range(count))
    _put(term, TERM_OFFSET_OFFSET, stride, count, range(0, count * stride, stride))
    if checksum != "none":
        checksum_of: Callable[[bytes], int] = partial(_native.checksum, checksum)
        sums = [
            checksum_of(bytes(term[at + HEADER_LENGTH : at + stride])) & 0xFFFFFFFF
            for at in range(0, count * stride, stride)
        ]
        _put(term, SESSION_ID_OFFSET, stride, count, sums)
    if rest := TERM_LENGTH - len(term):
        term += _header(rest, TYPE_PADDING, len(term)).ljust(rest, b"\0")
    return term, stride, count


def _header(length: int, frame_type: int, term_offset: int) -> bytes:
    return FrameHeader(
        length, 0, UNFRAGMENTED, frame_type, term_offset, _SESSION_ID, _STREAM_ID, 0, 0
    ).encode()


def _put(term: bytearray, at: int, stride: int, count: int, numbers: Iterable[int]) -> None:
    """Write a 4-byte number into each of the first frames."""
    end = at + count * stride
    encoded = b"".join(number.to_bytes(_NUMBER_BYTES, "little") for number in numbers)
    for byte in range(_NUMBER_BYTES):
        term[at + byte : end : stride] = encoded[byte::_NUMBER_BYTES]
