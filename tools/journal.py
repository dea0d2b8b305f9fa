"""Read, verify, import and export raft journals, as Zeebe writes them.

Commands that read a journal never change a file of it. The exit code is 3 if damage was found.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import Final

from aerotape.tools._cli.common_options import add_common_options

# The modules of `_journal` in the order of the help. Each is a command: its docstring is the help,
# and it has `configure` and `run` as the modules of `tools` have.
MODULES: Final = (
    "list",
    "verify",
    "import_",
    "export",
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
    named = [name for name in MODULES if name.rstrip("_") in arguments[:1]]
    for name in named or MODULES:
        module = importlib.import_module(f"aerotape.tools._journal.{name}")
        command = commands.add_parser(
            name.rstrip("_"),
            description=module.__doc__,
            help=(module.__doc__ or "").partition("\n")[0],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(command)
        add_common_options(command, default=argparse.SUPPRESS)
        command.set_defaults(run_action=module.run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    code: int = args.run_action(args)
    return code
