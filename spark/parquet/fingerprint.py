"""Whether a recording's bytes are still those that were converted.

Reading them all again would cost as much as converting them. Each range that is converted leaves
a *fingerprint* of the last few kilobytes of it. What changes a recording (truncating and recording
on, another recording under the same id, another copy of a segment file) mostly changes these.

A fingerprint is of what was recorded: the session ids in frames' headers are left out, since
checksums may be put in their place later. Where frames begin need not be known for that. Of all
places where one could, those count whose header names just this place and the stream; payloads that
happen to look like this lose four bytes of cover and no more.
"""

from __future__ import annotations

import zlib
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
from aerotape.spark.parquet.manifest import FileEntry, Fingerprint, Interval
from aerotape.url_path import UrlPath

_LENGTH: Final = 16 << 10
# Longer padding than this has no frame behind it: a message is shorter.
_PADDING_LENGTH: Final = 32 << 20
_OLD_LENGTH: Final = 64 << 10
# Waiting for responses of remote storage takes no processor time.
_READERS: Final = 16

_T = TypeVar("_T")
_R = TypeVar("_R")


def fingerprints(recording: Recording, ranges: Iterable[Interval]) -> list[Fingerprint]:
    """Take the fingerprints of ranges of positions.

    Args:
        recording: the recording.
        ranges: what was converted of it; those that do not hold a place for a frame have none,
            and neither have those whose segment files are gone by now.

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
        The first one that the recording no longer has, None when it has all; and those that cannot
        be compared, for their segment file is gone without having been purged.

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


def has_old_tail(recording: Recording, entry: FileEntry) -> bool:
    """Whether a recording has the bytes that manifests without fingerprints tell of.

    These are the last 64 KiB of a file's range, session ids included.

    Raises:
        StorageError: the recording cannot be read.
    """
    base = _base(recording, entry.to_position - 1)
    begin = max(entry.from_position, entry.to_position - _OLD_LENGTH, base)
    gone = begin >= entry.to_position or entry.to_position <= recording.start_position
    if entry.source_crc32 is None or gone:
        return True
    try:
        return zlib.crc32(_read(recording, begin, entry.to_position)) == entry.source_crc32
    except FileNotFoundError:
        return True


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
    """Return `end`, or where long zeros before it begin, as of padding, which tell nothing."""
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
    """Do something for each item, several at once where a storage elsewhere is waited for."""
    if len(items) < 2 or not isinstance(recording.archive_dir, UrlPath):
        return [do(item) for item in items]
    with ThreadPoolExecutor(_READERS, thread_name_prefix="aerotape-compare") as threads:
        return list(threads.map(do, items))
