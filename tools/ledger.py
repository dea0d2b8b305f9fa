"""Create, write, read and delete ledgers of a running archive.

A ledger is a recording of numbered, checksummed entries with an id of 128 bits. Name it by its
number, with --ledger-scope-id for another scope than 0, or by its qualified name of 32 digits, as
in `aerotape ledger add 7 'one entry' 'another one'`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from aerotape.tools._cli.group import add_group
from aerotape.tools._cli.group import run as run

FOLDER: Final = "_ledger"
# The modules of the commands, in the order of the help.
MODULES: Final = {
    **dict.fromkeys(("create", "add", "sync", "close", "open", "replace-mirror"), "writing"),
    **dict.fromkeys(("read", "list", "scopes", "status"), "reading"),
    "delete": "removing",
    **dict.fromkeys(("import-archive", "replicate-archive"), "import_archive"),
}


def configure_for(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the command named in these arguments, or all commands."""
    add_group(parser, arguments, FOLDER, MODULES)
