"""`verify`: check recordings and mark the results in the catalog."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import AerotapeError, MarkFileError
from aerotape.formatting import printable
from aerotape.tools._archive_tool._common import (
    add_checksum_option,
    add_recording_id,
    note_text,
    some_ids,
)
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_FAILURE
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit, note
from aerotape.tools._cli.selecting import TIMES, add_selection_options, selected
from aerotape.tools._cli.times import positions

if TYPE_CHECKING:
    from aerotape.catalog.maintenance.archive_tool_marks import Marking
    from aerotape.catalog.maintenance.verify import Problem, RecordingCheck
    from aerotape.catalog.recovery.suspect_marks import SuspectNote

_SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class MarkedRecording:
    """The change of a recording's entry in the catalog.

    Attributes:
        state: VALID or INVALID, afterwards.
        state_before: state before.
        stop_position: stop position, bytes.
        stop_position_before: stop position before, bytes; -1 without one.
        bytes_behind: bytes in the file after the stop position.
        reason: why it is INVALID, empty if it is not.
        checksum_renewed: whether the descriptor's checksum was renewed.
    """

    state: str
    state_before: str
    stop_position: int
    stop_position_before: int
    bytes_behind: int
    reason: str
    checksum_renewed: bool


@dataclass(frozen=True, slots=True)
class VerifiedRecording:
    """The check of a recording.

    Attributes:
        ok: whether nothing is wrong, and earlier damage is accepted.
        recording_id: recording id.
        state: VALID or INVALID.
        active: whether it is being recorded.
        start_position: start position, bytes.
        stop_position: stop position, or the end of the last frame of a live recording, bytes.
        segments: number of segment files.
        frames: number of frames.
        payload_bytes: bytes of payloads.
        checksums: frames whose checksum was verified.
        other_checksums: frames whose checksum of the other kind was verified.
        unchecked_frames: data frames without the checksum that was to be verified.
        payloads: whether payloads were checked: checked, partly checked or not checked.
        bad_places: number of problems.
        problems: what is wrong, the first thousand.
        remarks: what else is to be known about the result.
        notes: why it was marked as suspect.
        marked: the marking that was made or is proposed, null if none.
        dry_run: whether nothing was changed.
    """

    ok: bool
    recording_id: int
    state: str
    active: bool
    start_position: int
    stop_position: int
    segments: int
    frames: int
    payload_bytes: int
    checksums: int
    other_checksums: int
    unchecked_frames: int
    payloads: str
    bad_places: int
    problems: Sequence[Problem]
    remarks: Sequence[str]
    notes: Sequence[SuspectNote]
    marked: MarkedRecording | None
    dry_run: bool


JSON_ROWS: Final = {"verify": VerifiedRecording}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "verify", _verify, writes=True, reads_urls=True)
    add_recording_id(parser)
    parser.add_argument(
        "-a", dest="all_segments", action="store_true", help="check all segment files"
    )
    add_checksum_option(
        parser, "check the checksum of frames and descriptors: crc-32, crc-32c or the Java class"
    )
    add_selection_options(parser, TIMES)
    parser.add_argument(
        "-y",
        "--yes",
        action="store_true",
        help="cut off last frames that may be torn without asking; a copy is made",
    )


def _verify(args: argparse.Namespace) -> int:
    """Check the descriptor and the last segment file of each recording, and mark the results.

    As Aeron's ArchiveTool does, marks a recording with an error INVALID and an INVALID one without
    errors VALID, and sets stop positions to the end of the last frame. Segment files are not
    changed; repair or mark-valid makes a recording valid again. Nothing is marked while an archive
    is using the directory, with --dry-run, or with times. Times limit the check to the segment
    files that may have been written then.
    """
    from aerotape.archive.features.ledger.alias import is_of_ledger
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.layout import MIN_CAPACITY_BYTES
    from aerotape.catalog.maintenance.archive_tool_marks import apply, decide
    from aerotape.catalog.maintenance.verify import run_verification
    from aerotape.clock import epoch_ms
    from aerotape.replay.offline.directory import open_directory
    from aerotape.url_path import UrlPath

    directory = open_directory(args.directory)
    times = selected(args, TIMES).times
    failed = False
    marks = not times and not isinstance(args.directory, UrlPath)
    with _claiming(args) if marks else nullcontext(False) as may_mark:
        with Progress(None, "verifying", unit="MiB") as progress:
            found = run_verification(
                directory,
                args.recording_id,
                all_segments=args.all_segments,
                checksum=args.checksum or "none",
                positions=partial(positions, times=times) if times else None,
                progress=lambda done, total: progress.update(done >> 20, total >> 20),
            )
        markings: dict[int, Marking] = {}
        if may_mark:
            decided = decide(
                found,
                args.directory,
                all_segments=args.all_segments,
                checksum=args.checksum or "none",
                cut_off=lambda path, offset: _asks(args, path, offset),
                keeps_end=is_of_ledger,
            )
            markings = {each.recording_id: each for each in decided if each.changes}
        if markings and not args.dry_run:
            try:
                with Catalog.open(args.directory, capacity_bytes=MIN_CAPACITY_BYTES) as catalog:
                    for each in markings.values():
                        apply(catalog, args.directory, each, epoch_ms())
            except AerotapeError as error:
                # The results are still printed.
                failed = True
                note(f"cannot mark the results: {error}")
    if args.json:
        emit((_row(check, markings, args.dry_run) for check in found.checks), args)
    else:
        for check in found.checks:
            _print_check(check, markings.get(check.recording_id), bool(args.checksum), args)
    hidden = [] if failed else [each.recording_id for each in markings.values() if each.hides]
    if hidden and not args.json:
        verb = "would be" if args.dry_run else "are now"
        print(
            f"{verb} INVALID, so that clients do not see them: "
            f"recordings {some_ids(hidden, args)}\n"
            "  `repair` removes the damage and makes them valid, `mark-valid ID` leaves it in"
        )
    if failed:
        return EXIT_FAILURE
    is_sound = all(check.ok for check in found.checks) and not hidden
    return 0 if is_sound else EXIT_DATA_SUSPECT


@contextmanager
def _claiming(args: argparse.Namespace) -> Iterator[bool]:
    """Prevent archives from using the directory, unless it is a dry run.

    Yields whether recordings may be marked: not if an archive is using the directory already.
    """
    from aerotape.catalog.mark.mark_file import DEFAULT_LIVENESS_TIMEOUT_MS
    from aerotape.catalog.mark.ownership import check_unused, unused

    may_mark = True
    with ExitStack() as stack:
        try:
            if args.dry_run:
                check_unused(args.directory, DEFAULT_LIVENESS_TIMEOUT_MS)
            else:
                stack.enter_context(unused(args.directory, DEFAULT_LIVENESS_TIMEOUT_MS))
        except MarkFileError as error:
            may_mark = False
            note(f"nothing {'would be' if args.dry_run else 'is'} marked: {error}")
        yield may_mark


def _asks(args: argparse.Namespace, path: Path, offset: int) -> bool:
    """Ask whether to cut off a frame that may be torn; no answer means no."""
    if args.dry_run or args.yes:
        return bool(args.yes)
    sys.stderr.write(
        f"The last frame of {printable(str(path))}, at offset {offset}, may be torn. Cut it off (a"
        " copy is made)? [y/N] "
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _row(check: RecordingCheck, markings: dict[int, Marking], dry_run: bool) -> VerifiedRecording:
    marked = markings.get(check.recording_id)
    return VerifiedRecording(
        ok=check.ok,
        **dataclasses.asdict(check),
        marked=None if marked is None else _marked(marked),
        dry_run=dry_run,
    )


def _marked(marked: Marking) -> MarkedRecording:
    return MarkedRecording(
        state=marked.state.name,
        state_before=marked.state_before.name,
        stop_position=marked.stop_position,
        stop_position_before=marked.stop_position_before,
        bytes_behind=0 if marked.after_stop is None else marked.after_stop[1],
        reason=marked.reason,
        checksum_renewed=marked.renewed != "none",
    )


def _print_check(
    check: RecordingCheck, marked: Marking | None, checksums: bool, args: argparse.Namespace
) -> None:
    from aerotape.catalog.recovery.suspect_marks import is_suspect

    state = " (no stop position)" if check.active else ""
    verdict = "FAILED" if check.problems else "OK, repaired" if check.notes else "OK"
    summary = (
        f"recording {check.recording_id}: {verdict}{state}, "
        f"positions {check.start_position} to {check.stop_position}, "
        f"{check.segments} segment files, {check.frames} frames"
    )
    print(f"{summary}{_checked(check, checksums)}")
    for text in (*check.remarks, *map(note_text, check.notes)):
        print(printable(f"  {text}"))
    if is_suspect(check.notes):
        command = f"aerotape tool {shlex.quote(str(args.directory))} accept-damage"
        print(
            printable(
                f"  marked as suspect: `{command} {check.recording_id}` accepts this; until then "
                "the exit code is 3"
            )
        )
    shown = check.problems if args.verbose else check.problems[:_SHOWN_PROBLEMS]
    for problem in shown:
        place = f" ({problem.path}{_offset(problem.offset)})" if problem.path else ""
        print(printable(f"  {problem.detail}{place}"))
    if len(shown) < len(check.problems):
        print(f"  … {len(check.problems) - len(shown)} more, shown with -v or --json")
    if marked is None:
        return
    verb = "would be" if args.dry_run else "is now"
    if marked.state != marked.state_before:
        reason = f": {marked.reason}" if marked.reason else ""
        print(printable(f"  {verb} {marked.state.name}{reason}"))
    if marked.stop_position != marked.stop_position_before:
        print(
            f"  its stop position {verb} {marked.stop_position} (was {marked.stop_position_before})"
        )
    if marked.after_stop is not None:
        path, length = marked.after_stop
        what = (
            "would remain in the file; `repair`, run first, retains valid frames in the recording"
            if args.dry_run
            else "remain in the file: `repair`, or an archive that extends the recording, moves "
            "them to the quarantine"
        )
        print(printable(f"  {path}: the {length} bytes after it {what}"))
    if marked.renewed != "none":
        print(f"  its descriptor's checksum {verb} that of its contents")
    if marked.cut_off is not None:
        path, offset = marked.cut_off
        print(printable(f"  the data after offset {offset} of {path} {verb} in the quarantine"))


def _checked(check: RecordingCheck, checksums: bool) -> str:
    """Return the checked payloads, for the end of a line."""
    if not checksums:
        return ", payloads not checked"
    if check.payloads == "not checked":
        return ", recorded without checksums: payloads not checked"
    text = f", {check.checksums} checksums valid"
    if check.other_checksums:
        text += f", {check.other_checksums} of the other kind valid"
    if check.unchecked_frames:
        text += f", {check.unchecked_frames} frames recorded without checksums: not checked"
    return text


def _offset(offset: int) -> str:
    return f", offset {offset}" if offset >= 0 else ""
