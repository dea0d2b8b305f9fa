"""Inspect, verify, repair or change an archive directory, as Aeron's ArchiveTool does.

Commands that write have --dry-run, and are refused while an archive is using the directory; then
verify marks nothing, and export and accept-damage work. Other commands write nothing, and the
archive may be running. The exit code is 3 if data is lost or suspect.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from aerotape.catalog.location import parse_location, require_local, why_no_directory
from aerotape.errors import StorageError
from aerotape.tools._cli import group
from aerotape.url_path import UrlPath

FOLDER: Final = "_archive_tool"
# The modules of the commands, in the order of the help.
MODULES: Final = {
    "describe": "read_only.describe",
    "describe-all": "read_only.describe",
    "count-entries": "read_only.figures",
    "pid": "read_only.figures",
    "errors": "read_only.figures",
    "dump": "read_only.dump",
    "verify": "writing.verify",
    "stats": "read_only.stats",
    "time-index": "writing.time_index",
    "mark-valid": "writing.mark",
    "mark-invalid": "writing.mark",
    "capacity": "writing.capacity",
    "compact": "writing.compact",
    "delete-orphaned-segments": "writing.delete_orphaned_segments",
    "checksum": "writing.checksum",
    "repair": "writing.repair",
    "accept-damage": "writing.accept_damage",
    "export": "writing.transfer",
    "import": "writing.transfer",
    "diff": "read_only.diff",
    "migrate": "writing.migrate",
}


def configure_for(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the command named in these arguments, or all commands."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=parse_location,
        help="the archive directory; describe, count-entries, dump, verify, stats and time-index "
        "accept a URL too",
    )
    group.add_group(parser, arguments, FOLDER, MODULES, before=" DIR")


def run(args: argparse.Namespace) -> int | None:
    """Run the command on the directory."""
    if isinstance(args.directory, UrlPath):
        if not args.reads_urls:
            require_local(args.directory, args.action)
    elif (fault := why_no_directory(args.directory)) is not None:
        raise StorageError(fault, args.directory)
    return group.run(args)
