"""The options of commands that show statistics: the range, the bins and the axis."""

from __future__ import annotations

import argparse
from typing import Any

from aerotape.tools._cli.arguments import count, identity
from aerotape.tools._cli.times import add_time_options


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


def statistics_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Return these options as the arguments of `picture_statistics`."""
    names = ("over", "bins", "from_position", "to_position", "from_time", "to_time")
    return {name: getattr(args, name) for name in names}
