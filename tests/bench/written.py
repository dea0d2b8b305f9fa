"""Long recordings written at once, without an archive: for benchmarks of what reads them.

All messages are of one length and differ in some bytes, which count them within a term; so a term
is made once, and of the following ones only the term id is other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from segment_builder import BEGIN, DATA, END, HEADER, PAD

from aerotape.catalog.catalog import Catalog

TERM_LENGTH = 16 << 20
SEGMENT_LENGTH = 128 << 20
_TERM_OFFSET, _SESSION_ID, _TERM_ID = 8, 12, 20
_COUNTED = 4


def write_recording(
    archive_dir: Path,
    payload: bytes | Sequence[bytes],
    length: int,
    checksum: Callable[[bytes], int] | None = None,
    counted_at: int = 0,
) -> tuple[int, int]:
    """Write a recording of whole terms into a directory; return its id and its messages.

    Args:
        archive_dir: made if need be.
        payload: of every message, for one frame; or several of one length, which take turns.
        length: bytes at least.
        checksum: of each frame, if any.
        counted_at: where in the payload the number of a message within its term stands, 4 bytes.
    """
    archive_dir.mkdir(parents=True, exist_ok=True)
    terms = max(1, -(-length // TERM_LENGTH))
    with Catalog.open(archive_dir, create=True) as catalog:
        recording_id = catalog.add_recording(
            start_position=0,
            start_timestamp_ms=1_700_000_000_000,
            initial_term_id=0,
            segment_file_length=SEGMENT_LENGTH,
            term_buffer_length=TERM_LENGTH,
            mtu_length=65_504,
            session_id=1,
            stream_id=1001,
            stripped_channel="aeron:ipc",
            original_channel="aeron:ipc",
            source_identity="aeron:ipc",
        )
        catalog.recording_stopped(recording_id, terms * TERM_LENGTH, 1_700_000_001_000)
    payloads = [payload] if isinstance(payload, bytes) else payload
    term, stride, count = _term(payloads, checksum, counted_at)
    for base in range(0, terms, SEGMENT_LENGTH // TERM_LENGTH):
        path = archive_dir / f"{recording_id}-{base * TERM_LENGTH}.rec"
        with path.open("wb") as file:
            for term_id in range(base, min(base + SEGMENT_LENGTH // TERM_LENGTH, terms)):
                frames = count + (count * stride < TERM_LENGTH)
                _put(term, _TERM_ID, stride, frames, [term_id] * frames)
                file.write(term)
            file.truncate(SEGMENT_LENGTH)
    return recording_id, terms * count


def _term(
    payloads: Sequence[bytes], checksum: Callable[[bytes], int] | None, counted_at: int
) -> tuple[bytearray, int, int]:
    """Make a term; return it, the bytes from frame to frame, and the messages in it."""
    length = HEADER.size + len(payloads[0])
    stride = (length + 31) & ~31
    count = TERM_LENGTH // stride
    header = HEADER.pack(length, 0, BEGIN | END, DATA, 0, 1, 1001, 0, 0)
    frames = [(header + payload).ljust(stride, b"\0") for payload in payloads]
    term = bytearray(b"".join(itertools.islice(itertools.cycle(frames), count)))
    _put(term, HEADER.size + counted_at, stride, count, range(count))
    _put(term, _TERM_OFFSET, stride, count, range(0, count * stride, stride))
    if checksum is not None:
        sums = [
            checksum(bytes(term[at + HEADER.size : at + stride])) & 0xFFFFFFFF
            for at in range(0, count * stride, stride)
        ]
        _put(term, _SESSION_ID, stride, count, sums)
    if rest := TERM_LENGTH - len(term):
        padding = HEADER.pack(rest, 0, BEGIN | END, PAD, len(term), 1, 1001, 0, 0)
        term += padding.ljust(rest, b"\0")
    return term, stride, count


def _put(term: bytearray, at: int, stride: int, count: int, numbers: range | list[int]) -> None:
    """Write a 4-byte number into each of the first frames."""
    end = at + count * stride
    for byte in range(_COUNTED):
        term[at + byte : end : stride] = bytes(number >> 8 * byte & 0xFF for number in numbers)
