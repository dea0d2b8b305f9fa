"""Create, write, read and delete ledgers of a running archive.

A ledger is a recording of numbered, checksummed entries with an id of 128 bits. Name it by
--ledger-qualified-name, or by --ledger-id and, for another scope than 0, --ledger-scope-id.
"""

from __future__ import annotations

import argparse

from aerotape.tools._ledger import import_archive, reading, removing, writing


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, prog=parser.prog
    )
    for module in (writing, reading, removing, import_archive):
        module.add_actions(actions)


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    code: int = args.run_action(args)
    return code
