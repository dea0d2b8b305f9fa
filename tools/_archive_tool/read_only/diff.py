"""`diff`: compare two archive directories."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.formatting import printable
from aerotape.tools._archive_tool._common import add_recording_id
from aerotape.tools._cli.exit_codes import EXIT_FAILURE
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit

if TYPE_CHECKING:
    from aerotape.catalog.maintenance.diff import Difference


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """The differences of one recording.

    Attributes:
        recording_id: recording id.
        only_in: 1 or 2 if only that directory has it, else 0.
        fields: fields of the descriptor that differ, with both values.
        position: first position with different data, bytes; -1 if there is none.
        detail: the file and offset of that, or why data was not compared; may be empty.
        compared_bytes: bytes compared.
        same: whether the recording is the same.
    """

    recording_id: int
    only_in: int
    fields: Mapping[str, Sequence[Any]]
    position: int
    detail: str
    compared_bytes: int
    same: bool


JSON_ROWS: Final = {"diff": DifferenceRow}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "diff", _diff)
    parser.add_argument("other", metavar="OTHER_DIR", type=Path, help="the other directory")
    add_recording_id(parser)


def _diff(args: argparse.Namespace) -> int:
    """Compare the recordings of two directories: descriptors, positions and data.

    The exit code is 1 if they differ.
    """
    from aerotape.catalog.maintenance.diff import compare
    from aerotape.replay.offline.directory import open_directory

    with Progress(None, "comparing", unit="MiB") as progress:
        differences = list(
            compare(
                open_directory(args.directory),
                open_directory(args.other),
                args.recording_id,
                progress=lambda done: progress.update(done >> 20),
            )
        )
    if args.json:
        rows = (DifferenceRow(**dataclasses.asdict(each), same=each.same) for each in differences)
        emit(rows, args)
    else:
        for each in differences:
            _print(each, args)
    return 0 if all(each.same for each in differences) else EXIT_FAILURE


def _print(each: Difference, args: argparse.Namespace) -> None:
    name = f"recording {each.recording_id}"
    if each.only_in:
        print(printable(f"{name}: only in {args.directory if each.only_in == 1 else args.other}"))
        return
    if each.same:
        print(f"{name}: same, {each.compared_bytes} bytes")
        return
    print(f"{name}: different")
    for field, (ours, theirs) in each.fields.items():
        print(printable(f"  {field}: {ours} and {theirs}"))
    if each.position >= 0:
        print(printable(f"  data differs from position {each.position}: {each.detail}"))
    elif each.detail:
        print(printable(f"  {each.detail}"))
