"""Fingerprints of a recording, to detect that it is no longer what was converted.

Comparing all bytes would cost as much as converting them. For each converted range the manifest has
a *fingerprint* of its last few kilobytes. What changes a recording (a truncation and extension,
another recording with the same id, another copy of a segment file) mostly changes these.

A fingerprint does not cover the session ids in frames' headers, because checksums may replace them
later. Frame boundaries need not be known: at every aligned offset a header of this position and
stream is taken for a frame, so a payload that looks like one is not covered in four bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base_position
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import StorageError
from aerotape.frame_header import (
    FRAME_ALIGNMENT,
    SESSION_ID_OFFSET,
    FrameHeader,
    is_frame_at,
)
from aerotape.replay.offline.directory import Recording
from aerotape.spark.parquet.manifest import Fingerprint, Interval
from aerotape.url_path import UrlPath

_LENGTH: Final = 16 << 10
# Padding is at most as long as a message.
_PADDING_LENGTH: Final = 32 << 20
# Waiting for responses of remote storage takes no processor time.
_READERS: Final = 16

_T = TypeVar("_T")
_R = TypeVar("_R")


def fingerprints(recording: Recording, ranges: Iterable[Interval]) -> list[Fingerprint]:
    """Take the fingerprints of ranges of positions.

    Args:
        recording: the recording.
        ranges: the converted ranges; those shorter than a frame header have no fingerprint, nor
            those whose segment files are deleted.

    Raises:
        StorageError: the recording cannot be read.
    """
    found = _each(recording, lambda wanted: _fingerprint(recording, *wanted), list(ranges))
    return [fingerprint for fingerprint in found if fingerprint is not None]


def changed(
    recording: Recording, taken: Sequence[Fingerprint]
) -> tuple[Fingerprint | None, list[Fingerprint]]:
    """Compare a recording with fingerprints that were taken of it.

    What was purged since is not compared.

    Args:
        recording: as it is now, of the same terms and stream as then.
        taken: the fingerprints.

    Returns:
        The first one that differs, None when none does; and those that cannot be compared, because
        their segment file is missing without a purge.

    Raises:
        StorageError: the recording cannot be read, or a segment file is too short.
    """

    def has(fingerprint: Fingerprint) -> bool | None:
        begin, end = fingerprint.from_position, fingerprint.to_position
        try:
            data = _read(recording, begin, end)
        except FileNotFoundError:
            return None
        return _content_crc32c(recording.descriptor, begin, data) == fingerprint.crc32c

    there = [each for each in taken if each.from_position >= recording.start_position]
    compared = list(zip(there, _each(recording, has, there), strict=True))
    first = next((fingerprint for fingerprint, same in compared if same is False), None)
    return first, [fingerprint for fingerprint, same in compared if same is None]


def _fingerprint(recording: Recording, from_position: int, to_position: int) -> Fingerprint | None:
    end = to_position // FRAME_ALIGNMENT * FRAME_ALIGNMENT
    begin = -(-from_position // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
    if begin >= end:
        return None
    begin = max(begin, _base(recording, end - 1))
    try:
        end = _last_written(recording, begin, end)
        begin = max(begin, end - _LENGTH)
        data = _read(recording, begin, end)
    except FileNotFoundError:
        return None
    return Fingerprint(
        from_position=begin,
        to_position=end,
        crc32c=_content_crc32c(recording.descriptor, begin, data),
    )


def _last_written(recording: Recording, begin: int, end: int) -> int:
    """Return the end of the data before `end`, without zeros, as of padding."""
    first, upto, length = max(begin, end - _PADDING_LENGTH), end, _LENGTH
    while upto > first:
        since = max(first, upto - length)
        written = len(_read(recording, since, upto).rstrip(b"\0"))
        if written and upto == end:
            return end
        if written:
            return since + -(-written // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
        upto, length = since, length * 4
    return end


def _content_crc32c(descriptor: RecordingDescriptor, position: int, data: bytes) -> int:
    """Return the CRC-32C of frames, or parts of frames, without their session ids."""
    content = bytearray(data)
    for offset in range(0, len(data), FRAME_ALIGNMENT):
        if is_frame_at(FrameHeader.decode(data, offset), descriptor, position + offset):
            begin = offset + SESSION_ID_OFFSET
            content[begin : begin + 4] = bytes(4)
    return _native.checksum("crc-32c", bytes(content))


def _base(recording: Recording, position: int) -> int:
    descriptor = recording.descriptor
    return segment_base_position(
        recording.start_position,
        position,
        descriptor.term_buffer_length,
        descriptor.segment_file_length,
    )


def _read(recording: Recording, begin: int, end: int) -> bytes:
    """Read positions of one segment (FileNotFoundError, StorageError)."""
    base = _base(recording, begin)
    data = recording.read_segment(base, begin - base, end - begin)
    if len(data) < end - begin:
        path = recording.archive_dir / segment_file_name(recording.recording_id, base)
        raise StorageError(
            f"segment file {path} ends before offset {end - base}, and the recording reaches "
            f"position {end}: was it truncated, or is the copy incomplete?",
            path,
        )
    return data


def _each(recording: Recording, do: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Call a function for each item, concurrently for remote storage."""
    if len(items) < 2 or not isinstance(recording.archive_dir, UrlPath):
        return [do(item) for item in items]
    with ThreadPoolExecutor(_READERS, thread_name_prefix="aerotape-compare") as threads:
        return list(threads.map(do, items))
