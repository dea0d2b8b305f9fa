"""Streams whose bytes are determined by the position, so that any part can be checked by itself.

The message that begins at a position is `message(stream_id, position)`, whichever publisher sends
it. So a recording can be stopped, truncated and extended, and all of it can still be checked.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import StorageError
from aerotape.frame_header import ChecksumName
from aerotape.replay.offline.directory import Recording
from support.model.messages import message
from support.model.term_log import HEADER, TermLog, aligned

SESSION_ID_OFFSET = 12
MAX_LENGTH = 6_000
"""Longer than a frame at an MTU of 1408, and than a page where that is larger."""


@functools.cache
def placed(stream_id: int, position: int) -> bytes:
    """Return the message of a stream that begins at a position."""
    return message(stream_id, position, max_length=MAX_LENGTH)


class _Publication(Protocol):
    @property
    def position(self) -> int: ...
    def offer(self, data: bytes) -> int: ...


class _Message(Protocol):
    @property
    def position(self) -> int: ...
    @property
    def end_position(self) -> int: ...
    @property
    def payload(self) -> object: ...


def offer_placed(publication: _Publication, stream_id: int) -> bool:
    """Offer the message for the position of an exclusive publication; return whether it was
    accepted."""
    return publication.offer(placed(stream_id, publication.position)) > 0


class PlacedPublisher(threading.Thread):
    """Publishes until it is stopped."""

    def __init__(self, publication: _Publication, stream_id: int) -> None:
        super().__init__(daemon=True)
        self._publication = publication
        self._stream_id = stream_id
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            if not offer_placed(self._publication, self._stream_id):
                time.sleep(0.0002)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


@functools.cache
def _term(
    stream_id: int,
    initial_term_id: int,
    term_length: int,
    mtu_length: int,
    term: int,
    joins: tuple[int, ...],
) -> tuple[bytes, tuple[int, ...]]:
    """Return the bytes of a term with session id 0, and the positions of its frames."""
    log = TermLog(
        session_id=0,
        stream_id=stream_id,
        initial_term_id=initial_term_id,
        term_length=term_length,
        max_payload_length=mtu_length - HEADER.size,
    )
    begin, end = term * term_length, (term + 1) * term_length
    log.data = bytearray(begin)
    for limit in (*sorted(each for each in joins if begin < each < end), end):
        while len(log.data) < limit:
            log.append([placed(stream_id, len(log.data))])
        del log.data[limit:]
        log.frame_positions = [each for each in log.frame_positions if each < limit]
    # Padding precedes a message that did not fit.
    return bytes(log.data[begin:]), tuple(log.frame_positions)


def check_bytes(
    archive_dir: Path,
    descriptor: RecordingDescriptor,
    to_position: int,
    joins: tuple[int, ...] = (),
) -> None:
    """Check each byte of the segment files, from a recording's start up to the end of a frame.

    Session ids are ignored, because they change with the publisher, or are checksums.
    """
    term_length = descriptor.term_buffer_length
    for term in range(descriptor.start_position // term_length, -(-to_position // term_length)):
        expected, positions = _term(
            descriptor.stream_id,
            descriptor.initial_term_id,
            term_length,
            descriptor.mtu_length,
            term,
            tuple(each for each in joins if each // term_length == term),
        )
        term_begin = term * term_length
        begin = max(descriptor.start_position, term_begin)
        end = min(to_position, term_begin + term_length)
        base = term_begin - term_begin % descriptor.segment_file_length
        path = archive_dir / segment_file_name(descriptor.recording_id, base)
        with path.open("rb") as file:
            found = bytearray(os.pread(file.fileno(), end - begin, begin - base))
        for position in positions:
            if begin <= position < end:
                at = position - begin + SESSION_ID_OFFSET
                found[at : at + 4] = bytes(4)
        wanted = expected[begin - term_begin : end - term_begin]
        if found != wanted:
            at = next(
                (i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), -1
            )
            raise AssertionError(
                f"recording {descriptor.recording_id}: {len(found)} of {len(wanted)} bytes from"
                f" {begin} on; at {begin + at} is another byte than was published"
            )


def check_placed(
    recording: Recording,
    checksum: ChecksumName,
    what: str,
    promised: int | None = None,
    but: tuple[type[Exception], ...] = (),
    joins: tuple[int, ...] = (),
) -> int:
    """Check each message of a stopped recording, from its start to its stop position.

    Args:
        promised: the position up to which all messages must be valid.
        but: errors that are allowed after that: StorageError for reported damage, AssertionError
            for another message.
        joins: positions at which a publisher started again, possibly within a message.

    Returns:
        The number of valid messages.
    """
    descriptor = recording.descriptor
    stop = descriptor.stop_position
    position, count = descriptor.start_position, 0
    promised = stop if promised is None else promised
    check_bytes(recording.archive_dir, descriptor, promised, joins)
    try:
        messages = recording.messages(checksum=checksum)
        for end in _checked(descriptor, messages, joins):
            position, count = end, count + 1
        position = max((position, *(each for each in joins if each <= stop)))
        assert _end(descriptor, position) > stop, f"messages end at {position}"
    except (AssertionError, StorageError) as error:
        if _end(descriptor, position) <= promised or not isinstance(error, but):
            error.add_note(f"{what}: {position} of {stop} are good")
            raise
    return count


def check_replayed(descriptor: RecordingDescriptor, messages: Iterable[_Message], end: int) -> int:
    """Check each message of a replay from a recording's start to the end of a frame.

    Returns:
        The number of messages.
    """
    position, count = descriptor.start_position, 0
    for reached in _checked(descriptor, messages):
        position, count = reached, count + 1
    assert position <= end < _end(descriptor, position), f"messages end at {position} of {end}"
    return count


def _checked(
    descriptor: RecordingDescriptor, messages: Iterable[_Message], joins: tuple[int, ...] = ()
) -> Iterator[int]:
    """Yield the end of each message that follows the previous one and equals what was published.

    Raises:
        AssertionError: a message is missing or different.
    """
    position = descriptor.start_position
    for found in messages:
        for join in joins:
            if position < join < min(_end(descriptor, position), found.position + 1):
                position = join  # after part of a message
        assert found.position == _begin(descriptor, position), f"no message at {position}"
        expected = placed(descriptor.stream_id, found.position)
        assert found.payload == expected, f"another message than published at {found.position}"
        position = found.end_position
        yield position


def _begin(descriptor: RecordingDescriptor, position: int) -> int:
    """Return where the message after a position begins: in the next term if it does not fit."""
    term_end = (position // descriptor.term_buffer_length + 1) * descriptor.term_buffer_length
    is_last = position + _length(descriptor, position) > term_end
    return term_end if is_last else position


def _end(descriptor: RecordingDescriptor, position: int) -> int:
    begin = _begin(descriptor, position)
    return begin + _length(descriptor, begin)


def _length(descriptor: RecordingDescriptor, position: int) -> int:
    """Return the bytes that the frames of a message use."""
    payload = descriptor.mtu_length - HEADER.size
    parts, rest = divmod(len(placed(descriptor.stream_id, position)), payload)
    return parts * descriptor.mtu_length + (aligned(HEADER.size + rest) if rest else 0)
