"""The command that checks recordings; it changes nothing."""

from __future__ import annotations

import argparse
from typing import Any

from aerotape.tools._offline._common import (
    EXIT_DATA_SUSPECT,
    Commands,
    add_command,
    add_recording_id,
    checksum_name,
)


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "verify", _verify, reads_urls=True)
    add_recording_id(parser)
    parser.add_argument(
        "-a", dest="all_segments", action="store_true", help="check all segment files"
    )
    parser.add_argument(
        "-checksum",
        "--checksum",
        metavar="X",
        help="check the checksum of frames and descriptors: crc-32 or crc-32c, or the Java class",
    )


def _verify(args: argparse.Namespace) -> int:
    """Check descriptors and the last segment file of each recording."""
    from aerotape.catalog.directory import open_directory
    from aerotape.catalog.verify import verify
    from aerotape.text import printable
    from aerotape.tools.output import Progress, emit

    checksum = "none" if args.checksum is None else checksum_name(args.checksum)
    directory = open_directory(args.directory)
    total = 1 if args.recording_id is not None else sum(1 for _ in directory.entries())
    with Progress(total, "verifying", unit="recordings") as progress:
        checks = verify(
            directory,
            args.recording_id,
            all_segments=args.all_segments,
            checksum=checksum,
            progress=progress.update,
        )
    if args.json:
        emit(({"ok": check.ok, **_fields(check)} for check in checks), args)
    else:
        for check in checks:
            state = " (no stop position)" if check.active else ""
            summary = (
                f"recording {check.recording_id}: {'OK' if check.ok else 'FAILED'}{state}, "
                f"positions {check.start_position} to {check.stop_position}, "
                f"{check.segments} segment files, {check.frames} frames"
            )
            if checksum != "none":
                summary += f", {check.checksums} checksums right"
            print(summary)
            for problem in check.problems:
                place = f" ({problem.path})" if problem.path else ""
                print(printable(f"  {problem.detail}{place}"))
    return 0 if all(check.ok for check in checks) else EXIT_DATA_SUSPECT


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
