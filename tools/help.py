"""Print the help of a command, or with `connection` the options of the connection to an archive."""

from __future__ import annotations

import argparse
from typing import Final

from aerotape.tools._cli.connection import add_connection_options

_CONNECTION: Final = """The options of commands that connect to a running archive.

An option that is not given is taken from -D, then from the environment variable of the property's
name (upper case, underscores for dots), as AERON_DIR or AEROTAPE_USER. Without any, the archive on
this machine's media driver is used. The properties are those of the Java client, and

    aerotape.user  aerotape.secret.file  aerotape.credentials.file"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("topic", metavar="COMMAND", nargs="?", help="a command, or `connection`")


def run(args: argparse.Namespace) -> int:
    """Print a help."""
    from aerotape.tools._cli.main import main

    if args.topic != "connection":
        return main([args.topic, "--help"] if args.topic else [])
    parser = argparse.ArgumentParser(
        prog="aerotape COMMAND",
        usage="aerotape COMMAND … [connection options]",
        description=_CONNECTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    add_connection_options(parser, "")
    print(parser.format_help(), end="")
    return 0
