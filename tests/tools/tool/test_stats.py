"""`aerotape tool DIR stats`: the charts of a recording in a terminal, and its numbers."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import tool
from support.jvm.java import ROOT

from aerotape.catalog.time_index.file import (
    Provenance,
    time_index_path,
    write_time_index,
)
from aerotape.catalog.time_index.points import TimePoint
from aerotape.formatting import bytes_text, count_text
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._cli import chart

BLOCKS = "▁▂▃▄▅▆▇█"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A whole recording, one with a gap, an empty one and a live one."""
    add_recording(tmp_path, fill(SegmentBuilder(stream_id=5), 300))
    with_gap = fill(SegmentBuilder(start_position=98_304), 400, seed=2)
    add_recording(tmp_path, with_gap)
    with_gap.segment_path(tmp_path, 2 * 131_072).unlink()
    add_recording(tmp_path, SegmentBuilder(start_position=64))
    add_recording(tmp_path, fill(SegmentBuilder(), 20, seed=3), live=True)
    return tmp_path


def test_numbers_match_the_messages(directory: Path) -> None:
    """One recording is an object, all are an array; a gap makes the exit code 3."""
    one = tool(directory, "stats", "0", "--json").json
    lengths = [m.length for m in open_directory(directory).recording(0).messages()]
    assert (one["messages"], one["payload_bytes"]) == (300, sum(lengths))
    assert (one["min_bytes"], one["max_bytes"]) == (min(lengths), max(lengths))
    assert len(one["bins"]) == 100
    assert sum(part["messages"] for part in one["bins"]) == 300
    assert one["messages_per_s"] == 300
    every = tool(directory, "stats", "--bins", "7", "--json", expect=3).json
    assert [row["recording_id"] for row in every] == [0, 1, 2, 3]
    assert [row["gap_count"] for row in every] == [0, 1, 0, 0]
    assert [len(row["bins"]) for row in every] == [7, 7, 0, 7]
    [gap] = every[1]["gaps"]
    assert (gap["kind"], gap["from_position"], gap["to_position"]) == ("missing", 196_608, 327_680)


