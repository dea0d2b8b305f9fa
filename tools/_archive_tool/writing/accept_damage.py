"""`accept-damage`: end the mark of a recording whose damage was repaired."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.formatting import printable
from aerotape.tools._archive_tool._common import add_recording_id, note_text, would
from aerotape.tools._cli.confirm import add_confirmation_option, confirm
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit

if TYPE_CHECKING:
    from aerotape.catalog.recovery.suspect_marks import SuspectNote


@dataclass(frozen=True, slots=True)
class AcceptedDamage:
    """The damage of a recording that was accepted.

    Attributes:
        recording_id: recording id.
        accepted: the notes that were accepted.
        copies_deleted: folders of the quarantine that were deleted.
        dry_run: whether nothing was changed.
    """

    recording_id: int
    accepted: Sequence[SuspectNote]
    copies_deleted: Sequence[str]
    dry_run: bool


JSON_ROWS: Final = {"accept-damage": AcceptedDamage}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "accept-damage", _accept, writes=True)
    add_recording_id(parser, optional=False)
    parser.add_argument(
        "--delete-copies",
        action="store_true",
        help="delete the copies of removed data in aerotape-quarantine too",
    )
    add_confirmation_option(parser)


def _accept(args: argparse.Namespace) -> int:
    """Accept the damage of a recording, so that it is not suspect any more.

    Its notes remain, with the time: verify and describe show them, and the exit code of verify is 0
    unless it finds damage. Damage that is found later marks the recording again. An archive may be
    using the directory. No data is changed; copies of removed data stay unless --delete-copies is
    given, which asks for confirmation.
    """
    from aerotape.catalog.file.entries import checked_entries
    from aerotape.catalog.recovery import suspect_marks
    from aerotape.catalog.recovery.quarantine import folders_of, remove_quarantine
    from aerotape.clock import epoch_ms
    from aerotape.errors import StorageErrors
    from aerotape.replay.offline.directory import open_directory

    directory: Path = args.directory
    checked_entries(open_directory(directory).entries(), args.recording_id, directory)
    copies = folders_of(directory, args.recording_id)
    if args.delete_copies and copies and not args.dry_run:
        deed = f"delete the copies of data that was removed from recording {args.recording_id}"
        confirm(args, deed, any_input=True)
    if args.dry_run:
        notes = suspect_marks.read_marks(directory).get(args.recording_id, [])
        accepted = [note for note in notes if not note.is_accepted]
    else:
        accepted = suspect_marks.accept_notes(directory, args.recording_id, epoch_ms())
        if args.delete_copies:
            with StorageErrors("cannot delete copies of removed data", directory, names_file=True):
                remove_quarantine(directory, args.recording_id)
    deleted = copies if args.delete_copies else []
    if args.json:
        row = AcceptedDamage(
            recording_id=args.recording_id,
            accepted=accepted,
            copies_deleted=[path.name for path in deleted],
            dry_run=args.dry_run,
        )
        emit(row, args)
        return 0
    name = f"recording {args.recording_id}"
    if not accepted:
        print(f"{name} has no damage to accept")
    for note in accepted:
        print(printable(f"{name}: {would(args, 'accepted', 'accept')}: {note_text(note)}"))
    for path in copies:
        verb = would(args, "deleted", "delete") if deleted else "copies of removed data remain in"
        print(printable(f"  {verb} {path}"))
    return 0
