"""`time-index`: show or rebuild time indexes, which map times to positions."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.tools._archive_tool._common import add_recording_id, changing
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import emit, note

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording


@dataclass(frozen=True, slots=True)
class TimeIndexRow:
    """The time index of a recording.

    Attributes:
        recording_id: recording id.
        source: where its points are from; null, as is all that follows, if it cannot be read.
        points: number of points.
        from_time: time of the first point, ISO 8601.
        to_time: time of the last point, ISO 8601.
        from_position: position of the first point, bytes.
        to_position: position of the last point, bytes.
    """

    recording_id: int
    source: str | None = None
    points: int | None = None
    from_time: str | None = None
    to_time: str | None = None
    from_position: int | None = None
    to_position: int | None = None


@dataclass(frozen=True, slots=True)
class TimePoint:
    """A point of a time index.

    Attributes:
        time: time, ISO 8601.
        time_ns: time, epoch nanoseconds.
        position: position in the stream, bytes.
        estimate: whether the time is an estimate.
    """

    time: str
    time_ns: int
    position: int
    estimate: bool


@dataclass(frozen=True, slots=True)
class RebuiltIndex:
    """A time index that was rebuilt.

    Attributes:
        recording_id: recording id.
        points_kept: points kept.
        estimates: points estimated from times of files.
        dry_run: whether nothing was changed.
    """

    recording_id: int
    points_kept: int
    estimates: int
    dry_run: bool


JSON_ROWS: Final = {"time-index": TimeIndexRow | TimePoint | RebuiltIndex}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "time-index", _time_index, writes=True, reads_urls=True)
    add_recording_id(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--points", action="store_true", help="print the points of one recording")
    what.add_argument(
        "--rebuild",
        action="store_true",
        help="write new indexes: retain valid points, and estimate others from the modification "
        "times of the segment files, where these seem unchanged since recording",
    )


def _time_index(args: argparse.Namespace) -> None:
    """Print the time indexes of recordings, or rebuild them.

    While it records, the archive regularly stores a point: a time with a position. Recordings of
    other archives do not have points.
    """
    from aerotape.catalog.location import require_local
    from aerotape.replay.offline.directory import open_directory

    if args.points and args.recording_id is None:
        raise ConfigurationError("--points requires a RECORDING_ID", "--points")
    if args.dry_run and not args.rebuild:
        raise ConfigurationError("--dry-run requires --rebuild", "--dry-run")
    if args.rebuild:
        require_local(args.directory, "--rebuild")
    directory = open_directory(args.directory)
    if args.recording_id is None:
        recordings = directory.recordings()
    else:
        recordings = [directory.recording(args.recording_id)]
    if args.rebuild:
        with changing(args):
            emit(_rebuild(recordings, dry_run=args.dry_run), args)
    elif args.points:
        emit(_points(recordings[0]), args)
    else:
        emit((_summary(recording) for recording in recordings), args)


def _points(recording: Recording) -> Iterable[TimePoint]:
    from aerotape.times import format_time

    index = recording.time_index
    if index.problem:
        note(f"warning: {index.problem}")
    for point in index.points:
        yield TimePoint(
            time=format_time(point.time_ns),
            time_ns=point.time_ns,
            position=point.position,
            estimate=point.is_estimate,
        )


def _summary(recording: Recording) -> TimeIndexRow:
    from aerotape.times import format_time

    try:
        index = recording.time_index
    except (AerotapeError, OSError) as error:
        note(f"warning: recording {recording.recording_id}: {error}")
        return TimeIndexRow(recording.recording_id)
    if index.problem:
        note(f"warning: recording {recording.recording_id}: {index.problem}")
    row = TimeIndexRow(recording.recording_id, index.source, len(index.points))
    if not index.points:
        return row
    first, last = index.points[0], index.points[-1]
    return dataclasses.replace(
        row,
        from_time=format_time(first.time_ns),
        to_time=format_time(last.time_ns),
        from_position=first.position,
        to_position=last.position,
    )


def _rebuild(recordings: Iterable[Recording], *, dry_run: bool) -> Iterable[RebuiltIndex]:
    from aerotape.catalog.time_index.rebuild import plan_rebuild, rebuild

    for recording in recordings:
        try:
            plan = plan_rebuild(recording)
            if plan.points and not dry_run:
                rebuild(recording, plan)
        except (AerotapeError, OSError) as error:
            note(f"warning: recording {recording.recording_id} is not changed: {error}")
            continue
        if plan.doubt:
            note(f"warning: recording {recording.recording_id} has no estimates: {plan.doubt}")
        yield RebuiltIndex(
            recording_id=recording.recording_id,
            points_kept=plan.kept,
            estimates=plan.estimates,
            dry_run=dry_run,
        )
