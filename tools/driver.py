"""Run just the C media driver, for archives and clients on this machine.

Settings come from the properties files in the order given, then from -D, then from the options;
what comes later wins. Property names are those of the C media driver (aeron.*).
"""

from __future__ import annotations

import argparse
import json

from aerotape.tools.archive import EXIT_OK, StopSignals, add_property_arguments, properties


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--aeron-dir", metavar="A", help="media driver directory (default: aeron.dir, $AERON_DIR)"
    )
    add_property_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the driver until SIGTERM or SIGINT."""
    from aerotape.aeron import default_aeron_dir, launch_driver

    settings = properties(args)
    aeron_dir = args.aeron_dir or settings.get("aeron.dir") or default_aeron_dir()
    stop = StopSignals()
    driver = launch_driver({**settings, "aeron.dir": aeron_dir})
    try:
        if args.json:
            facts = {"event": "ready", "aeron_dir": driver.aeron_dir}
            print(json.dumps(facts), flush=True)
        else:
            print(f"driver ready: aeron-dir={driver.aeron_dir}", flush=True)
        stop.event.wait()
    finally:
        driver.close()
    return EXIT_OK
