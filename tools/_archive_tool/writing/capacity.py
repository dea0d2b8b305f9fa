"""`capacity`: the length of the catalog file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from aerotape.errors import ConfigurationError
from aerotape.tools._archive_tool._common import changing
from aerotape.tools._cli.arguments import int64
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import ABSENT, Absent, emit


@dataclass(frozen=True, slots=True)
class Capacity:
    """The length of the catalog file.

    Attributes:
        capacity_bytes: length of the catalog file, bytes.
        dry_run: whether nothing was changed; not without BYTES.
    """

    capacity_bytes: int
    dry_run: bool | Absent = ABSENT


JSON_ROWS: Final = {"capacity": Capacity}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "capacity", _capacity, writes=True)
    parser.add_argument(
        "capacity_bytes", metavar="BYTES", type=int64, nargs="?", help="the new length"
    )


def _capacity(args: argparse.Namespace) -> None:
    """Print the length of the catalog file in bytes, or grow the file to a length.

    The file also grows automatically as recordings are added. It does not shrink.
    """
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.layout import MAX_CAPACITY_BYTES, MIN_CAPACITY_BYTES

    wanted = args.capacity_bytes
    if wanted is None:
        with Catalog.open(args.directory, read_only=True) as catalog:
            capacity_bytes = catalog.capacity_bytes
    elif MIN_CAPACITY_BYTES <= wanted <= MAX_CAPACITY_BYTES:
        with changing(args, capacity_bytes=wanted) as catalog:
            if not args.dry_run:
                catalog.reserve()
            capacity_bytes = max(catalog.capacity_bytes, wanted)
    else:
        raise ConfigurationError(
            f"{wanted} is not a valid catalog length: expected {MIN_CAPACITY_BYTES} to "
            f"{MAX_CAPACITY_BYTES} bytes",
            "BYTES",
        )
    row = Capacity(capacity_bytes, ABSENT if wanted is None else args.dry_run)
    emit(row, args) if args.json else print(capacity_bytes)
