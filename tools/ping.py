"""Ask an archive who it is, and measure how long it takes to answer."""

from __future__ import annotations

import argparse
import statistics

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--count", metavar="N", type=count, default=10, help="how often to ask (default: 10)"
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Ask so often, and print the archive's answer and the times."""
    if args.count == 0:
        raise ConfigurationError("--count 0: asking no times gives no answer", "--count")
    with connect(args) as client:
        took_ns = [client.ping() for _ in range(args.count)]
        emit(
            {
                "archive_id": client.archive_id,
                "protocol_version": client.archive_version,
                "control_session_id": client.control_session_id,
                "round_trips": len(took_ns),
                "min_us": min(took_ns) / 1000,
                "median_us": statistics.median(took_ns) / 1000,
                "max_us": max(took_ns) / 1000,
            },
            args,
        )
    return 0
