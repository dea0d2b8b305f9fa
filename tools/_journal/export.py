"""`export`: export the records in a recording to the segment files of a journal."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.errors import StorageError, UnknownRecordingError
from aerotape.tools._cli.arguments import add_recording_id, option
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit, note
from aerotape.units import parse_size

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.message import Message

_FORMATS: Final = ("1.0", "8.2", "8.3")
_INCOMPLETE: Final = ".incomplete"


@dataclass(frozen=True, slots=True)
class ExportedJournal:
    """A journal that was written.

    Attributes:
        recording_id: recording id.
        directory: directory.
        records: number of records.
        damage: why the export ended before the end, null if it did not.
    """

    recording_id: int
    directory: Path
    records: int
    damage: str | None


JSON_ROWS: Final = {"export": ExportedJournal}


def add_commands(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "export", _export)
    add_recording_id(parser)
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="the directory to create; it may be empty"
    )
    parser.add_argument(
        "--from",
        dest="archive_dir",
        metavar="ARCHIVE_DIR",
        type=Path,
        help="read the recording from this archive directory (default: from a running archive)",
    )
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="the first release of Zeebe that writes this format (default: that of the imported "
        "journal, or 8.3)",
    )
    parser.add_argument(
        "--segment-size",
        metavar="SIZE",
        type=option(lambda text, name: parse_size(name, text), "--segment-size"),
        help="length of the segment files (default: that of the imported journal, or 128m)",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="the journal's name (default: that of the imported journal; with --format "
        "raft-partition-partition-1)",
    )
    add_connection_options(parser)


def _export(args: argparse.Namespace) -> int:
    """Export the records in a recording to the segment files of a journal.

    Without --format and --segment-size the files are as they were when the journal was imported.
    All records are checked first: if one cannot be written in the format, or in segments of that
    size, nothing is exported. The directory appears when it is complete. At a damaged record the
    export ends; the records before it are exported, and the exit code is 3.
    """
    from aerotape.tools._journal.exporter import plan

    _check_new(args.directory)
    with _source(args) as source:
        length = source.end - source.descriptor.start_position
        with Progress(length >> 20, f"checking recording {args.recording_id}", unit="MiB") as bar:
            export = plan(
                lambda: source.messages(bar),
                source.descriptor,
                name=args.name,
                format_name=args.format,
                segment_size=args.segment_size,
            )
        with (
            Progress(length >> 20, f"exporting recording {args.recording_id}", unit="MiB") as bar,
            _new_directory(args.directory) as folder,
        ):
            records, damage = export(folder, source.messages(bar))
    row = ExportedJournal(
        recording_id=args.recording_id,
        directory=args.directory,
        records=records,
        damage=None if damage is None else str(damage),
    )
    emit(row, args)
    if damage is not None:
        note(f"the records before the damage were exported: {damage}")
        return EXIT_DATA_SUSPECT
    return EXIT_OK


# ---- the recording -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """A recording up to a position, whose messages can be read repeatedly."""

    descriptor: RecordingDescriptor
    end: int
    read: Callable[[], AbstractContextManager[Iterable[Message]]]

    def messages(self, bar: Progress) -> Generator[Message, None, None]:
        """Iterate the messages from the first one on."""
        if self.end == self.descriptor.start_position:
            return
        with self.read() as messages:
            for message in messages:
                yield message
                bar.update(message.end_position - self.descriptor.start_position >> 20)


@contextmanager
def _source(args: argparse.Namespace) -> Iterator[_Source]:
    """Open the recording."""
    recording_id = args.recording_id
    if args.archive_dir is not None:
        from aerotape.replay.offline.directory import open_directory

        recording = open_directory(args.archive_dir).recording(recording_id)
        end = recording.recorded_position
        yield _Source(
            recording.descriptor, end, lambda: nullcontext(recording.messages(to_position=end))
        )
        return
    with connect(args) as client:
        descriptor = client.list_recording(recording_id)
        if descriptor is None:
            raise UnknownRecordingError(f"unknown recording id: {recording_id}", recording_id)
        start = descriptor.start_position
        end = client.max_recorded_position(recording_id)
        yield _Source(
            descriptor,
            end,
            lambda: client.replay(recording_id, start, end - start, follow=False),
        )


# ---- the directory ------------------------------------------------------------------------------


@contextmanager
def _new_directory(directory: Path) -> Iterator[Path]:
    """Create a directory with what is written into the folder that is yielded, in one step.

    Raises:
        StorageError: the directory is not empty, or cannot be created.
    """
    from aerotape.catalog.durability import force_names, make_directory

    folder = _check_new(directory)
    try:
        make_directory(folder)
        try:
            yield folder
            force_names(folder)
            folder.rename(directory.absolute())
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        force_names(folder.parent)
    except OSError as error:
        raise StorageError(
            f"cannot write {error.filename or directory}: {error.strerror}",
            error.filename or directory,
        ) from error


def _check_new(directory: Path) -> Path:
    """Check that the directory can be created, and return the folder to write into first."""
    folder = directory.absolute().with_name(f"{directory.absolute().name}{_INCOMPLETE}")
    try:
        if os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir())):
            raise StorageError(f"{directory} exists and is not an empty directory", directory)
    except OSError as error:
        raise StorageError(f"cannot read {directory}: {error.strerror}", directory) from error
    if os.path.lexists(folder):
        raise StorageError(
            f"{folder} is left from an export that did not complete: remove it", folder
        )
    return folder
