"""The options that every command has."""

from __future__ import annotations

import argparse
from typing import Any


def add_common_options(parser: argparse.ArgumentParser, *, default: Any = False) -> None:
    """Add --json and -v.

    Args:
        default: `argparse.SUPPRESS` for the parser of an action, which must not overwrite
            options given before the action.
    """
    parser.add_argument(
        "--json", action="store_true", default=default, help="print results as JSON"
    )
    add_verbose(parser, default=default)


def add_verbose(parser: argparse.ArgumentParser, *, default: Any = False) -> None:
    """Add -v; `default` as for `add_common_options`."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=default,
        help="show the traceback of a failure",
    )
