"""Arguments of the commands of `aerotape journal`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_journal(parser: argparse.ArgumentParser) -> None:
    """Add the directory and the name of a raft journal."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the journal's directory")
    parser.add_argument(
        "--name", metavar="NAME", help="the journal's name, if the directory holds several"
    )
