"""`delete-orphaned-segments`: delete segment files outside their recordings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.formatting import printable
from aerotape.tools._archive_tool._common import (
    RetainedFile,
    add_recording_id,
    changing,
    confirm_change,
    would,
)
from aerotape.tools._cli.confirm import add_confirmation_option
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit, note

if TYPE_CHECKING:
    from aerotape.catalog.file.catalog import Catalog


@dataclass(frozen=True, slots=True)
class DeletedFiles:
    """The files that were deleted.

    Attributes:
        segment_files_deleted: names of the segment files deleted.
        other_files_deleted: files and folders of recordings that are gone.
        kept: files that were retained, and why.
        dry_run: whether nothing was changed.
    """

    segment_files_deleted: Sequence[str]
    other_files_deleted: Sequence[str]
    kept: Sequence[RetainedFile]
    dry_run: bool


JSON_ROWS: Final = {"delete-orphaned-segments": DeletedFiles}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "delete-orphaned-segments", _delete_orphans, writes=True)
    add_recording_id(parser)
    add_confirmation_option(parser)


def _delete_orphans(args: argparse.Namespace) -> int:
    """Delete segment files before the start (detached) or after the end of recordings.

    Processes all recordings, valid or not, or one. For all it also deletes time indexes, marks and
    quarantine of recordings that are in the catalog no more, as after ArchiveTool's compact. Files
    that may only look orphaned because the directory is damaged are retained and reported, and the
    exit code is 3.
    """
    from aerotape.catalog.file.entries import entry_damage, unknown_recording
    from aerotape.catalog.maintenance.orphans import delete_files, find_orphans
    from aerotape.catalog.recovery.owned_files import delete_leftovers

    whose = "" if args.recording_id is None else f" of recording {args.recording_id}"

    def check(catalog: Catalog) -> None:
        if args.recording_id is not None and not catalog.has_entry(args.recording_id):
            raise unknown_recording(args.recording_id, (), args.directory)

    confirm_change(args, f"delete all orphaned segment files{whose}", check)
    with changing(args) as catalog:
        check(catalog)
        orphans = find_orphans(catalog, args.directory, args.recording_id)
        if not args.dry_run:
            delete_files(orphans.paths)
            delete_leftovers(orphans.leftovers)
    for entry in orphans.undecided:
        note(
            f"warning: retained the files of recording {entry.recording_id}: its entry at "
            f"offset {entry.offset} of the catalog is damaged: {entry_damage(entry)}"
        )
    for path, reason in orphans.kept:
        note(printable(f"warning: retained {path.name}: {reason}"))
    names = [path.name for path in orphans.paths]
    others = [path.relative_to(args.directory).as_posix() for path in orphans.leftovers]
    if args.json:
        kept = [RetainedFile(path.name, reason) for path, reason in orphans.kept]
        emit(DeletedFiles(names, others, kept, args.dry_run), args)
    else:
        for name in names + others:
            print(would(args, "deleted", "delete"), name)
    return EXIT_DATA_SUSPECT if orphans.undecided or orphans.kept else 0
