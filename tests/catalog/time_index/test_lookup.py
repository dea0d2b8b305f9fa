"""An index that is searched in its file: times are those of the column `recorded_time`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.builders.timed_directory import SECOND, START_MS, START_NS, Built, build

from aerotape.catalog.time_index.file import (
    HEADER_LENGTH,
    DamagedTimeIndexError,
    Provenance,
    write_time_index,
)
from aerotape.catalog.time_index.lookup import RecordedTimes, StoredPoints
from aerotape.catalog.time_index.points import POINT_LENGTH


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "archive")


def times_of(built: Built) -> list[int | None]:
    """Return the time of each message, microseconds."""
    with RecordedTimes(built.recording()) as times:
        found = [times.time_ns(each.position) for each in built.stream.messages]
    return [None if each is None else each // 1_000 for each in found]


def columns_of(built: Built) -> list[int | None]:
    """Return the column."""
    table = built.recording().to_arrow(columns=["recorded_time"])
    return [each.value for each in table["recorded_time"]]


def test_each_message_has_the_time_of_its_column(built: Built) -> None:
    """In any order."""
    wanted = columns_of(built)
    assert times_of(built) == wanted
    assert len(set(wanted)) > 10
    with RecordedTimes(built.recording()) as times:
        for message, time_us in reversed([*zip(built.stream.messages, wanted, strict=True)]):
            found = times.time_ns(message.position)
            assert found is not None and found // 1_000 == time_us


def test_what_precedes_the_first_point_has_no_time(built: Built) -> None:
    built.points = built.points[5:]
    built.put_index()
    wanted = columns_of(built)
    assert times_of(built) == wanted
    assert wanted[0] is None and wanted[-1] is not None


def test_an_incomplete_last_point_is_left_out(built: Built) -> None:
    """As a crash leaves it: cut off, or of zeros."""
    whole = built.path.read_bytes()
    for end in (b"", bytes(POINT_LENGTH), b"\1" * 5):
        built.path.write_bytes(whole[: -POINT_LENGTH // 2] + end)
        assert times_of(built) == columns_of(built)


def test_a_damaged_point_gives_no_time(built: Built) -> None:
    """To those for which it was looked at; the others have theirs."""
    wanted = columns_of(built)
    data = bytearray(built.path.read_bytes())
    data[HEADER_LENGTH + 7 * POINT_LENGTH] ^= 1
    built.path.write_bytes(data)
    found = times_of(built)
    assert None in found
    for time_us, each in zip(found, wanted, strict=True):
        assert time_us in (None, each)


def test_without_a_usable_index(built: Built) -> None:
    """It is missing, of another recording, not an index, or not a file."""
    nothing = [None] * len(built.stream.messages)
    other = Provenance(9, START_MS, 0, 0, 1)
    write_time_index(built.path, other, built.points)
    assert times_of(built) == nothing
    built.path.write_bytes(b"x" * 500)
    assert times_of(built) == nothing
    built.path.unlink()
    assert times_of(built) == nothing
    built.path.mkdir()
    assert times_of(built) == nothing
    built.path.rmdir()
    os.mkfifo(built.path)
    assert times_of(built) == nothing


def test_an_index_behind_a_link(built: Built) -> None:
    """It is read, as segment files are."""
    wanted = columns_of(built)
    built.path.rename(elsewhere := built.path.with_name("elsewhere"))
    built.path.symlink_to(elsewhere)
    assert times_of(built) == columns_of(built) == wanted


def test_points_that_another_archive_may_have_overwritten(built: Built) -> None:
    """Those are left out, as in the column."""
    whole = columns_of(built)
    changed = Provenance(0, START_MS, 5, 6, built.stream.session_id)
    write_time_index(built.path, changed, built.points)
    count = len(built.recording().segment_files())
    late = [START_NS + number * 3600 * SECOND for number in range(count)]
    built.touch_segments(*late)
    with pytest.warns(RuntimeWarning, match="are ignored"):
        wanted = columns_of(built)
    assert times_of(built) == wanted
    assert wanted != whole


def test_it_is_closed(built: Built) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    times = RecordedTimes(built.recording())
    times.close()
    times.close()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.mark.parametrize("is_changed", [False, True])
def test_the_whole_index_is_not_read(
    built: Built, monkeypatch: pytest.MonkeyPatch, is_changed: bool
) -> None:
    """Points are searched by position and by time, also where another archive has changed it."""
    if is_changed:
        changed = Provenance(0, START_MS, 5, 6, built.stream.session_id)
        write_time_index(built.path, changed, built.points)
    recording = built.recording()

    def read(*_: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr(type(recording), "time_index_parts", read)
    with StoredPoints(recording) as points:
        assert [points[index] for index in range(len(points))] == built.points
        assert points[-1] == built.points[-1]
        for index, each in enumerate(built.points):
            assert points.after_position(each.position) == index + 1
            assert points.after_time(each.time_ns - 1) == index
            assert points.after_time(each.time_ns) == index + 1
        with pytest.raises(IndexError):
            points[len(points)]


def test_a_damaged_point_is_an_error(built: Built) -> None:
    data = bytearray(built.path.read_bytes())
    data[HEADER_LENGTH] ^= 1
    built.path.write_bytes(data)
    with StoredPoints(built.recording()) as points, pytest.raises(DamagedTimeIndexError):
        points[0]
