"""Delete recorded data that a retention policy does not retain, by age, size or count.

The policy is a TOML file, described in docs/retention.md. --dry-run shows what would be
deleted and why. If an archive, of this package or Java's, is using the directory, the command
requests the deletions from it, over the connection in its mark file unless options are given; data
being replayed is not deleted. Otherwise the command deletes the files itself. Nothing of topics of
entities and of ledgers is deleted, whatever the policy says. `aerotape archive` applies a policy
regularly with -Daerotape.retention.file=POLICY.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.tools._cli.confirm import add_confirmation_option, confirm
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.exit_codes import EXIT_FAILURE
from aerotape.tools._cli.output import ABSENT, Absent, emit, note

if TYPE_CHECKING:
    from aerotape.archive.retention.plan import Removal, RetentionPlan
    from aerotape.archive.retention.policy import RetentionPolicy
    from aerotape.archive.retention.survey import Usage
    from aerotape.catalog.mark.layout import MarkFileHeader
    from aerotape.clients import ArchiveClient


@dataclass(frozen=True, slots=True)
class RetentionRemoval:
    """The segment files of a recording that are deleted.

    Attributes:
        recording_id: recording id.
        new_start_position: start position after, null if the recording is removed.
        segment_files: number of segment files.
        size_bytes: bytes.
        reasons: the rules that apply.
        problem: why not all were deleted, empty if they were.
    """

    recording_id: int
    new_start_position: int | None
    segment_files: int
    size_bytes: int
    reasons: Sequence[str]
    problem: str | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RetainedRecording:
    """A recording that is kept although a rule applies.

    Attributes:
        recording_id: recording id.
        size_bytes: bytes.
        reasons: the rules that apply.
        in_use: why the recording is kept, empty if no rule applies.
    """

    recording_id: int
    size_bytes: int
    reasons: Sequence[str]
    in_use: str


@dataclass(frozen=True, slots=True)
class Retention:
    """The outcome of retention.

    Attributes:
        dry_run: whether nothing was changed.
        removals: what retention removes.
        kept: what is kept, and why.
    """

    dry_run: bool
    removals: Sequence[RetentionRemoval]
    kept: Sequence[RetainedRecording]


JSON_ROWS: Final = {"": Retention}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the archive directory")
    parser.add_argument(
        "policy", metavar="POLICY", type=Path, help="the retention policy, a TOML file"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show what would be deleted and why, and delete nothing",
    )
    add_confirmation_option(parser)
    add_connection_options(parser)


def run(args: argparse.Namespace) -> int:
    """Plan, confirm, delete, and print what was deleted."""
    from aerotape.archive.retention.policy import read_policy
    from aerotape.catalog.location import why_no_directory
    from aerotape.errors import StorageError

    policy = read_policy(args.policy)
    if problem := why_no_directory(args.directory):
        raise StorageError(problem, args.directory)
    header = _active_mark(args.directory)
    if header is None:
        return _run_offline(args, policy)
    defaults = {
        "aeron_dir": header.aeron_directory,
        "control_request_channel": header.local_control_channel,
        "control_request_stream_id": header.local_control_stream_id,
    }
    with connect(args, defaults) as client:
        _check_same(args.directory, header, client)
        return _carry_out(
            args,
            lambda: plan_now(args.directory, policy, _usage(args.directory, client)),
            lambda: nullcontext(lambda removal: remove(client, removal)),
        )


def _active_mark(directory: Path) -> MarkFileHeader | None:
    """Return the mark file's header if an archive is using the directory, else None."""
    from aerotape.catalog.mark.mark_file import MarkFile
    from aerotape.errors import MarkFileError

    try:
        info = MarkFile.read(directory)
    except MarkFileError:
        return None
    return info.header if info.is_active() else None


def _check_same(directory: Path, header: MarkFileHeader, client: ArchiveClient) -> None:
    """Raise ConfigurationError if the options connect to the archive of another directory."""
    from aerotape.errors import ConfigurationError

    if header.archive_id not in (-1, client.get_archive_id()):
        raise ConfigurationError(
            f"the connected archive has id {client.get_archive_id()}, but the one that uses"
            f" {directory} has id {header.archive_id}: correct or omit the connection options",
            "--control-channel",
        )


def _run_offline(args: argparse.Namespace, policy: RetentionPolicy) -> int:
    from aerotape.archive.retention.offline import carry_out
    from aerotape.archive.retention.survey import Usage
    from aerotape.tools._archive_tool._common import changing

    directory: Path = args.directory

    @contextmanager
    def removing() -> Iterator[Callable[[Removal], str]]:
        # Synced before files are deleted: the catalog must not claim missing files.
        with changing(args, sync_level=1) as catalog:

            def remove(removal: Removal) -> str:
                carry_out(catalog, directory, removal)
                return ""

            yield remove

    return _carry_out(args, lambda: plan_now(directory, policy, Usage()), removing)


