"""Commands that have commands, of which only the module of the given one is loaded.

Each module has `add_commands(commands)`, which adds its commands by `add_command`, and `JSON_ROWS`
with the records that they print (see `json_schema`).
"""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from aerotape.tools._cli.common_options import add_common_options

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The result of `ArgumentParser.add_subparsers`."""


def add_group(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    folder: str,
    modules: Mapping[str, str],
    *,
    before: str = "",
) -> None:
    """Add the commands named in these arguments; all if there is none, or for the help.

    Args:
        arguments: of the command line, after the parser's own name.
        folder: the folder in `aerotape.tools` with the modules.
        modules: the module of each command, in the order of the help.
        before: the arguments before the command, for the usage.
    """
    # Given explicitly because argparse otherwise formats the whole usage to find it.
    commands = parser.add_subparsers(
        dest="action", metavar="COMMAND", required=True, prog=f"{parser.prog}{before}"
    )
    given = [] if {"-h", "--help"}.intersection(arguments) else modules.keys() & set(arguments)
    for name in dict.fromkeys(modules[command] for command in given or modules):
        importlib.import_module(f"aerotape.tools.{folder}.{name}").add_commands(commands)


def add_command(
    commands: Commands,
    name: str,
    run_it: Callable[[argparse.Namespace], int | None],
    *,
    writes: bool = False,
    reads_urls: bool = False,
) -> argparse.ArgumentParser:
    """Add a command with its common options.

    Args:
        run_it: runs the command; its docstring is the help.
        writes: add --dry-run.
        reads_urls: accept a directory in remote storage.
    """
    text = inspect.cleandoc(run_it.__doc__ or "")
    parser = commands.add_parser(
        name,
        description=text,
        help=text.partition("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if writes:
        parser.add_argument(
            "--dry-run", action="store_true", help="show what would be done, and do nothing"
        )
    add_common_options(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run_action=run_it, reads_urls=reads_urls)
    return parser


def run(args: argparse.Namespace) -> int | None:
    """Run the command that was given."""
    code: int | None = args.run_action(args)
    return code
