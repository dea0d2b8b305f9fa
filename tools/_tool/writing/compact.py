"""`compact`: remove recordings that are not valid from the catalog, with their segment files."""

from __future__ import annotations

import argparse

from aerotape.formatting import printable
from aerotape.tools._cli.confirm import add_confirmation_option
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit_line, note
from aerotape.tools._tool._common import changing, confirm_change, some_ids, would


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
        row = {
            "recordings_removed": plan.recording_ids,
            "entry_bytes": plan.entry_bytes,
            "capacity_bytes_before": before,
            "segment_files_deleted": [path.name for path in plan.paths],
            "kept": [{"segment_file": path.name, "reason": reason} for path, reason in plan.kept],
            "dry_run": args.dry_run,
        }
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