def picture(directory: Path, recording_id: int, width: int, encoding: str) -> list[str]:
    """Run the command in a separate process with such a terminal."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": encoding,
        "COLUMNS": str(width),
        "TERM": "xterm",
    }
    done = subprocess.run(
        [sys.executable, "-m", "aerotape", "tool", str(directory), "stats", str(recording_id)],
        capture_output=True,
        env=environment,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (3 if recording_id == 1 else 0, b"")
    return done.stdout.decode(encoding).splitlines()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [40, 120])
def test_the_picture_fits_the_terminal(directory: Path, width: int, encoding: str) -> None:
    """No line is wider; the bars use the available width; ASCII only where required."""
    lines = picture(directory, 1, width, encoding)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert any(c in text for c in BLOCKS) == (encoding == "utf-8")
    assert text.isascii() == (encoding == "ascii")
    assert lines[0].startswith("recording 1, stream 1001")
    assert "gaps:      1, 128 KiB" in lines
    chart = lines[lines.index("messages per MiB of the recording") + 1 :]
    axis = next(line for line in chart if line.lstrip().startswith("0 "))
    assert len(axis) == width
    [marks] = [line for line in chart if line.lstrip().startswith("gaps")]
    columns = [i for i, c in enumerate(marks[10:]) if c == "x"]
    assert columns == list(range(columns[0], columns[-1] + 1))
    recording = open_directory(directory).recording(1)
    bins = recording.stats(bins=recording.stats().messages // 20).bins
    room = width - 10
    assert columns == [i for i in range(room) if bins[i * len(bins) // room].gap_bytes]


def test_over_time(directory: Path) -> None:
    """By default if there is a time index; the axis has times then."""
    recording = open_directory(directory).recording(0)
    begin = 1_700_000_000_000_000_000
    ends = [(0, 0), (90, recording.recorded_position)]
    points = [TimePoint(begin + seconds * 1_000_000_000, place) for seconds, place in ends]
    path = time_index_path(directory, 0)
    write_time_index(path, Provenance.of(recording.entry), points)
    lines = picture(directory, 0, 120, "utf-8")
    assert "messages/s" in lines
    assert lines[-1].split() == ["22:13:20", "22:14:05", "22:14:50Z"]
    one = tool(directory, "stats", "0", "--json").json
    assert one["over"] == "time"
    assert sum(part["messages"] for part in one["bins"]) == 300
    assert [part["from_time_ns"] for part in one["bins"][:2]] == [begin, begin + 900_000_000]
    assert tool(directory, "stats", "0", "--over", "position", "--json").json["over"] == "position"
    tool(directory, "stats", "3", "--over", "time", expect=2)


def test_bars_are_as_long_as_there_are_messages(directory: Path) -> None:
    """The fullest bucket has the longest bar, and counts add up."""
    lines = picture(directory, 0, 120, "utf-8")
    begin = lines.index("length of messages in bytes") + 1
    rows = lines[begin : lines.index("", begin)]
    shares = [float(row.split()[-1].rstrip("%")) for row in rows]
    bars = [sum(row.count(c) for c in "▏▎▍▌▋▊▉█") for row in rows]
    assert sum(shares) == pytest.approx(100, abs=0.1 * len(rows))
    assert sum(int(row.split()[-2]) for row in rows) == 300
    assert bars.index(max(bars)) == shares.index(max(shares))
    assert all((bar > 0) == (share > 0) for bar, share in zip(bars, shares, strict=True))
    assert sorted(bars) == [bars[i] for i in sorted(range(len(rows)), key=lambda i: shares[i])]


def test_all_recordings_are_a_line_each(directory: Path) -> None:
    """Unreadable recordings are reported, and the others are shown."""
    path = directory / "archive.catalog"
    data = bytearray(path.read_bytes())
    offset = data.index(b"aeron:udp", data.index(b"aeron:udp", data.index(b"alias") + 1))
    data[offset - 4 : offset] = (1 << 20).to_bytes(4, "little")
    path.write_bytes(data)
    captured = tool(directory, "stats", expect=3)
    assert [line.split()[0] for line in captured.out.splitlines()] == [
        "recording_id",
        "0",
        "2",
        "3",
    ]
    assert re.fullmatch(r"skipped: .*damaged descriptor.*\n", captured.err)


def test_a_terminal_that_shows_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its encoding, or by TERM=dumb."""
    monkeypatch.setenv("TERM", "xterm")
    assert chart.terminal_style(io.TextIOWrapper(io.BytesIO(), "utf-8")) is chart.UNICODE
    for encoding in ("ascii", "latin-1", "cp437"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        assert chart.terminal_style(stream) is chart.ASCII
    monkeypatch.setenv("TERM", "dumb")
    assert chart.terminal_style(io.TextIOWrapper(io.BytesIO(), "utf-8")) is chart.ASCII


def test_charts_reach_from_axis_to_top() -> None:
    """The largest value fills its column, zero is empty, and any other value is visible."""
    lines = chart.columns([0, 1e-9, 5, 10], 2, 10, chart.UNICODE)
    assert lines == ["   █", " ▁██"]
    assert chart.columns([0, 1e-9, 5, 10], 2, 10, chart.ASCII) == ["   #", " .##"]
    assert chart.horizontal_bar(0, 10, chart.UNICODE) == ""
    assert chart.horizontal_bar(1, 10, chart.UNICODE) == "█" * 10
    assert chart.horizontal_bar(1e-9, 10, chart.UNICODE) == "▏"
    assert (
        chart.spread(["0 B", "middle", "end"], 30) == "0 B" + " " * 9 + "middle" + " " * 9 + "end"
    )
    assert chart.spread(["0 B", "mid", "end"], 11) == "0 B     end"


@pytest.mark.parametrize(
    ("count", "in_bytes", "plain"),
    [
        (0, "0 B", "0"),
        (1000, "0.98 KiB", "1k"),
        (1024, "1 KiB", "1.02k"),
        (999_600, "976 KiB", "1M"),
        (0.25, "0.25 B", "0.25"),
    ],
)
def test_numbers_for_people(count: float, in_bytes: str, plain: str) -> None:
    """Three digits and a unit."""
    assert (bytes_text(count), count_text(count)) == (in_bytes, plain)
