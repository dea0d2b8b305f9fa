"""Append to, read, delete and purge journals of entities.

A topic is a set of recordings of a running archive. A journal is the events of one entity of the
topic, by sequence number.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import Final

# The modules of `_entity` in the order of the help; each is a command.
MODULES: Final = (
    "append",
    "read",
    "pointer",
    "delete",
    "purge",
    "replicate",
    "purge_expired",
    "retention",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their arguments."""
    configure_for(parser, ())


def configure_for(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the command named in these arguments, or all commands."""
    # Given explicitly because argparse otherwise formats the whole usage to find it.
    commands = parser.add_subparsers(
        dest="action", metavar="COMMAND", required=True, prog=parser.prog
    )
    named = [name for name in MODULES if name.replace("_", "-") in arguments[:1]]
    for name in named or MODULES:
        importlib.import_module(f"aerotape.tools._entity.{name}").add_commands(commands)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    code: int = args.run_action(args)
    return code
