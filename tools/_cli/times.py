"""The options that choose by wall-clock time."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from aerotape.times import TimeRange, parse_time
from aerotape.tools._cli.arguments import option
from aerotape.tools._cli.output import note

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording


def add_time_options(parser: argparse.ArgumentParser) -> None:
    """Add --from-time and --to-time."""
    parser.add_argument(
        "--from-time",
        type=option(parse_time, "--from-time"),
        metavar="TIME",
        help="leave out what was certainly recorded before: ISO 8601 with a zone, or a number as "
        "1772357400000ms",
    )
    parser.add_argument(
        "--to-time",
        type=option(parse_time, "--to-time"),
        metavar="TIME",
        help="leave out what was certainly recorded then or later",
    )


def time_range(args: argparse.Namespace) -> TimeRange:
    """Return what the options of `add_time_options` say (ConfigurationError)."""
    return TimeRange(args.from_time, args.to_time)


def positions(recording: Recording, times: TimeRange) -> tuple[int, int]:
    """Return the positions of what may have been recorded in a range of times.

    Where too little is known of it for a choice to be worth much, that is told.
    """
    tell_what_is_known(recording, times)
    return recording.time_index.positions(times)


def tell_what_is_known(recording: Recording, times: TimeRange) -> None:
    """Tell where too little is known of times for a choice by them to be worth much."""
    index = recording.time_index
    if times and index.problem:
        note(f"warning: {index.problem}")
    if times and index.source != "recorded":
        what = "no time index" if index.source == "none" else "estimates for a time index"
        note(
            f"recording {recording.recording_id} has {what}: more may be chosen than was recorded "
            "in that time"
        )
