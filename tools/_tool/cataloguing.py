"""Commands that change the catalog: states of recordings, its length, what it holds no more."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from aerotape.errors import ConfigurationError, StorageError, UnknownRecordingError
from aerotape.formatting import printable
from aerotape.tools._cli.arguments import int64
from aerotape.tools._cli.confirm import add_confirmation_option
from aerotape.tools._cli.output import emit, note
from aerotape.tools._tool._common import (
    EXIT_DATA_SUSPECT,
    Commands,
    add_command,
    add_recording_id,
    changing,
    confirm_change,
    some_ids,
)

if TYPE_CHECKING:
    from aerotape.catalog.layout import RecordingState

_ONLINE_TIMEOUT_S: Final = 30.0


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    for name, run_it in (("mark-valid", _mark_valid), ("mark-invalid", _mark_invalid)):
        add_recording_id(add_command(commands, name, run_it, writes=True), optional=False)
    capacity = add_command(commands, "capacity", _capacity, writes=True)
    capacity.add_argument(
        "capacity_bytes", metavar="BYTES", type=int64, nargs="?", help="the length to grow to"
    )
    compact = add_command(commands, "compact", _compact, writes=True)
    compact.add_argument(
        "--online",
        action="store_true",
        help="have the archive that is using the directory leave out what was purged",
    )
    add_confirmation_option(compact)


def _mark_valid(args: argparse.Namespace) -> int:
    """Bring a recording back that was marked as invalid."""
    from aerotape.catalog.layout import RecordingState

    return _change_state(args, RecordingState.INVALID, RecordingState.VALID)


def _mark_invalid(args: argparse.Namespace) -> int:
    """Hide a recording from all clients; it and its files stay as they are."""
    from aerotape.catalog.layout import RecordingState

    return _change_state(args, RecordingState.VALID, RecordingState.INVALID)


def _change_state(
    args: argparse.Namespace, expected: RecordingState, target: RecordingState
) -> int:
    from aerotape.catalog.layout import STATE_NAMES, state_name

    with changing(args) as catalog:
        if args.recording_id not in catalog.all_recording_ids():
            raise UnknownRecordingError(
                f"no recording with id {args.recording_id} in archive directory {args.directory}",
                args.recording_id,
            )
        # One that cannot be is damage, which whoever says what it is to be has mended.
        state = catalog.stored_state(args.recording_id)
        if state not in (expected, target) and state in STATE_NAMES:
            raise StorageError(
                f"recording {args.recording_id} is {state_name(state)}: only one that is "
                f"{expected.name} can become {target.name}",
                catalog.path,
            )
        changed = state != target
        if changed and not args.dry_run:
            catalog.change_state(args.recording_id, target)
    row = {"recording_id": args.recording_id, "state": target.name, "changed": changed}
    if args.json:
        emit({**row, "dry_run": args.dry_run}, args)
    elif changed:
        before = "" if state in STATE_NAMES else f", its state read {state}, which is none"
        print(f"recording {args.recording_id} {_would(args, 'is', 'be')} {target.name} now{before}")
    else:
        print(f"recording {args.recording_id} is {target.name} already")
    return 0


def _would(args: argparse.Namespace, done: str, infinitive: str) -> str:
    return f"would {infinitive}" if args.dry_run else done


def _capacity(args: argparse.Namespace) -> int:
    """Print the length of the catalog file in bytes, or let it grow to so many.

    It never shrinks, and grows by itself when recordings need it.
    """
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.layout import MAX_CAPACITY_BYTES, MIN_CAPACITY_BYTES

    wanted = args.capacity_bytes
    if wanted is None:
        with Catalog.open(args.directory, read_only=True) as catalog:
            capacity_bytes = catalog.capacity_bytes
    elif MIN_CAPACITY_BYTES <= wanted <= MAX_CAPACITY_BYTES:
        with changing(args, capacity_bytes=wanted) as catalog:
            if not args.dry_run:
                catalog.reserve()
            capacity_bytes = max(catalog.capacity_bytes, wanted)
    else:
        raise ConfigurationError(
            f"a catalog cannot have {wanted} bytes: {MIN_CAPACITY_BYTES} to {MAX_CAPACITY_BYTES}",
            "BYTES",
        )
    row: dict[str, Any] = {"capacity_bytes": capacity_bytes}
    if wanted is not None:
        row["dry_run"] = args.dry_run
    emit(row, args) if args.json else print(capacity_bytes)
    return 0


def _compact(args: argparse.Namespace) -> int:
    """Take recordings that are not valid out of the catalog and delete their segment files.

    They cannot be brought back. A file with frames of another place than its name says is left and
    named, and the exit code is 3. The catalog file ends with the last valid recording then. With
    --online a running archive takes purged recordings out, whose files are gone, and goes on.
    """
    from aerotape.catalog.maintenance.orphans import compact, plan_compaction

    if args.online:
        return _compact_online(args)
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
        note(printable(f"warning: left {path.name} where it is: {reason}"))
    if args.json:
        emit(row, args)
    else:
        print(
            f"{_would(args, 'removed', 'remove')} {len(plan.recording_ids)} recordings, "
            f"{plan.entry_bytes} bytes of the catalog and {len(plan.paths)} segment files"
            f"{_whose(plan.recording_ids, args)}"
        )
    return EXIT_DATA_SUSPECT if plan.kept else 0


def _whose(recording_ids: Sequence[int], args: argparse.Namespace) -> str:
    return f", of recordings: {some_ids(recording_ids, args)}" if recording_ids else ""


def _compact_online(args: argparse.Namespace) -> int:
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.file.compaction_request import request_compaction
    from aerotape.catalog.maintenance.orphans import plan_online_compaction
    from aerotape.catalog.mark.ownership import is_held

    with Catalog.open(args.directory, read_only=True) as catalog:
        before = catalog.capacity_bytes
        plan = plan_online_compaction(catalog, args.directory)
    gone = plan.recording_ids
    if not args.dry_run:
        if not is_held(args.directory):
            raise ConfigurationError(
                f"no archive of this package is using {args.directory}: leave --online out",
                "--online",
            )
        told = request_compaction(args.directory, _ONLINE_TIMEOUT_S)
        gone, before = told["recordings_removed"], told["capacity_bytes_before"]
    row = {"recordings_removed": gone, "capacity_bytes_before": before, "dry_run": args.dry_run}
    if args.json:
        emit(row, args)
    else:
        verb = _would(args, "removed", "remove")
        print(f"{verb} {len(gone)} purged recordings{_whose(gone, args)}")
    return 0
