"""Inspect, verify, repair or change an archive directory, as Aeron's ArchiveTool does.

Commands that write have --dry-run, and are refused while an archive is using the directory. Other
commands write nothing, and the archive may be running. The exit code is 3 if data is lost or
suspect.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import Final

from aerotape.catalog.location import parse_location, require_local, why_no_directory
from aerotape.errors import StorageError
from aerotape.url_path import UrlPath

# The modules of `_tool` in the order of the help.
MODULES: Final = (
    "read_only.describe",
    "read_only.count_entries",
    "read_only.pid",
    "read_only.errors",
    "read_only.dump",
    "writing.verify",
    "read_only.stats",
    "writing.time_index",
    "writing.mark",
    "writing.capacity",
    "writing.compact",
    "writing.delete_orphaned_segments",
    "writing.checksum",
    "writing.repair",
    "writing.export",
    "writing.import_",
    "read_only.diff",
    "writing.migrate",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their arguments."""
    configure_for(parser, ())


def configure_for(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the command named in these arguments, or all commands."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=parse_location,
        help="the archive directory; describe, count-entries, dump, verify, stats and time-index "
        "accept a URL too",
    )
    # Given explicitly because argparse otherwise formats the whole usage to find it.
    commands = parser.add_subparsers(
        dest="action", metavar="COMMAND", required=True, prog=f"{parser.prog} DIR"
    )
    for name in _modules_for(arguments):
        module = importlib.import_module(f"aerotape.tools._tool.{name}")
        module.add_commands(commands)


def _modules_for(arguments: Sequence[str]) -> Sequence[str]:
    """Return the modules of the commands among these arguments, all for the help."""
    if {"-h", "--help"}.intersection(arguments):
        return MODULES
    named = {
        name
        for command in (argument.replace("-", "_") for argument in arguments)
        for name in (command, f"{command}_", command.partition("_")[0])
    }
    return [module for module in MODULES if module.partition(".")[2] in named] or MODULES


def run(args: argparse.Namespace) -> int:
    """Run the command on the directory."""
    if isinstance(args.directory, UrlPath):
        if not args.reads_urls:
            require_local(args.directory, args.action)
    elif (fault := why_no_directory(args.directory)) is not None:
        raise StorageError(fault, args.directory)
    code: int = args.run_action(args)
    return code
