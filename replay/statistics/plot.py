"""Plots of a recording: messages and their lengths over positions or time, and all lengths.

Needs matplotlib, which only this module imports (the extra `plot`). The colours are those of Okabe
and Ito, which are distinct with any kind of colour blindness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from aerotape.errors import ConfigurationError
from aerotape.formatting import bytes_text, count_text, not_installed, printable

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, NullLocator
except ImportError as error:
    raise ConfigurationError(not_installed("matplotlib", "plot")) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from aerotape.replay.statistics.model import RecordingStatistics

Panel = Literal["rate", "throughput", "lengths", "distribution"]
PANELS: Final[tuple[Panel, ...]] = ("rate", "throughput", "lengths", "distribution")
"""Panels of a plot: rates of messages and of bytes, lengths, and the distribution of all lengths.
The first three are over time or positions; the second over time only."""

_BLUE, _SKY, _VERMILION, _GREY = "#0072B2", "#56B4E9", "#D55E00", "#595959"
_SIZE_INCHES: Final = (11.0, 6.4)
_NS_PER_DAY: Final = 86_400 * 1_000_000_000
# Shortest time axis, in days: by its time index a recording may have taken no time.
_SHORTEST_SPAN: Final = 1e6 / _NS_PER_DAY
_MIB: Final = 1 << 20
_MOST_TICKS: Final = 8
# Approximate share of the width of one pixel.
_NEAR: Final = 1 / 1000


def draw(statistics: RecordingStatistics, figure: Figure) -> Axes:
    """Draw all panels into a figure; return the axes of the rate."""
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)
    upper: list[Panel] = ["rate"] if statistics.over == "position" else ["rate", "throughput"]
    heights = (1.0,) if statistics.over == "position" else (0.75, 0.5)
    rows = len(upper) + 1
    grid = figure.add_gridspec(
        rows, 2, width_ratios=(3.4, 1), height_ratios=(*heights, sum(heights) * 1.1)
    )
    lengths = figure.add_subplot(grid[-1, 0])
    distribution = figure.add_subplot(grid[-1, 1], sharey=lengths)
    _draw_lengths(lengths, statistics)
    _draw_distribution(distribution, statistics)
    distribution.set_ylabel("")
    distribution.tick_params(left=False, labelleft=False)
    above = []
    for row, panel in enumerate(upper):
        ax = figure.add_subplot(grid[row, 0], sharex=lengths)
        draw_panel(statistics, ax, panel)
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
        ax.xaxis.get_offset_text().set_visible(False)
        above.append(ax)
    _write_summary(figure.add_subplot(grid[:-1, 1]), statistics)
    figure.suptitle(_title(statistics), x=0.01, ha="left", fontsize=12, fontweight="bold")
    return above[0]


def draw_panel(statistics: RecordingStatistics, ax: Axes, panel: Panel) -> Axes:
    """Draw one panel into given axes, and return them (ConfigurationError)."""
    if panel not in PANELS:
        raise ConfigurationError(f"unknown panel {panel!r}: expected {', '.join(PANELS)}", "panel")
    panels: dict[Panel, Callable[[Axes, RecordingStatistics], None]] = {
        "rate": _draw_rate,
        "throughput": _draw_throughput,
        "lengths": _draw_lengths,
        "distribution": _draw_distribution,
    }
    panels[panel](ax, statistics)
    return ax


def new_figure() -> Figure:
    """Return a figure of the default size without a window."""
    return Figure(figsize=_SIZE_INCHES)


def interactive_figure() -> Figure:
    """Return a figure of the default size that notebooks and `matplotlib.pyplot.show` display."""
    from matplotlib import pyplot

    return pyplot.figure(figsize=_SIZE_INCHES)


def _title(statistics: RecordingStatistics) -> str:
    name = f"Recording {statistics.recording_id}, stream {statistics.stream_id}"
    channel = printable(statistics.channel)
    # A dollar sign would start a formula.
    return f"{name}, {channel[:80] + '…' if len(channel) > 80 else channel}".replace("$", r"\$")


def _draw_rate(ax: Axes, statistics: RecordingStatistics) -> None:
    if statistics.over == "time":
        _prepare(ax, statistics, "messages", "messages/s")
        values = [part.messages_per_s or 0.0 for part in statistics.bins]
    else:
        _prepare(ax, statistics, "messages", "messages per MiB")
        values = [part.messages * _MIB / part.length_bytes for part in statistics.bins]
    _fill(ax, statistics, values)
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(value)))


def _draw_throughput(ax: Axes, statistics: RecordingStatistics) -> None:
    if statistics.over != "time":
        raise ConfigurationError("the panel throughput requires statistics over time", "panel")
    _prepare(ax, statistics, "recorded bytes, with headers and padding", "bytes/s")
    _fill(ax, statistics, [part.bytes_per_s or 0.0 for part in statistics.bins])
    ax.yaxis.set_major_locator(_PowersOfTwo(0, most=5))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))


def _fill(ax: Axes, statistics: RecordingStatistics, values: Sequence[float]) -> None:
    if not statistics.messages:
        return
    edges = _edges(statistics)
    ax.stairs(values, edges, fill=True, color=_SKY, alpha=0.45)
    ax.stairs(values, edges, color=_BLUE, linewidth=1.2)
    ax.set_ylim(0, (max(values) or 1) * 1.08)


def _draw_lengths(ax: Axes, statistics: RecordingStatistics) -> None:
    _prepare(ax, statistics, "lengths of messages", "length of a message")
    if not statistics.messages:
        return
    edges = _edges(statistics)

    def of(name: str) -> list[float]:
        return [
            float(getattr(part, name)) if part.messages else math.nan for part in statistics.bins
        ]

    low, median, p99, high = map(of, ("min_bytes", "median_bytes", "p99_bytes", "max_bytes"))
    _band(ax, low, high, edges, _SKY, 0.25, "shortest to longest")
    _band(ax, median, p99, edges, _BLUE, 0.35, "median to 99th percentile")
    ax.stairs(median, edges, baseline=None, color=_BLUE, linewidth=1.6, label="median")
    _scale_lengths(ax, statistics)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, frameon=False, fontsize="small"
    )


def _band(
    ax: Axes,
    low: Sequence[float],
    high: Sequence[float],
    edges: Sequence[float],
    colour: str,
    alpha: float,
    label: str,
) -> None:
    ax.stairs(
        high,
        edges,
        baseline=low,
        fill=True,
        facecolor=colour,
        edgecolor=colour,
        alpha=alpha,
        linewidth=0.8,
        label=label,
    )


def _draw_distribution(ax: Axes, statistics: RecordingStatistics) -> None:
    _decorate(ax, "all messages", "share of messages")
    ax.grid(axis="x", alpha=0.25)
    ax.set_ylabel("length of a message")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g} %"))
    if not statistics.messages:
        _say_nothing(ax)
        return
    buckets = [bucket for bucket in statistics.histogram(8) if bucket.messages]
    shares = [100 * bucket.messages / statistics.messages for bucket in buckets]
    ax.barh(
        [bucket.from_bytes for bucket in buckets],
        shares,
        height=[bucket.to_bytes - bucket.from_bytes for bucket in buckets],
        align="edge",
        color=_BLUE,
        edgecolor="white",
        linewidth=0.4,
    )
    ax.set_xlim(0, max(shares) * 1.15)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    _scale_lengths(ax, statistics)


def _write_summary(ax: Axes, statistics: RecordingStatistics) -> None:
    s = statistics
    ax.axis("off")
    rows = [
        ("messages", f"{s.messages:,}"),
        ("payload", bytes_text(s.payload_bytes)),
        ("recorded", bytes_text(s.length_bytes)),
    ]
    if s.messages_per_s is not None and s.bytes_per_s is not None:
        rows.append(("mean rate", f"{count_text(s.messages_per_s)}/s"))
        rows.append(("", f"{bytes_text(s.bytes_per_s)}/s"))
    if s.messages:
        rows += [
            ("median", bytes_text(s.quantile_bytes(0.5))),
            ("99 %", bytes_text(s.quantile_bytes(0.99))),
            ("99.9 %", bytes_text(s.quantile_bytes(0.999))),
            ("longest", bytes_text(s.max_bytes)),
        ]
    rows.append(("padding", bytes_text(s.padding_bytes)))
    rows.append(("gaps", f"{s.gap_count:,} ({bytes_text(s.gap_bytes)})" if s.gap_count else "none"))
    for number, (name, text) in enumerate(rows):
        y = 1 - number / 11
        colour = _VERMILION if name == "gaps" and s.gap_count else "black"
        place: dict[str, Any] = {"transform": ax.transAxes, "va": "top", "fontsize": 9}
        ax.text(0.02, y, name, color=_GREY, **place)
        ax.text(1, y, text, color=colour, ha="right", **place)


def _prepare(ax: Axes, statistics: RecordingStatistics, title: str, unit: str) -> None:
    """Prepare axes over positions or time, with the gaps in them."""
    _decorate(ax, title, "")
    ax.set_ylabel(unit)
    ax.grid(alpha=0.25)
    if statistics.over == "time":
        _scale_times(ax, statistics)
    else:
        _scale_positions(ax, statistics)
    for number, (begin, end) in enumerate(_gaps(statistics)):
        ax.axvspan(
            begin,
            end,
            facecolor="none",
            edgecolor=_VERMILION,
            hatch="////",
            linewidth=0.8,
            label="" if number else "gap: no frames",
        )
    if not statistics.messages:
        _say_nothing(ax)


def _gaps(statistics: RecordingStatistics) -> list[tuple[float, float]]:
    """Return the ranges of gaps on the axis; over time, the bins that contain gaps.

    Gaps that are too close to be distinguished are merged.
    """
    if not statistics.bins:
        return []
    edges = _edges(statistics)
    if statistics.over == "position":
        spans: list[tuple[float, float]] = [
            (gap.from_position, gap.to_position) for gap in statistics.gaps
        ]
    else:
        parts = zip(statistics.bins, pairwise(edges), strict=True)
        spans = [span for part, span in parts if part.gap_bytes]
    apart = (edges[-1] - edges[0]) * _NEAR
    joined: list[tuple[float, float]] = []
    for begin, end in spans:
        if joined and begin - joined[-1][1] <= apart:
            begin = joined.pop()[0]
        joined.append((begin, end))
    return joined


def _decorate(ax: Axes, title: str, label: str) -> None:
    ax.set_title(title, loc="left", fontsize=10, color=_GREY)
    ax.set_xlabel(label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)


def _say_nothing(ax: Axes) -> None:
    ax.text(0.5, 0.5, "no messages", transform=ax.transAxes, ha="center", color=_GREY)


def _edges(statistics: RecordingStatistics) -> list[float]:
    """Edges of the bins in the units of the horizontal axis."""
    bins = statistics.bins
    if statistics.over == "position":
        return [float(part.from_position) for part in bins] + [statistics.to_position]
    times_ns = [part.from_time_ns or 0 for part in bins] + [bins[-1].to_time_ns or 0]
    return [time_ns / _NS_PER_DAY for time_ns in times_ns]


class _PowersOfTwo(Locator):
    """Ticks at multiples of a power of two, from an origin on."""

    def __init__(self, origin: int, *, most: int = _MOST_TICKS) -> None:
        self._origin = origin
        self._most = most

    def __call__(self) -> Sequence[float]:
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the places of the ticks between two positions."""
        step = self.step(vmin, vmax)
        first = math.ceil((vmin - self._origin) / step)
        last = math.floor((vmax - self._origin) / step)
        return [self._origin + number * step for number in range(first, last + 1)]

    def step(self, vmin: float, vmax: float) -> int:
        """Return the distance of the ticks."""
        step = 32
        while (vmax - vmin) / step > self._most:
            step *= 2
        return step


