"""Confirmation of changes that cannot be undone."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import printable

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient


def add_confirmation_option(parser: argparse.ArgumentParser) -> None:
    """Add --yes."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def confirm(args: argparse.Namespace, deed: str, *, any_input: bool = False) -> None:
    """Ask on the terminal for confirmation, unless --yes was given.

    Args:
        deed: the change: "delete recording 3 with all its segment files".
        any_input: read the answer from standard input even if it is not a terminal.

    Raises:
        ConfigurationError: standard input is not a terminal, or has no answer.
        AerotapeError: the answer is not yes.
    """
    if args.yes:
        return
    if not any_input and not sys.stdin.isatty():
        raise ConfigurationError(f"confirmation required to {deed}: give --yes", "--yes")
    sys.stderr.write(f"This will {printable(deed)}. Continue? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigurationError(
            f"confirmation required to {deed}, but standard input has ended: give --yes", "--yes"
        )
    if answer.strip().lower() not in ("y", "yes"):
        raise AerotapeError("not confirmed: nothing was done")


def end_of_stopped(client: ArchiveClient, recording_id: int) -> int:
    """Return the stop position of a stopped recording, bytes.

    Raises:
        ArchiveError: there is no such recording.
        AerotapeError: it is live.
    """
    end = client.stop_position(recording_id)
    if end < 0:
        raise AerotapeError(f"recording {recording_id} is live: stop it first")
    return end
