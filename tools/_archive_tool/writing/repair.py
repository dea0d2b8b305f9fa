"""`repair`: remove damage from recordings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.formatting import printable
from aerotape.tools._archive_tool._common import add_checksum_option, add_recording_id, changing
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit

if TYPE_CHECKING:
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.maintenance.repair_plan import RepairPlan

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class RepairedDamage:
    """Damage of a recording.

    Attributes:
        position: where it begins, bytes.
        length: bytes that are damaged.
        detail: the damage.
    """

    position: int
    length: int
    detail: str


@dataclass(frozen=True, slots=True)
class PaddedRange:
    """Positions that were replaced by padding.

    Attributes:
        position: where they begin, bytes.
        length: number of bytes.
    """

    position: int
    length: int


@dataclass(frozen=True, slots=True)
class RepairedRecording:
    """The repair of a recording.

    Attributes:
        recording_id: recording id.
        ok: whether it needed no repair.
        repaired: whether it was repaired.
        refused: why it cannot be repaired, empty if it can.
        state: VALID or INVALID, afterwards.
        stays_hidden: whether it stays invalid.
        start_position_before: start position before, bytes.
        start_position: start position, bytes.
        stop_position_before: stop position before, bytes; -1 without one.
        stop_position: stop position, bytes.
        damages: what is damaged.
        filled: positions that were filled with padding.
        segment_files_moved: segment files moved into quarantine.
        segment_files_made: segment files written.
        quarantine: folder with copies of what was replaced.
        dry_run: whether nothing was changed.
    """

    recording_id: int
    ok: bool
    repaired: bool
    refused: str
    state: str
    stays_hidden: bool
    start_position_before: int
    start_position: int
    stop_position_before: int
    stop_position: int
    damages: Sequence[RepairedDamage]
    filled: Sequence[PaddedRange]
    segment_files_moved: Sequence[str]
    segment_files_made: Sequence[str]
    quarantine: Path | None
    dry_run: bool


JSON_ROWS: Final = {"repair": RepairedRecording}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "repair", _repair, writes=True)
    add_recording_id(parser)
    add_checksum_option(
        parser, "treat frames that fail this checksum as damaged: crc-32 or crc-32c"
    )
    parser.add_argument(
        "--cut",
        action="store_true",
        help="truncate recordings at their first damage, and copy the rest to the quarantine",
    )


def _repair(args: argparse.Namespace) -> int:
    """Remove damaged data from recordings, and copy it to a quarantine directory.

    Damage at the end is cut off. Damage followed by valid frames is replaced by padding, so that
    valid frames keep their positions; of ledgers that at the end, too. The directory
    aerotape-quarantine gets a copy of what is removed. Invalid recordings without damage stay
    invalid, unless RECORDING_ID is given.
    """
    with changing(args) as catalog:
        repairs = list(_repairs(args, catalog))
    if args.json:
        emit((_row(plan, folder, args.dry_run) for plan, folder in repairs), args)
    else:
        for plan, folder in repairs:
            _print(plan, folder, args)
    is_lost = any(plan.refused or plan.damages for plan, _ in repairs)
    return EXIT_DATA_SUSPECT if is_lost else 0


def _repairs(
    args: argparse.Namespace, catalog: Catalog
) -> Iterator[tuple[RepairPlan, Path | None]]:
    """Iterate the plans, and the folders of the copies."""
    from aerotape.archive.features.ledger.alias import is_of_ledger
    from aerotape.catalog.maintenance.repair import plan_repairs, repair
    from aerotape.clock import epoch_ms

    with Progress(None, "checking", unit="MiB") as progress:
        plans = plan_repairs(
            catalog,
            args.directory,
            args.recording_id,
            args.checksum or "none",
            cut_at_damage=args.cut,
            keeps_end=is_of_ledger,
            progress=lambda done, total: progress.update(done >> 20, total >> 20),
        )
        for plan in plans:
            folder = None
            if not args.dry_run:
                folder = repair(catalog, args.directory, plan, epoch_ms())
            yield plan, folder


def _row(plan: RepairPlan, folder: Path | None, dry_run: bool) -> RepairedRecording:
    return RepairedRecording(
        recording_id=plan.recording_id,
        ok=not plan.refused and not plan.is_needed,
        repaired=plan.is_needed and not dry_run,
        refused=plan.refused,
        state=plan.state.name,
        stays_hidden=plan.stays_hidden,
        start_position_before=plan.descriptor.start_position,
        start_position=plan.start_position,
        stop_position_before=plan.descriptor.stop_position,
        stop_position=plan.stop_position,
        damages=[
            RepairedDamage(d.begin, d.end - d.begin, d.detail)
            for d in plan.damages
        ],
        filled=[PaddedRange(d.begin, d.end - d.begin) for d in plan.filled],
        segment_files_moved=[path.name for path in plan.moved],
        segment_files_made=[plan.made.name] if plan.made else [],
        quarantine=folder,
        dry_run=dry_run,
    )


def _print(plan: RepairPlan, folder: Path | None, args: argparse.Namespace) -> None:
    name = f"recording {plan.recording_id}"
    would = "would be" if args.dry_run else "is"
    if plan.refused:
        print(printable(f"{name}: not repaired: {plan.refused}"))
    elif plan.stays_hidden:
        print(f"{name}: INVALID but not damaged: use mark-valid to make it valid")
        return
    elif not plan.is_needed:
        print(f"{name}: OK")
        return
    else:
        print(
            f"{name}: {would} {plan.state.name} from position {plan.start_position} to "
            f"{plan.stop_position} (was {plan.descriptor.start_position} to "
            f"{plan.descriptor.stop_position})"
        )
    shown = plan.damages if args.verbose else plan.damages[:_SHOWN]
    for damage in shown:
        text = f"  positions {damage.begin} to {damage.end}: {damage.detail}"
        print(printable(text))
    if len(shown) < len(plan.damages):
        print(f"  … {len(plan.damages) - len(shown)} more, shown with -v or --json")
    if plan.refused:
        return
    if plan.filled:
        length = sum(damage.end - damage.begin for damage in plan.filled)
        print(f"  {length} bytes {'would be' if args.dry_run else 'are'} replaced by padding")
    for path in plan.moved:
        print(printable(f"  {path.name} {would} moved to the quarantine"))
    if plan.made is not None:
        print(printable(f"  {plan.made.name} {would} created, without frames"))
    if folder is not None:
        print(printable(f"  the removed data is in {folder}"))
        print(
            "  it is marked as suspect until `accept-damage "
            f"{plan.recording_id}` accepts what is lost"
        )
