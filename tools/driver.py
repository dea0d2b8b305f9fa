"""Run only the C media driver, for archives and clients on this machine.

Settings are read from the properties files in the order given, -D and the options; later ones
override earlier ones. Property names are those of the C media driver (aeron.*).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Final

from aerotape.tools._cli.daemon.settings import add_property_arguments, gather
from aerotape.tools._cli.daemon.stop_signals import StopSignals
from aerotape.tools._cli.output import emit_line, note


@dataclass(frozen=True, slots=True)
class ReadyDriver:
    """A media driver that is ready.

    Attributes:
        event: ready.
        aeron_dir: the media driver's directory.
    """

    event: str
    aeron_dir: str


JSON_ROWS: Final = {"": ReadyDriver}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--aeron-dir",
        metavar="DIR",
        help="the media driver's directory (default: aeron.dir, $AERON_DIR, or Aeron's)",
    )
    add_property_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Run the driver until SIGTERM, SIGINT or SIGHUP."""
    from aerotape.archive.config.property_names import ARCHIVE_PREFIX, OWN_PREFIX
    from aerotape.media_driver import default_aeron_dir, launch_driver

    given = gather(args, {"aeron.dir": ("--aeron-dir", args.aeron_dir)}).values
    # A properties file may be shared with an archive.
    not_ours = (ARCHIVE_PREFIX, OWN_PREFIX)
    settings = {name: given[name] for name in given if not name.startswith(not_ours)}
    for name in settings:
        if not name.startswith("aeron."):
            note(f"warning: {name} is not an Aeron property, ignored")
    aeron_dir = settings.get("aeron.dir") or default_aeron_dir()
    stop = StopSignals()
    driver = launch_driver({**settings, "aeron.dir": aeron_dir})
    try:
        facts = ReadyDriver(event="ready", aeron_dir=driver.aeron_dir)
        emit_line(facts, f"driver ready: aeron-dir={driver.aeron_dir}", args)
        sys.stdout.flush()
        stop.wait()
    finally:
        driver.close()
