"""Append to, read, delete and purge journals of entities, and save snapshots.

A topic is a set of recordings of a running archive. A journal is the events of one entity of the
topic, by sequence number.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from aerotape.tools._cli.group import add_group
from aerotape.tools._cli.group import run as run

FOLDER: Final = "_entity"
# The modules of the commands, in the order of the help.
MODULES: Final = {
    "append": "append",
    "read": "read",
    "pointer": "journal",
    "save-snapshot": "append",
    "snapshot": "read",
    "delete": "journal",
    "purge": "journal",
    "follow": "follow",
    "list": "list",
    "replicate": "replicate",
    "purge-expired": "purge_expired",
    "retention": "retention",
    "copy-store": "copy_store",
}


def configure_for(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the command named in these arguments, or all commands."""
    add_group(parser, arguments, FOLDER, MODULES)
