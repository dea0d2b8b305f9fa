"""List, show, verify, import and export raft journals, as Zeebe writes them.

Commands that read a journal never change a file of it. The exit code is 3 if damage was found.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from aerotape.tools._cli.group import add_group
from aerotape.tools._cli.group import run as run

FOLDER: Final = "_journal"
# The modules of the commands, in the order of the help.
MODULES: Final = {
    "list": "list",
    "show": "show",
    "verify": "verify",
    "import": "import_",
    "export": "export",
}


def configure_for(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the command named in these arguments, or all commands."""
    add_group(parser, arguments, FOLDER, MODULES)
