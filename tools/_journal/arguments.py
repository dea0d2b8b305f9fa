"""Arguments of the commands of `aerotape journal`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import printable
from aerotape.tools._cli.exit_codes import EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.output import note


def add_journal(parser: argparse.ArgumentParser) -> None:
    """Add the directory and the name of a raft journal."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=Path,
        help="the journal's directory, or a broker's data directory",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="the journal's name, if the directory holds several"
    )


def for_each_journal(args: argparse.Namespace, read: Callable[[Path], int]) -> int:
    """Read the journal in a directory, or those of all partitions in a broker's data directory.

    If there are several, each is read, also after one that cannot be.

    Args:
        args: with the directory and the name.
        read: reads the journal in a directory, and returns an exit code.

    Returns:
        The highest exit code.
    """
    from aerotape.codecs.raft_journal.broker import journal_directories

    directories = journal_directories(args.directory, args.name)
    if len(directories) == 1:
        return read(directories[0])
    code = EXIT_OK
    for directory in directories:
        if not args.json:
            print(f"{printable(str(directory))}:")
        try:
            code = max(code, read(directory))
        except (AerotapeError, FileNotFoundError) as error:  # a broker deletes segments
            note(f"error: {error}")
            code = max(code, EXIT_FAILURE)
    return code


def one_journal(args: argparse.Namespace) -> Path:
    """Return the directory of the journal (ConfigurationError: there are several partitions)."""
    from aerotape.codecs.raft_journal.broker import journal_directories

    directories = journal_directories(args.directory, args.name)
    if len(directories) > 1:
        partitions = ", ".join(path.name for path in directories)
        raise ConfigurationError(
            f"{args.directory} has the partitions {partitions}: give the directory of one, for "
            f"example {directories[0]}",
            "directory",
        )
    return directories[0]
