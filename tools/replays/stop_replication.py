"""Stop a replication."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.arguments import int64
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import emit


@dataclass(frozen=True, slots=True)
class StoppedReplication:
    """A replication that was stopped.

    Attributes:
        stopped: replication.
        replication_id: replication id.
    """

    stopped: str
    replication_id: int


JSON_ROWS: Final = {"": StoppedReplication}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "replication_id",
        metavar="REPLICATION_ID",
        type=int64,
        help="the id that `replicate` printed",
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> None:
    """Send the request; an unknown replication is a failure."""
    with connect(args) as client:
        client.stop_replication(args.replication_id)
    emit(StoppedReplication("replication", args.replication_id), args)
