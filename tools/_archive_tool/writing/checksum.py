"""`checksum`: compute and store checksums."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.formatting import printable
from aerotape.tools._archive_tool._common import add_recording_id, changing, checksum
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit

if TYPE_CHECKING:
    from aerotape.catalog.maintenance.checksum import ChecksumOutcome
    from aerotape.catalog.maintenance.verify import Problem


@dataclass(frozen=True, slots=True)
class ChecksumRow:
    """The checksums of a recording that were written.

    Attributes:
        recording_id: recording id.
        descriptor_changed: whether the descriptor's checksum was written.
        segments: number of segment files.
        frames: number of frames.
        frames_changed: frames whose checksum was written.
        frames_wrong: frames of these that may be damaged.
        problems: what is wrong.
        dry_run: whether nothing was changed.
    """

    recording_id: int
    descriptor_changed: bool
    segments: int
    frames: int
    frames_changed: int
    frames_wrong: int
    problems: Sequence[Problem]
    dry_run: bool


JSON_ROWS: Final = {"checksum": ChecksumRow}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "checksum", _checksum, writes=True)
    parser.add_argument(
        "checksum",
        metavar="X",
        type=checksum,
        help="crc-32, crc-32c or the name of the Java class",
    )
    add_recording_id(parser)
    parser.add_argument(
        "-a",
        dest="all_segments",
        action="store_true",
        help="process all segment files, not only the last one of each recording",
    )


def _checksum(args: argparse.Namespace) -> int:
    """Compute checksums of descriptors and frames and store them.

    New checksums hide existing damage: run verify first. The exit code is 3 if files are missing
    or frames end too early. It is also 3 if some frames have neither a valid checksum nor the
    session id of the recording while others have valid checksums: they may be damaged, or were
    recorded without checksums before the recording was extended or merged with another one.
    """
    from aerotape.catalog.maintenance.checksum import write_checksums

    with (
        changing(args, checksum=args.checksum) as catalog,
        Progress(None, "computing checksums", unit="MiB") as progress,
    ):
        outcomes = write_checksums(
            catalog,
            args.directory,
            args.recording_id,
            all_segments=args.all_segments,
            dry_run=args.dry_run,
            progress=lambda done: progress.update(done >> 20),
        )
    if args.json:
        rows = (ChecksumRow(**dataclasses.asdict(o), dry_run=args.dry_run) for o in outcomes)
        emit(rows, args)
    else:
        verb = "would change" if args.dry_run else "changed"
        for outcome in outcomes:
            descriptor = " and the descriptor's" if outcome.descriptor_changed else ""
            print(
                f"recording {outcome.recording_id}: {verb} {outcome.frames_changed} of "
                f"{outcome.frames} checksums in {outcome.segments} segment files{descriptor}"
            )
            if outcome.frames_wrong:
                print(f"  {_wrong(outcome, args)}")
            for problem in outcome.problems:
                place = f" ({problem.path})" if problem.path else ""
                print(printable(f"  {problem.detail}{place}"))
    is_suspect = any(outcome.problems or outcome.frames_wrong for outcome in outcomes)
    return EXIT_DATA_SUSPECT if is_suspect else 0


def _wrong(outcome: ChecksumOutcome, args: argparse.Namespace) -> str:
    text = (
        f"{outcome.frames_wrong} of these frames had a wrong checksum and may be damaged, or were "
        "recorded without one under an earlier session id"
    )
    if args.dry_run:
        return f"{text}: `verify -a -checksum` lists them, new checksums would hide the damage"
    return f"{text}; their new checksums hide any damage"
