"""Look into an archive directory, check and change it, offline; commands as of Aeron's ArchiveTool.

Commands that write are refused while an archive is using the directory, and have --dry-run. All
others write nothing, and the archive may be running. The exit code is 3 when data was found to be
lost or suspect.
"""

from __future__ import annotations

import argparse

from aerotape.catalog.location import parse_location, require_local
from aerotape.errors import StorageError
from aerotape.tools._offline import (
    cataloguing,
    checksums,
    comparing,
    describing,
    dumping,
    migrating,
    orphans,
    repairing,
    statistics,
    timing,
    transferring,
    verifying,
)
from aerotape.url_path import UrlPath


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their arguments."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=parse_location,
        help="the archive directory; describe, count-entries, dump and verify take a URL too",
    )
    commands = parser.add_subparsers(dest="action", metavar="COMMAND", required=True)
    for module in (
        describing,
        dumping,
        verifying,
        statistics,
        timing,
        cataloguing,
        orphans,
        checksums,
        repairing,
        transferring,
        comparing,
        migrating,
    ):
        module.add_commands(commands)


def run(args: argparse.Namespace) -> int:
    """Run the command on the directory."""
    if isinstance(args.directory, UrlPath):
        if not args.reads_urls:
            require_local(args.directory, args.action)
    elif not args.directory.is_dir():
        reason = "not a directory" if args.directory.exists() else "no such directory"
        raise StorageError(f"{reason}: {args.directory}", args.directory)
    code: int = args.run_action(args)
    return code
