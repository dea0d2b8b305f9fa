"""The file of a time index and its validation, on directories written byte by byte."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from support.builders.timed_directory import SECOND, START_MS, START_NS, Built, build

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.time_index.file import (
    Provenance,
    read_time_index,
    write_time_index,
)
from aerotape.catalog.time_index.index import TimeBounds
from aerotape.catalog.time_index.points import TimePoint
from aerotape.catalog.time_index_upkeep import (
    cut_after,
    cut_before,
    prepare_extension,
)
from aerotape.errors import StorageError
from aerotape.times import TimeRange


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "archive")


def assert_says(built: Built, points: list[TimePoint]) -> None:
    """The index has these points and no problem."""
    index = built.index()
    assert list(index.points) == points
    for message in built.stream.messages:
        bounds = index.time_at(message.position)
        time_ns = built.time_of(message.position)
        assert bounds.not_before_ns is None or bounds.not_before_ns <= time_ns
        assert bounds.not_after_ns is None or time_ns <= bounds.not_after_ns


# ---- the format ----------------------------------------------------------------------------------


def test_the_file_has_the_documented_format(built: Built) -> None:
    data = built.path.read_bytes()
    assert built.path.name == "aerotape-0.time-index"
    assert len(data) == 64 + 32 * len(built.points)
    assert data[:16] == b"AEROTIDX" + struct.pack("<HHI", 1, 32, 0)
    assert struct.unpack_from("<qqqqi", data, 16) == (0, START_MS, 0, 0, -42)
    assert struct.unpack_from("<I", data, 60) == (zlib.crc32(data[:60]),)
    second = data[96:128]
    expected = built.points[1]
    assert struct.unpack_from("<qqiI", second) == (expected.time_ns, expected.position, -42, 0)
    assert struct.unpack_from("<I", second, 28) == (zlib.crc32(second[:28]),)


def test_points_of_the_same_recording_are_used(built: Built) -> None:
    assert_says(built, built.points)
    assert built.index().source == "recorded"
    assert built.index().problem == ""


def test_messages_of_a_range_of_times(built: Built) -> None:
    messages = built.stream.messages
    first, last = messages[20], messages[59]
    times: dict[str, Any] = {
        "from_time": built.time_of(first.position),
        "to_time": built.time_of(last.position) + 1,
    }
    positions = [message.position for message in built.recording().messages(**times)]
    wanted = [message.position for message in messages[20:60]]
    assert set(wanted) <= set(positions)
    assert len(positions) <= len(wanted) + 4, "a point or so more at both ends"
    assert positions == built.recording().to_arrow(**times)["position"].to_pylist()
    late = [message.position for message in built.recording().messages(50_000, **times)]
    assert late == [position for position in positions if position >= 50_000]
    assert list(built.recording().messages(from_time="2036-03-01T00:00Z")) == []


# ---- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn_bytes", [1, 31, 32, 33, 4096])
def test_a_torn_end_after_a_crash_is_ignored(built: Built, torn_bytes: int) -> None:
    whole = built.path.read_bytes()
    with built.path.open("ab") as file:
        file.write(bytes(torn_bytes))
    assert_says(built, built.points)
    built.path.write_bytes(whole[:-torn_bytes])
    retained = (len(whole) - torn_bytes - 64) // 32
    assert list(built.index().points) == built.points[: max(retained, 0)]


@pytest.mark.parametrize("offset", [0, 8, 17, 63, 64 + 5 * 32 + 9])
def test_a_damaged_file_is_reported_and_not_used(built: Built, offset: int) -> None:
    data = bytearray(built.path.read_bytes())
    data[offset] ^= 0x40
    built.path.write_bytes(data)
    index = built.index()
    assert index.points == ()
    assert str(built.path) in index.problem
    # Only precision is lost.
    with pytest.warns(RuntimeWarning, match=r"aerotape-0\.time-index is damaged"):
        messages = list(built.recording().messages(from_time=START_NS))
    assert len(messages) == len(built.stream.messages)
    assert built.path.read_bytes() == data


def test_every_flipped_bit_is_found_or_affects_only_the_last_point(built: Built) -> None:
    data = built.path.read_bytes()
    for bit in range(0, len(data) * 8, 61):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        built.path.write_bytes(damaged)
        try:
            found = read_time_index(built.path)
        except StorageError as error:
            assert str(built.path) in str(error)
            continue
        assert found is not None
        assert found.points == built.points[:-1]


def test_an_index_of_another_recording_with_the_same_id_is_not_used(built: Built) -> None:
    other = Provenance(0, START_MS - 1, 0, 0, built.stream.session_id)
    write_time_index(built.path, other, built.points)
    index = built.index()
    assert index.points == ()
    assert "is of another recording" in index.problem


# ---- other archives ------------------------------------------------------------------------------


def overwrite(built: Built, position: int, session_id: int, seconds_later: int) -> None:
    """Truncate the recording and extend it with another image, as an archive does that does not
    know the index."""
    stream = built.stream
    whole = stream.position
    stream.position, stream.session_id = position, session_id
    stream.frames = {at: frame for at, frame in stream.frames.items() if at < position}
    stream.messages = [each for each in stream.messages if each.position < position]
    while stream.position < whole:
        stream.message(bytes(3_000))
    times = [segment.path.stat().st_mtime_ns for segment in built.recording().segment_files()]
    stream.write(built.archive_dir)
    first = int(position // stream.segment_length)
    late = built.points[-1].time_ns + seconds_later * SECOND
    built.touch_segments(*[time if n < first else late for n, time in enumerate(times)])
    with Catalog.open(built.archive_dir) as catalog:
        catalog.extend_recording(0, control_session_id=77, correlation_id=88, session_id=session_id)
        catalog.recording_stopped(0, stream.position, late // 1_000_000 + 1)


def test_points_after_a_truncation_by_another_archive_are_not_used(built: Built) -> None:
    cut = built.stream.messages[90].position
    assert built.stream.segment_base(cut) == built.stream.segment_length
    overwrite(built, cut, session_id=5, seconds_later=3600)
    index = built.index()
    first_segment = built.stream.segment_length
    assert list(index.points) == [p for p in built.points if p.position <= first_segment]
    assert "may have overwritten" in index.problem
    # Data after the cut was recorded an hour later.
    late = built.points[-1].time_ns + 1800 * SECOND
    with pytest.warns(RuntimeWarning, match="may have overwritten"):
        found = [message.position for message in built.recording().messages(from_time=late)]
    assert set(found) >= {m.position for m in built.stream.messages if m.position >= cut}


def test_an_extension_without_data_preserves_all_points(built: Built) -> None:
    with Catalog.open(built.archive_dir) as catalog:
        catalog.extend_recording(
            0, control_session_id=1, correlation_id=2, session_id=built.stream.session_id
        )
        catalog.recording_stopped(0, built.stream.position, START_MS + 3_600_000)
    assert list(built.index().points) == built.points


# ---- without points ------------------------------------------------------------------------------


def test_without_an_index_file_times_limit_the_ends_of_segments(
    built: Built,
) -> None:
    built.path.unlink()
    length, end = built.stream.segment_length, built.stream.position
    built.touch_segments(START_NS + SECOND, START_NS + 2 * SECOND, START_NS + 3 * SECOND)
    index = built.index()
    assert index.source == "none"
    assert index.positions(TimeRange(START_NS + SECOND, None)) == (0, end)
    assert index.positions(TimeRange(START_NS + 2 * SECOND, None)) == (length, end)
    assert index.positions(TimeRange(START_NS + 3 * SECOND, None)) == (2 * length, end)
    assert index.positions(TimeRange(None, START_NS)) == (0, 0)
    # A later segment may have been recorded before the last write to its file.
    assert index.positions(TimeRange(None, START_NS + 1)) == (0, end)
    stopped = built.points[-1].time_ns + SECOND
    assert index.positions(TimeRange(stopped, None)) == (end, end)
    bounds = index.time_at(0)
    assert bounds.not_before_ns == START_NS
    assert bounds.not_after_ns is not None
    assert START_NS + SECOND <= bounds.not_after_ns < START_NS + 2 * SECOND


def test_a_copy_with_new_file_times_is_less_precise_and_not_wrong(built: Built) -> None:
    built.path.unlink()
    built.touch_segments(*[START_NS + 10**6 * SECOND] * 3)
    index = built.index()
    end = built.stream.position
    assert index.positions(TimeRange(START_NS + SECOND, START_NS + 2 * SECOND)) == (0, end)
    assert index.time_at(0) == TimeBounds(START_NS, START_NS + 10**6 * SECOND + 10_000_000)


def test_segment_files_older_than_the_recording(built: Built) -> None:
    built.path.unlink()
    built.touch_segments(START_NS - SECOND, START_NS, START_NS)
    assert built.index().positions(TimeRange(None, START_NS)) == (0, built.stream.position)
    assert built.index().time_at(0).not_before_ns is None


# ---- upkeep --------------------------------------------------------------------------------------


def test_an_extension_retains_the_points_up_to_the_stop(built: Built) -> None:
    cut = built.stream.messages[30].position
    with Catalog.open(built.archive_dir) as catalog:
        catalog.set_stop_position(0, cut)
        entry = catalog.entry(0)
    after = Provenance(0, START_MS, 3, 4, 5)
    assert prepare_extension(built.archive_dir, entry, after) == ""
    found = read_time_index(built.path)
    assert found is not None
    assert found.provenance == after
    assert found.points == [point for point in built.points if point.position <= cut]


def test_an_extension_replaces_an_unreadable_index(built: Built) -> None:
    built.path.write_bytes(b"nonsense")
    entry = built.recording().entry
    problem = prepare_extension(built.archive_dir, entry, built.provenance)
    assert str(built.path) in problem
    found = read_time_index(built.path)
    assert found is not None
    [point] = found.points
    assert (point.position, point.is_estimate) == (built.stream.position, True), (
        "by when all was there that comes before the extension"
    )


def test_truncating_and_purging_remove_points(built: Built) -> None:
    low, high = built.stream.messages[20].position, built.stream.messages[71].position
    cut_after(built.archive_dir, 0, high)
    cut_before(built.archive_dir, 0, low)
    found = read_time_index(built.path)
    assert found is not None
    within = [point for point in built.points if low < point.position <= high]
    assert found.points[1:] == within
    assert found.points[0].position <= low, (
        "of the last one before the start it is known since when"
    )
    cut_after(built.archive_dir, 0, -1)
    assert not built.path.exists()
