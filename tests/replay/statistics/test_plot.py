"""`aerotape plot` and `recording.plot()`: pictures of a recording."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import aerotape
from support.jvm.java import ROOT

from aerotape.catalog.time_index.file import (
    Provenance,
    time_index_path,
    write_time_index,
)
from aerotape.catalog.time_index.points import TimePoint
from aerotape.replay.offline.directory import open_directory

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

COLOURS = {"rate": (0x00, 0x72, 0xB2), "gap": (0xD5, 0x5E, 0x00)}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A whole recording, one with a gap, and an empty one."""
    path = tmp_path / "archive"
    path.mkdir()
    add_recording(path, fill(SegmentBuilder(stream_id=5), 500))
    with_gap = fill(SegmentBuilder(start_position=98_304), 400, seed=2)
    add_recording(path, with_gap)
    with_gap.segment_path(path, 2 * 131_072).unlink()
    add_recording(path, SegmentBuilder(start_position=64))
    return path


def add_times(directory: Path, recording_id: int) -> None:
    """Add a time index with a constant rate over one second."""
    recording = open_directory(directory).recording(recording_id)
    begin = 1_700_000_000_000_000_000
    points = [TimePoint(begin, 0), TimePoint(begin + 1_000_000_000, recording.recorded_position)]
    path = time_index_path(directory, recording_id)
    write_time_index(path, Provenance.of(recording.entry), points)


def pixels(path: Path) -> Any:
    """Decode a picture: rows of pixels of red, green and blue, 0 to 255."""
    from matplotlib import image

    decoded = image.imread(path)
    return (decoded[..., :3] * 255).round().astype(int)


def share(picture: Any, colour: tuple[int, int, int]) -> float:
    """Return the approximate share of a colour in a picture."""
    return float((abs(picture - list(colour)).max(axis=2) < 20).mean())


def test_a_png_shows_messages_and_gaps(directory: Path, tmp_path: Path) -> None:
    """The picture is not blank and has the colours of messages and gaps; with a gap the exit code
    is 3."""
    pictures = []
    for recording_id, code in ((0, 0), (1, 3), (2, 0)):
        out = tmp_path / f"{recording_id}.png"
        captured = aerotape("plot", directory, recording_id, "-o", out, expect=code)
        assert captured.out == f"{out}\n"
        assert ("1 gaps, the first at position 196608" in captured.err) == (code == 3)
        pictures.append(pixels(out))
    whole, with_gap, empty = pictures
    assert whole.shape == with_gap.shape == (960, 1650, 3)
    assert 0.3 < share(whole, (255, 255, 255)) < 0.9
    assert share(whole, COLOURS["rate"]) > 0.005
    assert share(empty, COLOURS["rate"]) == 0
    assert share(with_gap, COLOURS["gap"]) > 0.005
    assert share(whole, COLOURS["gap"]) == 0
    assert list(tmp_path.glob(".*")) == []


def test_other_formats(directory: Path, tmp_path: Path) -> None:
    """The file name selects the format; an existing file is replaced."""
    svg, pdf = tmp_path / "a.SVG", tmp_path / "b.pdf"
    svg.write_text("old")
    for out in (svg, pdf):
        aerotape("plot", directory, "0", "-o", out)
    paths = ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}path")
    assert len(list(paths)) > 50
    assert pdf.read_bytes().startswith(b"%PDF-")


