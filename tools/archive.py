"""Run the archive: record and replay streams for any Aeron Archive client.

Settings are read from the environment (AERON_ARCHIVE_DIR for aeron.archive.dir), the properties
files in the order given, -D and the options; later ones override earlier ones. Property names are
those of the Java archive and of the C media driver. --print-config shows the effective values.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import AerotapeError
from aerotape.tools._cli.daemon.logs import log_to_standard_error
from aerotape.tools._cli.daemon.service_manager import ServiceManager
from aerotape.tools._cli.daemon.settings import add_property_arguments, gather
from aerotape.tools._cli.daemon.stop_signals import StoppedError, StopSignals
from aerotape.tools._cli.exit_codes import EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.output import emit, emit_line, note
from aerotape.tools._web.address import check_web_service, web_address

if TYPE_CHECKING:
    from aerotape.archive.archive import Archive
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.config.settings import Settings
    from aerotape.tools._web.child import WebChild

_CHECK_INTERVAL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class ReadyArchive:
    """An archive that is ready.

    Attributes:
        event: ready.
        archive_id: archive id.
        archive_dir: archive directory.
        aeron_dir: the media driver's directory.
        control_channel: control channel of remote clients, empty if it is disabled.
        control_stream_id: control stream id.
        local_control_channel: local control channel.
        local_control_stream_id: local control stream id.
    """

    event: str
    archive_id: int
    archive_dir: Path
    aeron_dir: str
    control_channel: str
    control_stream_id: int
    local_control_channel: str
    local_control_stream_id: int


JSON_ROWS: Final = {
    "": ReadyArchive,
    "--http": "aerotape.tools._web.server:ReadyService",
    "--print-config": "aerotape.archive.config.settings:Setting",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--dir",
        metavar="DIR",
        help="the archive directory (default: aeron.archive.dir, or aeron-archive)",
    )
    parser.add_argument(
        "--aeron-dir",
        metavar="DIR",
        help="the media driver's directory (default: aeron.dir, $AERON_DIR, or Aeron's)",
    )
    parser.add_argument(
        "--driver",
        choices=("embedded", "external"),
        default="embedded",
        help="start a media driver in this process (the default), or use the one running in "
        "--aeron-dir",
    )
    parser.add_argument(
        "--users",
        metavar="FILE",
        help="accept only clients of the users in this file (see `aerotape users`)",
    )
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=web_address,
        help="start `aerotape web` beside the archive, for the same users",
    )
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="print all settings with their origins, and exit",
    )
    add_property_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the archive until SIGTERM, SIGINT, SIGHUP or the loss of the media driver."""
    from aerotape.archive.features.built_in import SECTIONS

    settings = gather(
        args,
        {
            "aeron.archive.dir": ("--dir", args.dir),
            "aeron.dir": ("--aeron-dir", args.aeron_dir),
            "aerotape.users.file": ("--users", args.users),
        },
        SECTIONS,
    )
    config = settings.config()
    if args.print_config:
        return _print_config(config, settings, args)
    log_to_standard_error("archive", logging.INFO)
    if args.http is not None:
        check_web_service(args.http, config.users_file)
    from aerotape.archive.archive import Archive

    # Before the start, so that a signal during the start leads to a clean stop too. An archive that
    # the signal keeps from being assigned is closed at the exit.
    stop = StopSignals()
    _allow_open_files()
    try:
        with stop.interrupting():
            archive = Archive(config, args.driver)
    except StoppedError:
        return EXIT_OK
    manager = ServiceManager(os.environ)
    with archive, contextlib.ExitStack() as exits:
        _print_ready(archive, args)
        web = exits.enter_context(_web_service(archive, args))
        manager.ready(f"recording into {archive.archive_dir}")
        while not stop.wait(manager.interval_s(_CHECK_INTERVAL_S)):
            if not archive.is_running:
                break
            manager.alive(archive.last_duty_cycle_ns)
            if web is not None:
                web.restart_if_ended()
        manager.stopping()
        failure = archive.failure
    if failure is not None:
        logging.getLogger(__name__).error("ended: %s", _reason(failure))
        return EXIT_FAILURE
    return EXIT_OK


def _web_service(
    archive: Archive, args: argparse.Namespace
) -> contextlib.AbstractContextManager[WebChild | None]:
    """Start the web service of --http; without it, there is none."""
    if args.http is None:
        return contextlib.nullcontext()
    from aerotape.tools._web.child import WebChild

    host, port = args.http
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    options = ["--http", where, "--aeron-dir", str(archive.aeron_dir)]
    files = {"--users": archive.config.users_file, "--retention": archive.config.retention_file}
    for option, path in files.items():
        options += [option, str(path)] if path is not None else []
    options += ["--json"] if args.json else []
    return WebChild([str(archive.archive_dir), *options])


def _allow_open_files() -> None:
    """Allow this process as many open files as its hard limit: recordings need some each."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # the system refuses it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _reason(failure: BaseException) -> str:
    """Return the reason why the archive has ended, on one line; other errors with their kind."""
    text = str(failure)
    if not isinstance(failure, AerotapeError):
        text = f"{type(failure).__name__}: {text}".removesuffix(": ")
    return text


def _print_config(config: ArchiveConfig, settings: Settings, args: argparse.Namespace) -> int:
    from aerotape.archive.config.settings import effective
    from aerotape.media_driver import default_aeron_dir

    for warning in config.warnings:
        note(f"warning: {warning}")
    emit(effective(config, settings, default_aeron_dir()), args)
    return EXIT_OK


def _print_ready(archive: Archive, args: argparse.Namespace) -> None:
    config = archive.config
    facts = ReadyArchive(
        event="ready",
        archive_id=archive.archive_id,
        archive_dir=archive.archive_dir,
        aeron_dir=archive.aeron_dir,
        control_channel=archive.control_channel,
        control_stream_id=config.control_stream_id,
        local_control_channel=archive.local_control_channel,
        local_control_stream_id=config.local_control_stream_id,
    )
    text = (
        f"archive ready: dir={archive.archive_dir} aeron-dir={archive.aeron_dir}"
        f" control={archive.control_channel or 'disabled'} stream={config.control_stream_id}"
    )
    emit_line(facts, text, args)
    sys.stdout.flush()