def plan_now(directory: Path, policy: RetentionPolicy, usage: Usage) -> RetentionPlan:
    """Return the current removals of a policy (CatalogError, StorageError)."""
    from aerotape.archive.control.feature import first_hold
    from aerotape.archive.features.built_in import FEATURES
    from aerotape.archive.retention.locked_segments import plan_directory

    holds = partial(first_hold, FEATURES)
    return plan_directory(directory, policy, time.time_ns(), holds, usage)


def _usage(directory: Path, client: ArchiveClient) -> Usage:
    """Return the positions of live recordings; the archive itself checks for replays."""
    from aerotape.archive.retention.survey import Usage
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.file.entries import entry_damage
    from aerotape.catalog.layout import RecordingState

    with Catalog.open(directory, read_only=True) as catalog:
        active = [
            entry.recording_id
            for entry in catalog.entries()
            if entry.state == RecordingState.VALID
            and not entry_damage(entry)
            and entry.descriptor.is_active
        ]
    positions = {each: client.recording_position(each) for each in active}
    return Usage({each: position for each, position in positions.items() if position >= 0})


def remove(client: ArchiveClient, removal: Removal) -> str:
    """Request a removal, or as much of it as the archive allows; return why the rest remains."""
    from aerotape.catalog.segment.migrate import base_positions
    from aerotape.errors import ArchiveError

    recording_id, descriptor = removal.recording_id, removal.descriptor
    end, problem = removal.new_start_position, ""
    if end is None:
        try:
            client.purge_recording(recording_id)
            return ""
        except ArchiveError as error:
            end, problem = descriptor.stop_position - 1, str(error)
    # Segment base positions, from the planned new start back to the second segment.
    for base in reversed(base_positions(descriptor, descriptor.start_position, end + 1)[1:]):
        try:
            client.purge_segments(recording_id, base)
            return problem
        except ArchiveError as error:
            problem = problem or str(error)
    return problem


def _carry_out(
    args: argparse.Namespace,
    make_plan: Callable[[], RetentionPlan],
    removing: Callable[[], AbstractContextManager[Callable[[Removal], str]]],
) -> int:
    """Confirm the plan and do each removal with the function that `removing` yields.

    The directory is not locked while the user is asked, so it is planned again afterwards.
    """
    from aerotape.errors import AerotapeError

    plan = make_plan()
    code, problems = 0, [""] * len(plan.removals)
    if plan.removals and not args.dry_run:
        segments = sum(removal.segments for removal in plan.removals)
        confirm(args, f"delete {segments} segment files of {len(plan.removals)} recordings")
        with removing() as removed:
            plan, changed = still_planned(plan, make_plan())
            if changed:
                numbers = ", ".join(map(str, changed))
                note(f"skipped because they have changed: recordings {numbers}")
            problems = []
            for removal in plan.removals:
                try:
                    problems.append(removed(removal))
                except AerotapeError as error:
                    problems.append(str(error))
                    note(f"error: recording {removal.recording_id}: {error}")
        code = EXIT_FAILURE if any(problems) else 0
    rows = [
        removal_row(removal, problem)
        for removal, problem in zip(plan.removals, problems, strict=True)
    ]
    if args.json:
        kept = [
            RetainedRecording(
                recording_id=each.recording_id,
                size_bytes=each.size_bytes,
                reasons=each.reasons,
                in_use=each.in_use,
            )
            for each in plan.retained
        ]
        emit(Retention(args.dry_run, rows, kept), args)
        return code
    done = "would delete" if args.dry_run else "deleted"
    for removal, row in zip(plan.removals, rows, strict=True):
        problem = row.problem
        print(f"not all of {removal}: {problem}" if problem else f"{done} from {removal}")
    for each in plan.retained:
        print(each)
    if not plan.removals:
        print("nothing to delete")
    return code


def still_planned(
    confirmed: RetentionPlan, fresh: RetentionPlan
) -> tuple[RetentionPlan, list[int]]:
    """Return the removals of a fresh plan that were confirmed, and the ids of those not in it."""
    from aerotape.archive.retention.plan import RetentionPlan

    agreed = {_extent(removal) for removal in confirmed.removals}
    removals = [removal for removal in fresh.removals if _extent(removal) in agreed]
    left = {removal.recording_id for removal in removals}
    changed = [each.recording_id for each in confirmed.removals if each.recording_id not in left]
    return RetentionPlan(removals, fresh.retained, fresh.size_bytes), changed


def _extent(removal: Removal) -> tuple[int, int, int | None, int | None]:
    """Return the recording, start and end of a removal."""
    descriptor, end = removal.descriptor, removal.new_start_position
    stop = descriptor.stop_position if end is None else None
    return removal.recording_id, descriptor.start_position, end, stop


def removal_row(removal: Removal, problem: str | Absent = ABSENT) -> RetentionRemoval:
    """Return a removal for JSON."""
    return RetentionRemoval(
        recording_id=removal.recording_id,
        new_start_position=removal.new_start_position,
        segment_files=removal.segments,
        size_bytes=removal.size_bytes,
        reasons=removal.reasons,
        problem=problem,
    )