def test_the_only_recording_needs_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without options the only recording is drawn, to a file with a default name."""
    add_recording(tmp_path, fill(SegmentBuilder(), 50))
    monkeypatch.chdir(tmp_path)
    row = aerotape("plot", tmp_path, "--json").json
    assert row == {"file": "recording-0.png", "recording_id": 0, "messages": 50, "gaps": 0}
    assert Path("recording-0.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ([], 2, "give RECORDING_ID, one of 0, 1, 2"),
        (
            ["0", "-o", "x.gif"],
            2,
            "cannot write an image to x.gif: the name must end in .png, .svg, .pdf",
        ),
        (["9"], 1, "no recording with id 9"),
        (["0", "--bins", "100001"], 2, "bins must be between 0 and 100000, got 100001"),
        (["0", "--from-time", "noon"], 2, "argument --from-time/--since: 'noon' is not a"),
        (["0", "--bins", "0"], 2, "bins must be at least 1 for a picture, got 0"),
        (["0", "--from-position", "9", "--to-position", "8"], 2, "after --to-position"),
        (["0", "-o", "x"], 2, "cannot write an image to x"),
        (["0", "-o", "no/such/folder/x.png"], 1, "cannot write no/such/folder/x.png: No such file"),
    ],
)
def test_usage_errors_are_one_line(
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    complaint: str,
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    captured = aerotape("plot", directory, *arguments, expect=code)
    assert captured.out == ""
    [line] = captured.err.splitlines()
    assert complaint in line
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_without_matplotlib_the_error_names_the_extra(directory: Path, tmp_path: Path) -> None:
    """Command and method report it; everything else works without matplotlib."""
    (tmp_path / "matplotlib.py").write_text("raise ImportError('no')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    code = (
        "import aerotape, sys\n"
        "recording = aerotape.open_directory(sys.argv[1]).recording(0)\n"
        "print(recording.stats().messages)\n"
        "try:\n    recording.plot()\n"
        "except aerotape.ConfigurationError as error:\n    print(error)\n"
    )
    run = {"capture_output": True, "text": True, "env": environment, "timeout": 60}
    done: Any = subprocess.run([sys.executable, "-c", code, str(directory)], **run)  # type: ignore[call-overload]
    error = (
        "matplotlib is not installed: `pip install '.[plot]'` in aerotape's checkout, or "
        "`pip install 'WHEEL[plot]'` with the wheel that `make wheel` builds there"
    )
    assert done.stdout.splitlines() == ["500", error], done.stderr
    command = [sys.executable, "-m", "aerotape", "plot", str(directory), "0"]
    done = subprocess.run(command, cwd=tmp_path, **run)  # type: ignore[call-overload]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"aerotape plot: {error}\n"


def test_a_new_figure(directory: Path) -> None:
    """The axes of the rate are returned with the bins; their figure has the other panels."""
    from matplotlib import pyplot
    from matplotlib.patches import StepPatch

    recording = open_directory(directory).recording(0)
    before = pyplot.get_fignums()
    ax = recording.plot(bins=20)
    try:
        patches = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
        drawn: Any = patches[0].get_data()
        bins = recording.stats(bins=20).bins
        assert list(drawn.edges) == [*(b.from_position for b in bins), bins[-1].to_position]
        rates = [b.messages * (1 << 20) / b.length_bytes for b in bins]
        assert list(drawn.values) == pytest.approx(rates)
        assert sum(b.messages for b in bins) == 500
        figure = ax.figure
        assert ax.get_ylabel() == "messages per MiB"
        assert {a.get_xlabel() for a in figure.axes} >= {
            "position in the stream",
            "share of messages",
        }
        assert "Recording 0, stream 5" in figure._suptitle.get_text()  # type: ignore[union-attr]
        assert pyplot.get_fignums() == [*before, figure.number]  # type: ignore[union-attr]
    finally:
        pyplot.close("all")


def test_panels_into_axes_of_the_caller(directory: Path) -> None:
    """Each panel can be drawn into the caller's axes; the shares add up."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from aerotape.errors import ConfigurationError

    recording = open_directory(directory).recording(0)
    rate, lengths, distribution = Figure().subplots(3)
    assert recording.plot(rate) is rate
    assert recording.plot(lengths, panel="lengths") is lengths
    assert recording.plot(distribution, panel="distribution") is distribution
    assert lengths.get_ylabel() == "length of a message"
    shares = [bar.get_width() for bar in distribution.patches if isinstance(bar, Rectangle)]
    assert sum(shares) == pytest.approx(100)
    with pytest.raises(ConfigurationError, match="unknown panel 'pie'"):
        recording.plot(rate, panel="pie")  # type: ignore[arg-type]


def test_many_gaps_are_drawn_as_few(tmp_path: Path) -> None:
    """A thousand small adjacent gaps are one hatched area, and all are counted."""
    from matplotlib.figure import Figure

    builder = SegmentBuilder()
    for _ in range(1900):
        builder.message(b"x" * 20)
    recording_id = add_recording(tmp_path, builder)
    path = builder.segment_path(tmp_path, 0)
    data = bytearray(path.read_bytes())
    for message in builder.messages[400:1400:2]:
        data[message.position : message.position + 4] = bytes(4)
    path.write_bytes(data)
    recording = open_directory(tmp_path).recording(recording_id)
    ax = recording.plot(Figure().subplots(), over="position")
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == 1
    assert recording.stats().gap_count == 500


def test_over_time(directory: Path, tmp_path: Path) -> None:
    """Plots over time are the default if times are known, and show the throughput in bytes."""
    from matplotlib.figure import Figure

    from aerotape.errors import ConfigurationError

    add_times(directory, 0)
    recording = open_directory(directory).recording(0)
    rate, throughput = Figure().subplots(2)
    recording.plot(rate, bins=10)
    recording.plot(throughput, panel="throughput", bins=10)
    assert (rate.get_ylabel(), rate.get_xlabel()) == ("messages/s", "time (UTC)")
    assert throughput.get_ylabel() == "bytes/s"
    drawn: Any = rate.patches[0].get_data()
    bins = recording.stats(over="time", bins=10).bins
    assert list(drawn.values) == [b.messages_per_s for b in bins]
    seconds = (drawn.edges - drawn.edges[0]) * 86_400
    assert list(seconds) == pytest.approx([i / 10 for i in range(11)], abs=1e-4)
    out = tmp_path / "time.png"
    aerotape("plot", directory, "0", "--over", "time", "-o", out)
    assert share(pixels(out), COLOURS["rate"]) > 0.005
    with pytest.raises(ConfigurationError, match="requires statistics over time"):
        recording.plot(throughput, panel="throughput", over="position")
    refused = aerotape("plot", directory, "1", "--over", "time", "-o", out, expect=2)
    assert "use over position" in refused.err
    arguments = ["--over", "position", "--from-time", "2030-01-01T00:00Z"]
    aerotape("plot", directory, "0", *arguments, "-o", out)
