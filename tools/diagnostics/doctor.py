"""Check this machine, its media driver and its archive, and show how to fix what is wrong.

The checks: versions, limits of open files and file sizes, space for log buffers and recordings,
the media driver and the archive of the options, and a round trip: a temporary archive and media
driver record and replay messages. The exit code is 1 if a check has failed, 0 if there are only
warnings.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from aerotape.tools._cli.colour import has_colours, state
from aerotape.tools._cli.connection import add_connection_options, connect, driver_directory
from aerotape.tools._cli.escaping import write_styled
from aerotape.tools._cli.exit_codes import EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.output import emit, emit_line

if TYPE_CHECKING:
    from aerotape.tools.diagnostics._checks import Finding

_TIMEOUT_NS: Final = 2_000_000_000


JSON_ROWS: Final = {"": "aerotape.tools.diagnostics._checks:Finding"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--dir",
        metavar="DIR",
        help="the archive directory, which may be missing (default: $AERON_ARCHIVE_DIR, or "
        "aeron-archive)",
    )
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the checks and print their findings."""
    findings = []
    for finding in _findings(args):
        findings.append(finding)
        if not args.json:
            _print(finding, args)
    if args.json:
        emit(findings, args)
    return EXIT_FAILURE if any(each.state == "failed" for each in findings) else EXIT_OK


def _findings(args: argparse.Namespace) -> Iterator[Finding]:
    from aerotape.tools.diagnostics import _checks

    aeron_dir = driver_directory(args)
    yield _checks.versions()
    yield from _checks.limits()
    yield _checks.driver_space(aeron_dir)
    yield _checks.archive_space(args.dir or os.environ.get("AERON_ARCHIVE_DIR") or "aeron-archive")
    driver = _checks.driver(aeron_dir)
    yield driver
    if driver.state == _checks.OK:
        yield _checks.archive(lambda: connect(args, {"timeout_ns": _TIMEOUT_NS}))
    yield _checks.round_trip()


def _print(finding: Finding, args: argparse.Namespace) -> None:
    shown = f"{finding.state:<7}"
    write_styled((state(shown) if has_colours(sys.stdout) else shown) + "  ", sys.stdout)
    emit_line({}, f"{finding.check:<12}  {finding.found}", args)
    if finding.fix is not None:
        emit_line({}, f"{'':<23}fix: {finding.fix}", args)
    sys.stdout.flush()
