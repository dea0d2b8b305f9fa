"""The options of the connection in helps: one line, as every command of a client has them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TITLE: Final = "connection"
DESCRIPTION: Final = (
    "--aeron-dir, --control-channel, --user, --timeout, --wait and others: "
    "`aerotape help connection`"
)


@contextmanager
def without_connection_options(parser: argparse.ArgumentParser) -> Iterator[None]:
    """Leave the options of the connection out of a help that is formatted meanwhile."""
    hidden = [
        (action, action.help)
        for group in parser._action_groups
        if group.title == TITLE and group.description == DESCRIPTION
        for action in group._group_actions
    ]
    for action, _ in hidden:
        action.help = argparse.SUPPRESS
    try:
        yield
    finally:
        for action, text in hidden:
            action.help = text
