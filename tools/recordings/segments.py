"""Detach, delete, purge, attach or migrate segment files at the start of a recording.

detach   move the start to POSITION; the files before it remain, unused
delete   delete the detached files
purge    detach and delete
attach   move the start back to the earliest detached file
migrate  move all files of a recording to another one, which they must follow or precede
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.tools._cli.arguments import add_recording_id, identity
from aerotape.tools._cli.common_options import add_common_options
from aerotape.tools._cli.confirm import add_confirmation_option, confirm
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.output import ABSENT, Absent, emit

if TYPE_CHECKING:
    from aerotape.clients import ArchiveClient

_POSITION_HELP: Final = "the new start position, bytes: the start of a segment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """A recording whose segment files were changed.

    Attributes:
        source_id: the recording that the files were moved from.
        recording_id: recording id.
        start_position: start position, bytes.
        segment_files_deleted: number of segment files deleted.
        segment_files_attached: number of segment files attached.
        segment_files_moved: number of segment files moved.
    """

    source_id: int | Absent = ABSENT
    recording_id: int
    start_position: int
    segment_files_deleted: int | Absent = ABSENT
    segment_files_attached: int | Absent = ABSENT
    segment_files_moved: int | Absent = ABSENT


JSON_ROWS: Final = {"": Segments}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands and their arguments."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, run_it in _ACTIONS.items():
        action = commands.add_parser(name, description=run_it.__doc__, help=run_it.__doc__)
        if name == "migrate":
            action.add_argument(
                "source_id", metavar="SOURCE_ID", type=identity, help="the recording to move from"
            )
            action.add_argument(
                "target_id", metavar="TARGET_ID", type=identity, help="the recording to move to"
            )
        else:
            add_recording_id(action)
        if name in ("detach", "purge"):
            action.add_argument("position", metavar="POSITION", type=identity, help=_POSITION_HELP)
        if name in ("delete", "purge"):
            add_confirmation_option(action)
        add_connection_options(action)
        add_common_options(action, default=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    """Send the request and print the outcome."""
    with connect(args) as client:
        if args.action in ("delete", "purge") and not args.yes:
            client.start_position(args.recording_id)  # an error where there is no such recording
            confirm(args, _deletion(args))
        emit(_ACTIONS[args.action](client, args), args)


def _deletion(args: argparse.Namespace) -> str:
    if args.action == "delete":
        return f"delete the detached segment files of recording {args.recording_id}"
    return (
        f"delete the segment files of recording {args.recording_id} before position {args.position}"
    )


def _detach(client: ArchiveClient, args: argparse.Namespace) -> Segments:
    """Move the start of a recording forward; the files before it remain."""
    client.detach_segments(args.recording_id, args.position)
    return Segments(**_now(client, args.recording_id))


def _delete(client: ArchiveClient, args: argparse.Namespace) -> Segments:
    """Delete the detached files of a recording."""
    deleted = client.delete_detached_segments(args.recording_id)
    return Segments(**_now(client, args.recording_id), segment_files_deleted=deleted)


def _purge(client: ArchiveClient, args: argparse.Namespace) -> Segments:
    """Move the start of a recording forward and delete the files before it."""
    deleted = client.purge_segments(args.recording_id, args.position)
    return Segments(**_now(client, args.recording_id), segment_files_deleted=deleted)


def _attach(client: ArchiveClient, args: argparse.Namespace) -> Segments:
    """Move the start of a recording back to its earliest file."""
    attached = client.attach_segments(args.recording_id)
    return Segments(**_now(client, args.recording_id), segment_files_attached=attached)


def _migrate(client: ArchiveClient, args: argparse.Namespace) -> Segments:
    """Move all files of a recording to another."""
    moved = client.migrate_segments(args.source_id, args.target_id)
    return Segments(
        source_id=args.source_id,
        **_now(client, args.target_id),
        segment_files_moved=moved,
    )


def _now(client: ArchiveClient, recording_id: int) -> dict[str, int]:
    return {"recording_id": recording_id, "start_position": client.start_position(recording_id)}


_ACTIONS: Final[dict[str, Callable[[ArchiveClient, argparse.Namespace], Segments]]] = {
    "detach": _detach,
    "delete": _delete,
    "purge": _purge,
    "attach": _attach,
    "migrate": _migrate,
}