def _scale_times(ax: Axes, statistics: RecordingStatistics) -> None:
    from datetime import UTC

    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    ax.set_xlabel("time (UTC)")
    if not statistics.bins:
        ax.xaxis.set_major_locator(NullLocator())
        return
    edges = _edges(statistics)
    ax.xaxis_date(UTC)
    ax.set_xlim(edges[0], max(edges[-1], edges[0] + _SHORTEST_SPAN))
    locator = AutoDateLocator(UTC, minticks=4, maxticks=_MOST_TICKS)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator, UTC)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_formatter(formatter)


def _scale_positions(ax: Axes, statistics: RecordingStatistics) -> None:
    begin, end = statistics.from_position, statistics.to_position
    length = max(end - begin, 1)
    # Far from the start of its stream labels are relative to the recording's start: else all of
    # them would begin with the same digits.
    origin = begin if begin > 64 * length else 0
    ax.set_xlim(begin, begin + length)
    ax.xaxis.set_major_locator(_PowersOfTwo(origin))
    last = begin + length - origin
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda position, _: _position_text(position - origin, last))
    )
    ax.set_xlabel(f"bytes after position {origin:,}" if origin else "position in the stream")


def _position_text(position: float, last: float) -> str:
    """Return a position in the unit that fits `last`, with all its digits."""
    unit, name = 1, "B"
    for bits, larger in ((10, "KiB"), (20, "MiB"), (30, "GiB"), (40, "TiB")):
        if last >= 2 << bits:
            unit, name = 1 << bits, larger
    return f"{position / unit:.7g} {name}"


def _scale_lengths(ax: Axes, statistics: RecordingStatistics) -> None:
    """Scale the vertical axis for lengths: logarithmic, with a place for 0."""
    low, high = statistics.min_bytes, statistics.max_bytes
    bottom = 1 << (low.bit_length() - 1) if low else 0
    top = 1 << high.bit_length()
    if top <= bottom << 3:  # not to blow up what differs little
        bottom, top = bottom >> 1, top << 1
    if bottom:
        ax.set_yscale("log", base=2)
    else:
        ax.set_yscale("symlog", base=2, linthresh=1)
    octaves = top.bit_length() - max(bottom, 1).bit_length()
    stride = math.ceil((octaves + 1) / _MOST_TICKS)
    ticks = [1 << bit for bit in range(max(bottom, 1).bit_length() - 1, top.bit_length(), stride)]
    ax.set_ylim(bottom, top)
    ax.yaxis.set_major_locator(FixedLocator([*([0] if not bottom else []), *ticks]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
