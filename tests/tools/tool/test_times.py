"""Commands that choose by wall-clock time, and `aerotape tool DIR time-index`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.offline_directory import content
from support.builders.timed_directory import SECOND, START_NS, Built, build
from support.daemon.command_line import tool

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.time_index.index import TimeIndex
from aerotape.times import format_time


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "archive")


def between(built: Built, first: int, last: int) -> tuple[str, str]:
    """Options for the times at which the messages of these numbers were recorded."""
    messages = built.stream.messages
    from_ns = built.time_of(messages[first].position)
    to_ns = built.time_of(messages[last].position) + 1
    return f"--from-time={format_time(from_ns)}", f"--to-time={to_ns}ns"


# ---- dump and verify -----------------------------------------------------------------------------


def test_dump_prints_the_frames_of_a_time_range(built: Built) -> None:
    done = tool(built.archive_dir, "dump", *between(built, 20, 39), "--json")
    rows, err = done.json, done.err
    assert err == ""
    found = [row["position"] for row in rows]
    whole = [row["position"] for row in tool(built.archive_dir, "dump", "--json").json]
    wanted = {message.position for message in built.stream.messages[20:40]}
    assert wanted <= set(found)
    assert found == [position for position in whole if found[0] <= position <= found[-1]]
    assert len(found) < 2 * (20 + 5), "two frames a message, and little more at the ends"
    limited = tool(built.archive_dir, "dump", "3", *between(built, 20, 39), "--json").json
    assert [row["position"] for row in limited] == found[:3]
    assert tool(built.archive_dir, "dump", "--from-time=2040-01-01T00:00Z", "--json").json == []


def test_verify_checks_the_segments_of_a_time_range(built: Built) -> None:
    segment = built.stream.segment_length
    broken = built.stream.segment_path(built.archive_dir, 0)
    data = bytearray(broken.read_bytes())
    data[0:4] = b"\1\0\0\0"
    broken.write_bytes(data)
    [later] = [n for n, m in enumerate(built.stream.messages) if m.position == _first(built)]
    before = content(built.archive_dir)
    [sound] = tool(
        built.archive_dir, "verify", *between(built, later + 3, later + 9), "--json"
    ).json
    assert (sound["ok"], sound["segments"]) == (True, 1)
    [bad] = tool(
        built.archive_dir, "verify", *between(built, 5, later + 9), "--json", expect=3
    ).json
    assert (bad["ok"], bad["segments"]) == (False, 2)
    assert bad["problems"][0]["position"] < segment
    assert content(built.archive_dir) == before, "of a part nothing is marked"


def _first(built: Built) -> int:
    """Position of the first message in the second segment."""
    length = built.stream.segment_length
    return next(m.position for m in built.stream.messages if m.position >= length)


def test_a_missing_index_is_reported(built: Built) -> None:
    built.path.unlink()
    done = tool(built.archive_dir, "dump", *between(built, 20, 39), "--json")
    rows, err = done.json, done.err
    assert err.count("recording 0 has no time index") == 1
    assert {message.position for message in built.stream.messages[20:40]} <= {
        row["position"] for row in rows
    }
    built.path.write_bytes(b"nonsense")
    err = tool(built.archive_dir, "verify", *between(built, 20, 39), "--json").err
    assert f"warning: time index {built.path} is damaged" in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["dump", "--from-time", "2026-03-01T09:30"],
            "'2026-03-01T09:30' has no time zone",
        ),
        (["verify", "--to-time", "soon"], "--to-time: 'soon' is not a valid time"),
        (["dump", "--from-time=2000000ms", "--to-time=1000000ms"], "goes backwards"),
        (["time-index", "--points"], "--points requires a RECORDING_ID"),
        (["time-index", "--dry-run"], "--dry-run requires --rebuild"),
        (["time-index", "0", "--points", "--rebuild"], "not allowed with"),
    ],
)
def test_bad_usage_is_one_line(built: Built, arguments: list[str], complaint: str) -> None:
    err = tool(built.archive_dir, *arguments, "--json", expect=2).err
    assert complaint in err
    assert len(err.splitlines()) == 1


# ---- time-index ----------------------------------------------------------------------------------


def test_an_index_is_shown(built: Built) -> None:
    first, last = built.points[0], built.points[-1]
    assert tool(built.archive_dir, "time-index", "--json").json == [
        {
            "recording_id": 0,
            "source": "recorded",
            "points": len(built.points),
            "from_time": format_time(first.time_ns),
            "to_time": format_time(last.time_ns),
            "from_position": 0,
            "to_position": built.stream.position,
        }
    ]
    points = tool(built.archive_dir, "time-index", "0", "--points", "--json").json
    assert [(row["time_ns"], row["position"]) for row in points] == [
        (point.time_ns, point.position) for point in built.points
    ]
    assert "2023-11-14T22:13:20.000000001Z" in tool(built.archive_dir, "time-index").out
    built.path.unlink()
    done = tool(built.archive_dir, "time-index", "--json")
    [row], err = done.json, done.err
    assert (row["source"], row["points"], row["from_time"], err) == ("none", 0, None, "")
    tool(built.archive_dir, "time-index", "7", "--json", expect=1)


def test_a_lost_index_is_estimated_from_unmodified_files(built: Built) -> None:
    built.path.unlink()
    segment, stop_ns = built.stream.segment_length, built.points[-1].time_ns
    built.touch_segments(START_NS + SECOND, START_NS + 2 * SECOND, stop_ns)
    before = content(built.archive_dir)
    expected = [{"recording_id": 0, "points_kept": 0, "estimates": 4, "dry_run": True}]
    assert (
        tool(built.archive_dir, "time-index", "--rebuild", "--dry-run", "--json").json == expected
    )
    assert content(built.archive_dir) == before
    assert tool(built.archive_dir, "time-index", "--rebuild", "--json").json == [
        {**expected[0], "dry_run": False}
    ]
    index = built.index()
    assert index.source == "estimated"
    assert [(point.time_ns, point.position) for point in index.points] == [
        (START_NS, 0),
        (START_NS + SECOND, segment),
        (START_NS + 2 * SECOND, 2 * segment),
        (stop_ns // 1_000_000 * 1_000_000, built.stream.position),
    ]
    now = content(built.archive_dir)
    assert before.items() <= now.items(), "nothing else is changed"
    err = tool(built.archive_dir, "dump", "1", "--from-time", f"{START_NS}ns", "--json").err
    assert "recording 0 has an estimated time index" in err
    # Repeated, it retains all points.
    [row] = tool(built.archive_dir, "time-index", "0", "--rebuild", "--json").json
    assert (row["points_kept"], row["estimates"]) == (4, 0)


@pytest.mark.parametrize(
    ("times", "doubt"),
    [
        ([10**7, 10**7, 10**7], "were written to after the recording had stopped"),
        ([2, 1, 2], "not written to last in their order"),
    ],
)
def test_modified_files_are_not_used_for_estimates(
    built: Built, times: list[int], doubt: str
) -> None:
    built.path.unlink()
    built.touch_segments(*[START_NS + seconds * SECOND for seconds in times])
    done = tool(built.archive_dir, "time-index", "--rebuild", "--json")
    rows, err = done.json, done.err
    assert doubt in err
    assert rows[0]["estimates"] == 0
    assert not built.path.exists()


def test_valid_points_are_retained_and_missing_ones_estimated(built: Built) -> None:
    kept = [point for point in built.points if point.position < built.stream.segment_length]
    built.points[:] = kept
    built.put_index()
    with built.path.open("ab") as file:
        file.write(b"torn")
    stop_ns = START_NS + 60 * SECOND
    with Catalog.open(built.archive_dir) as catalog:
        catalog.recording_stopped(0, built.stream.position, stop_ns // 1_000_000)
    built.touch_segments(START_NS + 30 * SECOND, START_NS + 40 * SECOND, START_NS + 50 * SECOND)
    [row] = tool(built.archive_dir, "time-index", "--rebuild", "--json").json
    assert (row["points_kept"], row["estimates"]) == (len(kept), 3)
    index = TimeIndex.of(built.recording())
    assert list(index.points[: len(kept)]) == kept
    assert [p.time_ns for p in index.points[len(kept) :]] == [
        START_NS + 30 * SECOND,
        START_NS + 40 * SECOND,
        stop_ns,
    ]
