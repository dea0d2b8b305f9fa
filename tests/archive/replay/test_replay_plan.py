"""Replay requests checked against a descriptor: positions, lengths and error codes."""

from __future__ import annotations

import pytest

from aerotape.archive.replay.request import (
    MAX_POSITION,
    RequestedReplay,
    plan,
)
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode

MIB = 1 << 20


def descriptor(start: int = 1024, stop: int = 65536 * 3) -> RecordingDescriptor:
    return RecordingDescriptor(
        recording_id=4,
        start_timestamp_ms=1,
        stop_timestamp_ms=-1 if stop < 0 else 2,
        start_position=start,
        stop_position=stop,
        initial_term_id=9,
        segment_file_length=128 * 1024,
        term_buffer_length=65536,
        mtu_length=1408,
        session_id=5,
        stream_id=6,
        stripped_channel="aeron:ipc",
        original_channel="aeron:ipc",
        source_identity="aeron:ipc",
    )


def request(position: int = -1, length: int = -1, file_io: int | None = None) -> RequestedReplay:
    return RequestedReplay(4, position, length, 10, "aeron:ipc", file_io)


@pytest.mark.parametrize(
    ("asked", "limit", "expected"),
    [
        # position, length; limit position; planned position, length, stop position
        ((-1, -1), None, (1024, 195584, 196608)),
        ((2048, 4096), None, (2048, 4096, 196608)),
        ((2048, 1 << 40), None, (2048, 194560, 196608)),
        ((2048, -2), None, (2048, 194560, 196608)),
        ((2048, 0), None, (2048, 0, 196608)),
        ((-1, -1), 4096, (1024, MAX_POSITION - 1024, 4096)),
        ((4096, -1), 4096, (4096, MAX_POSITION - 4096, 4096)),
        ((2048, -2), 4096, (2048, 2048, 4096)),
        ((2048, 1 << 40), 4096, (2048, 1 << 40, 4096)),
        ((2048, -1), -1, (2048, 194560, 196608)),
    ],
)
def test_planned_ranges(
    asked: tuple[int, int], limit: int | None, expected: tuple[int, int, int]
) -> None:
    """Length -1 follows a live recording and ends with a stopped one; -2 ends at the current
    end."""
    planned = plan(request(*asked), descriptor(), limit, MIB)
    assert (planned.position, planned.length, planned.stop_position) == expected


@pytest.mark.parametrize(
    ("asked", "limit", "code"),
    [
        ((1025, -1), None, ErrorCode.GENERIC),
        ((992, -1), None, ErrorCode.INVALID_POSITION),
        ((196608, -1), None, ErrorCode.INVALID_POSITION),
        ((196640, -1), None, ErrorCode.INVALID_POSITION),
        ((4128, -1), 4096, ErrorCode.INVALID_POSITION),
        ((-1, -2), 1024, ErrorCode.EMPTY_RECORDING),
        ((2048, -3), None, ErrorCode.GENERIC),
    ],
)
def test_refused_requests(asked: tuple[int, int], limit: int | None, code: ErrorCode) -> None:
    """Each refusal has the reference's error code and names the recording."""
    with pytest.raises(ArchiveError, match="recording 4") as caught:
        plan(request(*asked), descriptor(), limit, MIB)
    assert caught.value.error_code == code


def test_reads_shorter_than_the_mtu_are_refused() -> None:
    """A frame must fit into one read; without a value or with 0 the archive chooses."""
    with pytest.raises(ArchiveError, match="MTU"):
        plan(request(file_io=1376), descriptor(), None, MIB)
    with pytest.raises(ArchiveError, match="MTU"):
        plan(request(), descriptor(), None, 1024)
    for file_io in (None, 0, -1, 1408):
        assert plan(request(file_io=file_io), descriptor(), None, MIB).position == 1024


def test_an_empty_recording_may_be_followed_from_its_start() -> None:
    """Without a position, a stopped, empty recording has an empty replay."""
    planned = plan(request(), descriptor(start=1024, stop=1024), None, MIB)
    assert (planned.position, planned.length) == (1024, 0)
