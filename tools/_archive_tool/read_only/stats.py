"""`stats`: message lengths, rates and gaps of recordings."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import bytes_text, count_text, printable
from aerotape.replay.statistics.model import RecordingStatistics
from aerotape.tools._archive_tool._common import add_recording_id
from aerotape.tools._cli import chart
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit, note
from aerotape.tools._cli.statistics import add_statistics_options, compute_statistics

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording
    from aerotape.replay.statistics.model import Bin

_JSON_BINS: Final = 100
_CHART_HEIGHT: Final = 8
_SPARKLINE_WIDTH: Final = 24
_LENGTH_ROWS: Final = 16
_LISTED_GAPS: Final = 10
_LABEL_WIDTH: Final = 8
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRow(RecordingStatistics):
    """The statistics of a recording.

    Attributes:
        length_bytes: bytes of the range.
        mean_bytes: mean length, bytes.
        p50_bytes: median length, bytes.
        p90_bytes: 90th percentile of lengths, bytes.
        p99_bytes: 99th percentile of lengths, bytes.
        p999_bytes: 99.9th percentile of lengths, bytes.
        messages_per_s: messages per second, null if the duration is not known.
        bytes_per_s: bytes per second with headers and padding, null if the duration is not known.
    """

    # field(): of those that the statistics have as properties, these would be the defaults.
    length_bytes: int = field()
    mean_bytes: float = field()
    p50_bytes: int
    p90_bytes: int
    p99_bytes: int
    p999_bytes: int
    messages_per_s: float | None = field()
    bytes_per_s: float | None = field()


JSON_ROWS: Final = {"stats": StatisticsRow}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "stats", _stats, reads_urls=True)
    add_recording_id(parser)
    add_statistics_options(parser)


def _stats(args: argparse.Namespace) -> int:
    """Show the message lengths, rate and gaps of a recording as charts, or of all as a table.

    A range without the frames it should have is reported as a gap, and the exit code is 3.
    """
    from aerotape.replay.offline.directory import open_directory

    directory = open_directory(args.directory)
    style, width = chart.terminal_style(), chart.terminal_width()
    if args.recording_id is None:
        return _stats_of_all(directory.recordings(), args, style)
    [statistics] = _count([directory.recording(args.recording_id)], args, width - _LABEL_WIDTH - 2)
    if args.json:
        emit(StatisticsRow(**statistics.to_dict()), args)
    else:
        for line in picture(statistics, width, style):
            print(line)
    return EXIT_DATA_SUSPECT if statistics.gap_count else 0


def _stats_of_all(recordings: list[Recording], args: argparse.Namespace, style: chart.Style) -> int:
    found = _count(recordings, args, _SPARKLINE_WIDTH, skip_unreadable=True)
    if args.json:
        emit((StatisticsRow(**statistics.to_dict()) for statistics in found), args)
    else:
        emit((_row(statistics, style) for statistics in found), args)
    is_whole = len(found) == len(recordings) and not any(s.gap_count for s in found)
    return 0 if is_whole else EXIT_DATA_SUSPECT


def _count(
    recordings: list[Recording],
    args: argparse.Namespace,
    columns: int,
    *,
    skip_unreadable: bool = False,
) -> list[RecordingStatistics]:
    """Return the statistics of recordings, and show progress.

    Args:
        columns: width of the charts, characters.
        skip_unreadable: report a recording that cannot be read and continue with the next.
    """
    bins = args.bins
    if bins is None and args.json:
        bins = _JSON_BINS  # the same for every recording
    found: list[RecordingStatistics] = []
    counted = 0

    def show(done: int) -> None:
        progress.update((counted + done) // _MIB)

    total = max(sum(map(_length, recordings)) // _MIB, 1)
    with Progress(total, "counting", unit="MiB") as progress:
        for recording in recordings:
            try:
                statistics = compute_statistics(recording, args, show, bins=bins, most_bins=columns)
            except AerotapeError as error:
                if not skip_unreadable or isinstance(error, ConfigurationError):
                    raise
                note(f"skipped: {error}")
            else:
                found.append(statistics)
                counted += statistics.length_bytes
    return found


def _length(recording: Recording) -> int:
    try:
        return max(recording.recorded_position - recording.start_position, 0)
    except AerotapeError:  # reported when its statistics are computed
        return 0


def _row(statistics: RecordingStatistics, style: chart.Style) -> dict[str, Any]:
    rate = statistics.messages_per_s
    rates = [_rate(part) for part in statistics.bins]
    [sparkline] = chart.columns(rates, 1, max(rates, default=0), style)
    return {
        "recording_id": statistics.recording_id,
        "stream_id": statistics.stream_id,
        "messages": statistics.messages,
        "payload_bytes": statistics.payload_bytes,
        "median_bytes": statistics.quantile_bytes(0.5),
        "p99_bytes": statistics.quantile_bytes(0.99),
        "max_bytes": statistics.max_bytes,
        "messages_per_s": None if rate is None else round(rate, 1),
        "gap_bytes": statistics.gap_bytes,
        "rate": sparkline,
    }


def _rate(part: Bin) -> float:
    """Messages per second, or over positions per MiB of the recording."""
    if part.duration_s is not None:
        return part.messages_per_s or 0.0
    return part.messages * _MIB / part.length_bytes


def picture(statistics: RecordingStatistics, width: int, style: chart.Style) -> Iterator[str]:
    """Yield the charts of a recording, in lines of at most `width` characters (40 or more)."""
    title = f"recording {statistics.recording_id}, stream {statistics.stream_id}"
    channel = printable(statistics.channel).encode("ascii", "replace").decode()
    yield chart.shortened(f"{title}, {channel}", width, style)
    for name, text in _facts(statistics):
        yield from textwrap.wrap(
            f"{name + ':':<10} {text}", width, subsequent_indent=" " * 11, break_on_hyphens=False
        )
    for gap in statistics.gaps[:_LISTED_GAPS]:
        where = f"{gap.from_position} to {gap.to_position} ({bytes_text(gap.length_bytes)})"
        yield from textwrap.wrap(
            printable(f"{gap.kind}: positions {where}: {gap.detail}"),
            width,
            initial_indent="  ",
            subsequent_indent="    ",
        )
    if statistics.gap_count > _LISTED_GAPS:
        yield f"  and {statistics.gap_count - _LISTED_GAPS} more"
    if not statistics.messages:
        return
    yield ""
    yield "length of messages in bytes"
    yield from _lengths(statistics, width, style)
    yield ""
    yield "messages/s" if statistics.over == "time" else "messages per MiB of the recording"
    yield from _over(statistics, width, style)


def _facts(statistics: RecordingStatistics) -> Iterator[tuple[str, str]]:
    s = statistics
    yield "positions", f"{s.from_position} to {s.to_position} ({bytes_text(s.length_bytes)})"
    messages = f"{s.messages:,}, {bytes_text(s.payload_bytes)} of payload"
    if s.fragmented_messages:
        messages += f", {s.fragmented_messages:,} of them in several frames"
    if s.incomplete_fragments:
        messages += f"; {s.incomplete_fragments:,} fragments of incomplete messages"
    yield "messages", messages
    if s.messages_per_s is not None and s.bytes_per_s is not None and s.duration_s is not None:
        rate = f"{count_text(s.messages_per_s)} messages/s, {bytes_text(s.bytes_per_s)}/s"
        yield "mean rate", f"{rate} over {s.duration_s:,.1f} s"
    if s.messages:
        shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
        quantiles = (f"{name} {s.quantile_bytes(share):,}" for name, share in shares.items())
        yield "length", ", ".join([f"min {s.min_bytes:,}", *quantiles, f"max {s.max_bytes:,}"])
    padding = f"{s.padding_frames:,} frames, {bytes_text(s.padding_bytes)}"
    if s.filler_frames:
        padding += (
            f"; {s.filler_frames:,} of them ({bytes_text(s.filler_bytes)}) within a term: "
            "lost, aborted or never completed by the publisher"
        )
    yield "padding", padding
    gaps = f"{s.gap_count:,}, {bytes_text(s.gap_bytes)}" if s.gap_count else "none"
    yield "gaps", gaps


def _lengths(statistics: RecordingStatistics, width: int, style: chart.Style) -> Iterator[str]:
    for divisions in (8, 4, 2, 1):
        buckets = statistics.histogram(divisions)
        if len(buckets) <= _LENGTH_ROWS:
            break
    last = [bucket.to_bytes - 1 for bucket in buckets]
    left, right = len(f"{buckets[-1].from_bytes:,}"), len(f"{last[-1]:,}")
    counts = [count_text(bucket.messages) for bucket in buckets]
    room = max(map(len, counts))
    # Two gaps of two, one of one, and a percentage of six characters.
    bar_width = width - left - right - 3 - 2 - 1 - room - 2 - 6
    most = max(bucket.messages for bucket in buckets)
    for bucket, end, count in zip(buckets, last, counts, strict=True):
        dash, until = ("-", f"{end:,}") if end > bucket.from_bytes else (" ", "")
        bar = chart.horizontal_bar(bucket.messages / most, bar_width, style)
        share = f"{100 * bucket.messages / statistics.messages:.1f}%"
        yield (
            f"{bucket.from_bytes:>{left},} {dash} {until:>{right}}  {bar:<{bar_width}} "
            f"{count:>{room}}  {share:>6}"
        )


def _over(statistics: RecordingStatistics, width: int, style: chart.Style) -> Iterator[str]:
    room = width - _LABEL_WIDTH - 2
    bins = statistics.bins
    # Each bin has at least one column, if there is room, and all columns are used.
    shown = [bins[column * len(bins) // room] for column in range(room)]
    values = [_rate(part) for part in shown]
    top = max(values)
    lines = chart.columns(values, _CHART_HEIGHT, top, style)
    vertical, corner, horizontal = tuple(style.axis)
    for number, line in enumerate(lines):
        label = count_text(top) if number == 0 else ""
        yield f"{label:>{_LABEL_WIDTH}} {vertical}{line}".rstrip()
    yield f"{0:>{_LABEL_WIDTH}} {corner}{horizontal * len(values)}"
    if statistics.gap_count:
        marks = (style.mark if part.gap_bytes else " " for part in shown)
        yield f"{'gaps':>{_LABEL_WIDTH}}  {''.join(marks)}".rstrip()
    yield " " * (_LABEL_WIDTH + 2) + chart.spread(_places(statistics), len(values))


def _places(statistics: RecordingStatistics) -> list[str]:
    """The labels below the beginning, the middle and the end of a chart."""
    bins = statistics.bins
    begin_ns, end_ns = bins[0].from_time_ns, bins[-1].to_time_ns
    if begin_ns is None or end_ns is None:
        begin, end = statistics.from_position, statistics.to_position
        return [bytes_text(place) for place in (begin, (begin + end) // 2, end)]
    moments = [
        datetime.fromtimestamp(time_ns / 1e9, UTC)
        for time_ns in (begin_ns, (begin_ns + end_ns) // 2, end_ns)
    ]
    day = "" if moments[0].date() == moments[2].date() else "%m-%d "
    duration = moments[2] - moments[0]
    second = "%H:%M" if duration > timedelta(hours=1) else "%H:%M:%S"
    first, middle, last = (f"{moment:{day}{second}}" for moment in moments)
    if duration < timedelta(seconds=10):
        first, middle, last = (
            f"{text}.{moment.microsecond // 1000:03}"
            for text, moment in zip((first, middle, last), moments, strict=True)
        )
    return [first, middle, f"{last}Z"]
