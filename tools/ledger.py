"""Recordings of other archives, and ledgers.

The scope of an archive's own recordings is its archive id; a store keeps those of other archives
under theirs.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Final

# The modules of `_ledger` in the order of the help.
MODULES: Final = ("import_archive",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their arguments."""
    commands = parser.add_subparsers(
        dest="action", metavar="COMMAND", required=True, prog=parser.prog
    )
    for name in MODULES:
        importlib.import_module(f"aerotape.tools._ledger.{name}").add_commands(commands)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    code: int = args.run_action(args)
    return code
