"""`compact`: remove recordings that are not valid from the catalog, with their segment files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aerotape.formatting import printable
from aerotape.tools._archive_tool._common import (
    RetainedFile,
    changing,
    confirm_change,
    some_ids,
    would,
)
from aerotape.tools._cli.confirm import add_confirmation_option
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_line, note


@dataclass(frozen=True, slots=True)
class CompactedCatalog:
    """The recordings and files that were removed.

    Attributes:
        recordings_removed: ids of the removed recordings.
        entry_bytes: bytes of removed entries.
        capacity_bytes_before: capacity before, bytes.
        segment_files_deleted: names of the segment files deleted.
        kept: files that were retained, and why.
        dry_run: whether nothing was changed.
    """

    recordings_removed: Sequence[int]
    entry_bytes: int
    capacity_bytes_before: int
    segment_files_deleted: Sequence[str]
    kept: Sequence[RetainedFile]
    dry_run: bool


JSON_ROWS: Final = {"compact": CompactedCatalog}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "compact", _compact, writes=True)
    add_confirmation_option(parser)


def _compact(args: argparse.Namespace) -> int:
    """Remove recordings that are not valid from the catalog and delete their segment files.

    The deletion cannot be undone. A file whose frames do not belong to the position in its name is
    retained and reported, and the exit code is 3. The catalog file is truncated after the last
    valid recording. An archive removes the entries of purged recordings itself when it starts.
    """
    from aerotape.catalog.maintenance.compaction import compact, plan_compaction

    confirm_change(args, "delete all recordings that are not valid, with their segment files")
    with changing(args) as catalog:
        before = catalog.capacity_bytes
        plan = (plan_compaction if args.dry_run else compact)(catalog, args.directory)
        row = CompactedCatalog(
            recordings_removed=plan.recording_ids,
            entry_bytes=plan.entry_bytes,
            capacity_bytes_before=before,
            segment_files_deleted=[path.name for path in plan.paths],
            kept=[RetainedFile(path.name, reason) for path, reason in plan.kept],
            dry_run=args.dry_run,
        )
    for path, reason in plan.kept:
        note(printable(f"warning: retained {path.name}: {reason}"))
    ids = some_ids(plan.recording_ids, args)
    text = (
        f"{would(args, 'removed', 'remove')} {len(plan.recording_ids)} recordings, "
        f"{plan.entry_bytes} bytes of the catalog and {len(plan.paths)} segment files"
        f"{f', of recordings: {ids}' if ids else ''}"
    )
    emit_line(row, text, args)
    return EXIT_DATA_SUSPECT if plan.kept else 0
