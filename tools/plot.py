"""Draw the rate and the message lengths of a recording into an image file.

The horizontal axis is time where the recording has a time index, otherwise position. Gaps, ranges
without the frames they should have, are hatched; with gaps the exit code is 3. The archive may be
running. Requires matplotlib: `pip install '.[plot]'` in a checkout of aerotape.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.catalog.location import parse_location
from aerotape.errors import ConfigurationError, StorageError
from aerotape.tools._cli.arguments import identity
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT
from aerotape.tools._cli.output import Progress, emit_line, note
from aerotape.tools._cli.statistics import add_statistics_options, compute_statistics

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import ArchiveDirectory, Recording
    from aerotape.replay.statistics.model import RecordingStatistics

_FORMATS: Final = ("png", "svg", "pdf")
_DOTS_PER_INCH: Final = 150
_LISTED_IDS: Final = 10


@dataclass(frozen=True, slots=True)
class Plot:
    """An image of a recording.

    Attributes:
        file: file written.
        recording_id: recording id.
        messages: number of messages.
        gaps: number of gaps.
    """

    file: Path
    recording_id: int
    messages: int
    gaps: int


JSON_ROWS: Final = {"": Plot}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "archive_dir",
        type=parse_location,
        metavar="DIR",
        help="the archive directory, or the URL of a copy",
    )
    parser.add_argument(
        "recording_id",
        type=identity,
        nargs="?",
        metavar="RECORDING_ID",
        help="the recording (default: the only one)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="a .png, .svg or .pdf, replaced if it exists (default: recording-ID.png)",
    )
    add_statistics_options(parser)


def run(args: argparse.Namespace) -> int:
    """Draw the image and print its name."""
    from aerotape.replay.offline.directory import open_directory

    if args.out is not None:
        _format(args.out)

    recording = _chosen(open_directory(args.archive_dir), args.recording_id)
    out = args.out or Path(f"recording-{recording.recording_id}.png")
    length = max(recording.recorded_position - recording.start_position, 0)
    with Progress(max(length >> 20, 1), "counting", unit="MiB") as progress:
        statistics = compute_statistics(
            recording, args, lambda done: progress.update(done >> 20), bins=args.bins
        )
    _save(statistics, out)
    plot = Plot(out, recording.recording_id, statistics.messages, statistics.gap_count)
    emit_line(plot, str(out), args)
    if statistics.gap_count:
        first = statistics.gaps[0]
        note(
            f"aerotape plot: {statistics.gap_count} gaps, the first at position "
            f"{first.from_position}: {first.detail}"
        )
        return EXIT_DATA_SUSPECT
    return 0


def _chosen(directory: ArchiveDirectory, recording_id: int | None) -> Recording:
    if recording_id is not None:
        return directory.recording(recording_id)
    recordings = directory.recordings()
    if len(recordings) == 1:
        return recordings[0]
    if not recordings:
        raise StorageError(f"no recordings in {directory.path}", directory.path)
    ids = [str(recording.recording_id) for recording in recordings[:_LISTED_IDS]]
    more = ", …" if len(recordings) > _LISTED_IDS else ""
    raise ConfigurationError(
        f"{len(recordings)} recordings in {directory.path}: give RECORDING_ID, one of "
        f"{', '.join(ids)}{more}",
        "RECORDING_ID",
    )


def _format(out: Path) -> str:
    chosen = out.suffix.lower().removeprefix(".")
    if chosen not in _FORMATS:
        raise ConfigurationError(
            f"cannot write an image to {out}: the name must end in .{', .'.join(_FORMATS)}", "--out"
        )
    return chosen


def _save(statistics: RecordingStatistics, out: Path) -> None:
    """Write a temporary file and rename it, so that the image is complete or absent."""
    from aerotape.replay.statistics import plot

    figure = plot.new_figure()
    plot.draw(statistics, figure)
    temporary = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        figure.savefig(temporary, format=_format(out), dpi=_DOTS_PER_INCH)
        temporary.replace(out)
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror or error}", out) from error
    finally:
        temporary.unlink(missing_ok=True)
