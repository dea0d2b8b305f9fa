"""The options of commands that show statistics: the range, the bins and the axis."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.selecting import POSITIONS, TIMES, add_selection_options, selected
from aerotape.tools._cli.times import note_time_index

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording
    from aerotape.replay.statistics.model import RecordingStatistics

_RANGE: Final = (*POSITIONS, *TIMES)


def add_statistics_options(parser: argparse.ArgumentParser) -> None:
    """Add --over, --bins and the range."""
    parser.add_argument(
        "--over",
        choices=["position", "time"],
        help="the horizontal axis (default: time if the recording has a time index)",
    )
    parser.add_argument("--bins", type=count, metavar="N", help="the number of bins")
    add_selection_options(parser, _RANGE)


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

    selection = selected(args, _RANGE)
    note_time_index(recording, selection.times)
    part = recording_range(recording, selection)
    return picture_statistics(recording, part, args.over, bins, most_bins or PICTURE_BINS, progress)
