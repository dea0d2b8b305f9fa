"""The options of commands that show statistics: the range, the bins and the axis."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from aerotape.tools._cli.arguments import count, identity
from aerotape.tools._cli.times import add_time_options, note_time_index, time_range

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording
    from aerotape.replay.statistics.model import RecordingStatistics


def add_statistics_options(parser: argparse.ArgumentParser) -> None:
    """Add --over, --bins and the range."""
    parser.add_argument(
        "--over",
        choices=["position", "time"],
        help="the horizontal axis (default: time if the recording has a time index)",
    )
    parser.add_argument("--bins", type=count, metavar="N", help="the number of bins")
    parser.add_argument("--from-position", type=identity, metavar="P", help="the first position")
    parser.add_argument("--to-position", type=identity, metavar="P", help="the end position")
    add_time_options(parser)


def compute_statistics(
    recording: Recording,
    args: argparse.Namespace,
    progress: Callable[[int], object],
    *,
    bins: int | None,
    most_bins: int | None = None,
) -> RecordingStatistics:
    """Compute the statistics that the options select; note imprecise times on standard error.

    Args:
        progress: called repeatedly with the number of bytes processed.
        bins: as for `picture_statistics`.
        most_bins: as for `picture_statistics`.
    """
    from aerotape.replay.offline.reader import recording_range
    from aerotape.replay.statistics.compute import PICTURE_BINS, picture_statistics

    times = time_range(args)
    note_time_index(recording, times)
    part = recording_range(recording, args.from_position, args.to_position, times)
    return picture_statistics(recording, part, args.over, bins, most_bins or PICTURE_BINS, progress)
