"""Request the id of an archive, and measure the round-trip time."""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from typing import Final

from aerotape.errors import ConfigurationError
from aerotape.tools._cli.arguments import count
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class Ping:
    """The archive, and the round-trip times of requests.

    Attributes:
        archive_id: archive id.
        protocol_version: protocol version of the archive.
        control_session_id: control session id.
        round_trips: number of requests.
        min_us: fastest, microseconds.
        median_us: median, microseconds.
        max_us: slowest, microseconds.
    """

    archive_id: int
    protocol_version: str
    control_session_id: int
    round_trips: int
    min_us: float
    median_us: float
    max_us: float


JSON_ROWS: Final = {"": Ping}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--count", metavar="N", type=count, default=10, help="the number of requests (default: 10)"
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Send the requests, and print the archive's id and the times."""
    if args.count == 0:
        raise ConfigurationError("--count must be at least 1, got 0", "--count")
    with connect(args) as client:
        took_ns = [client.ping() for _ in range(args.count)]
        emit(
            Ping(
                archive_id=client.archive_id,
                protocol_version=client.archive_version,
                control_session_id=client.control_session_id,
                round_trips=len(took_ns),
                min_us=min(took_ns) / 1000,
                median_us=statistics.median(took_ns) / 1000,
                max_us=max(took_ns) / 1000,
            ),
            args,
        )
