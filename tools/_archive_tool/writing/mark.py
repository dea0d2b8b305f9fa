"""`mark-valid` and `mark-invalid`: show a recording to clients or hide it from them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.errors import StorageError
from aerotape.tools._archive_tool._common import add_recording_id, changing, would
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit

if TYPE_CHECKING:
    from aerotape.catalog.layout import RecordingState
    from aerotape.catalog.recovery.suspect_marks import SuspectNote


@dataclass(frozen=True, slots=True)
class ChangedState:
    """The state of a recording.

    Attributes:
        recording_id: recording id.
        state: VALID or INVALID.
        changed: whether it was changed.
        dry_run: whether nothing was changed.
    """

    recording_id: int
    state: str
    changed: bool
    dry_run: bool


JSON_ROWS: Final = {"mark-valid": ChangedState, "mark-invalid": ChangedState}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    for name, run_it in (("mark-valid", _mark_valid), ("mark-invalid", _mark_invalid)):
        add_recording_id(add_command(commands, name, run_it, writes=True), optional=False)


def _mark_valid(args: argparse.Namespace) -> int:
    """Mark an invalid recording as valid, so that clients see it again."""
    from aerotape.catalog.layout import RecordingState

    return _change_state(args, RecordingState.INVALID, RecordingState.VALID)


def _mark_invalid(args: argparse.Namespace) -> int:
    """Mark a recording as invalid, which hides it from clients; its files remain."""
    from aerotape.catalog.layout import RecordingState

    return _change_state(args, RecordingState.VALID, RecordingState.INVALID)


def _change_state(
    args: argparse.Namespace, expected: RecordingState, target: RecordingState
) -> int:
    from aerotape.catalog.file.entries import unknown_recording
    from aerotape.catalog.layout import STATE_NAMES, RecordingState, state_name
    from aerotape.catalog.recovery.suspect_marks import is_suspect

    with changing(args) as catalog:
        if not catalog.has_entry(args.recording_id):
            raise unknown_recording(args.recording_id, (), args.directory)
        # An unknown state is damage, which this command repairs.
        state = catalog.stored_state(args.recording_id)
        if state not in (expected, target) and state in STATE_NAMES:
            raise StorageError(
                f"recording {args.recording_id} is {state_name(state)}: only a recording "
                f"that is {expected.name} can become {target.name}",
                catalog.path,
            )
        changed = state != target
        if changed and not args.dry_run:
            catalog.change_state(args.recording_id, target)
    if args.json:
        emit(ChangedState(args.recording_id, target.name, changed, args.dry_run), args)
    elif changed:
        before = "" if state in STATE_NAMES else f", was {state}, which is not a valid state"
        print(f"recording {args.recording_id} {would(args, 'is', 'be')} {target.name} now{before}")
    else:
        print(f"recording {args.recording_id} is {target.name} already")
        if target == RecordingState.VALID and is_suspect(_notes(args)):
            print("  it is marked as suspect: `accept-damage` accepts damage that was repaired")
    return 0


def _notes(args: argparse.Namespace) -> list[SuspectNote]:
    from aerotape.catalog.recovery.suspect_marks import read_marks

    return read_marks(args.directory).get(args.recording_id, [])
