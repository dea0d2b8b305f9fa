"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import printable

if TYPE_CHECKING:
    from aerotape.archive.client import ArchiveClient


def add_confirmation_option(parser: argparse.ArgumentParser) -> None:
    """Add --yes."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def confirm(args: argparse.Namespace, deed: str, *, any_input: bool = False) -> None:
    """Ask on the terminal whether to go on, unless --yes was given.

    Args:
        deed: what will be done: "delete recording 3 with all its segment files".
        any_input: take the answer from standard input also when that is no terminal.

    Raises:
        ConfigurationError: there is no terminal to ask on.
        AerotapeError: the answer is not yes.
    """
    if args.yes:
        return
    if not any_input and not sys.stdin.isatty():
        raise ConfigurationError(f"this would {deed}: give --yes to do it", "--yes")
    sys.stderr.write(f"This will {printable(deed)}. Go on? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigurationError(f"no answer; this would {deed}: give --yes to do it", "--yes")
    if answer.strip().lower() not in ("y", "yes"):
        raise AerotapeError("not confirmed: nothing was done")


def end_of_stopped(client: ArchiveClient, recording_id: int) -> int:
    """Return the stop position of a recording that is to lose data, bytes: asked before `confirm`.

    Raises:
        ArchiveError: there is no such recording.
        AerotapeError: it is live.
    """
    end = client.stop_position(recording_id)
    if end < 0:
        raise AerotapeError(f"recording {recording_id} is live: stop it first")
    return end
