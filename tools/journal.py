"""Copy the journals of raft logs, as Zeebe writes them, into recordings and back.

Nothing that only reads a journal changes it. The exit code is 3 if damage was found.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import Final

from aerotape.tools._cli.common_options import add_common_options

# The modules of `_journal` by the names of their commands, in the order of the help.
MODULES: Final = {"import": "import_", "export": "export"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their arguments."""
    configure_for(parser, ())


def configure_for(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the command named in these arguments, or all commands."""
    commands = parser.add_subparsers(
        dest="action", metavar="COMMAND", required=True, prog=parser.prog
    )
    named = [name for name in MODULES if arguments and name == arguments[0]]
    for name in named or MODULES:
        module = importlib.import_module(f"aerotape.tools._journal.{MODULES[name]}")
        help_text = (module.__doc__ or "").partition(": ")[2]
        text = f"{help_text[:1].upper()}{help_text[1:]}"
        added = commands.add_parser(name, description=text, help=text.partition("\n")[0])
        module.configure(added)
        add_common_options(added, default=argparse.SUPPRESS)
        added.set_defaults(run_action=module.run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    code: int = args.run_action(args)
    return code
