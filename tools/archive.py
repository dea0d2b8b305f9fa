"""Run the archive: record and replay streams for any Aeron Archive client.

Settings come from the properties files in the order given, then from -D, then from the options;
what comes later wins. Property names are those of the Java archive and of the C media driver.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

EXIT_OK = 0
EXIT_FAILURE = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--dir", metavar="D", help="archive directory (default: aeron.archive.dir, aeron-archive)"
    )
    parser.add_argument(
        "--aeron-dir", metavar="A", help="media driver directory (default: aeron.dir, $AERON_DIR)"
    )
    parser.add_argument(
        "--driver",
        choices=("embedded", "external"),
        default="embedded",
        help="start a media driver in this process, or use the one that runs in the directory",
    )
    parser.add_argument(
        "--users", metavar="FILE", help="only let in who is in this file (see `aerotape users`)"
    )
    add_property_arguments(parser)


def add_property_arguments(parser: argparse.ArgumentParser) -> None:
    """Add -D and properties files, which `properties` puts together."""
    parser.add_argument(
        "-D",
        dest="defines",
        action="append",
        default=[],
        metavar="name=value",
        help="set a property; may be given many times",
    )
    parser.add_argument("files", nargs="*", metavar="FILE.properties", help="Java properties file")


def properties(args: argparse.Namespace) -> dict[str, str]:
    """Return what the files and -D set.

    Raises:
        ConfigurationError: a file cannot be read, or a -D is not name=value.
    """
    from aerotape.archive.properties import read_properties_file
    from aerotape.errors import ConfigurationError

    merged: dict[str, str] = {}
    for path in args.files:
        merged.update(read_properties_file(Path(path)))
    for define in args.defines:
        name, equals, value = define.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"-D{define}: must be -Dname=value", "-D")
        merged[name] = value
    return merged


class StopSignals:
    """SIGTERM and SIGINT set an event instead of ending the process."""

    def __init__(self) -> None:
        self.event = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.event.set()


def run(args: argparse.Namespace) -> int:
    """Run the archive until SIGTERM, SIGINT or the loss of the media driver."""
    logging.basicConfig(
        stream=sys.stderr, format="%(asctime)s aerotape archive: %(message)s", level=logging.INFO
    )
    from aerotape.archive.archive import Archive

    # Before the start, so that a signal during it ends in a clean stop too.
    stop = StopSignals()
    with Archive.launch(
        dir=args.dir,
        aeron_dir=args.aeron_dir,
        driver=args.driver,
        properties=properties(args),
        users_file=args.users,
    ) as archive:
        _say_ready(archive, as_json=args.json)
        while not stop.event.wait(0.5):
            if not archive.is_running:
                break
        failure = archive.failure
    if failure is not None:
        print(f"aerotape archive: ended: {failure}", file=sys.stderr)
        return EXIT_FAILURE
    return EXIT_OK


def _say_ready(archive: object, *, as_json: bool) -> None:
    from aerotape.archive.archive import Archive

    assert isinstance(archive, Archive)
    config = archive.config
    facts = {
        "archive_id": archive.archive_id,
        "archive_dir": str(archive.archive_dir),
        "aeron_dir": archive.aeron_dir,
        "control_channel": archive.control_channel,
        "control_stream_id": config.control_stream_id,
        "local_control_channel": archive.local_control_channel,
        "local_control_stream_id": config.local_control_stream_id,
    }
    if as_json:
        print(json.dumps({"event": "ready", **facts}), flush=True)
    else:
        print(
            f"archive ready: dir={archive.archive_dir} aeron-dir={archive.aeron_dir}"
            f" control={archive.control_channel or 'disabled'}"
            f" stream={config.control_stream_id}",
            flush=True,
        )
