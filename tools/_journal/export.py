"""`export`: export the records in a recording to the segment files of a journal."""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.channel_uri import ChannelUri
from aerotape.errors import (
    AerotapeError,
    CodecError,
    JournalError,
    StorageError,
    UnknownRecordingError,
)
from aerotape.tools._cli.arguments import add_recording_id, option
from aerotape.tools._cli.connection import add_connection_options, connect
from aerotape.tools._cli.exit_codes import EXIT_DATA_SUSPECT, EXIT_OK
from aerotape.tools._cli.group import Commands, add_command
from aerotape.tools._cli.output import Progress, emit, note
from aerotape.units import parse_size

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.codecs.raft.origin import Origin
    from aerotape.message import Message
    from aerotape.replay.offline.reader import Message as StoredMessage

    RecordedMessage = StoredMessage | Message

_FORMATS: Final = ("1.0", "8.2", "8.3")
_INCOMPLETE: Final = ".incomplete"


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
    The directory appears when it is complete. At a damaged record the export ends; the records
    before it are exported, and the exit code is 3.
    """
    row: dict[str, Any] = {"recording_id": args.recording_id, "directory": args.directory}
    with _source(args) as (descriptor, end, messages):
        length = end - descriptor.start_position
        label = f"exporting recording {args.recording_id}"
        with (
            Progress(length >> 20, label, unit="MiB") as bar,
            _new_directory(args.directory) as folder,
        ):
            damage = _write(args, descriptor, folder, _counted(messages, row, bar, descriptor))
    row["damage"] = None if damage is None else str(damage)
    emit(row, args)
    if damage is not None:
        note(f"the records before the damage were exported: {damage}")
        return EXIT_DATA_SUSPECT
    return EXIT_OK


# ---- the recording -------------------------------------------------------------------------------


@contextmanager
def _source(
    args: argparse.Namespace,
) -> Iterator[tuple[RecordingDescriptor, int, Iterable[RecordedMessage]]]:
    """Open the recording: its descriptor, its end and its messages."""
    recording_id = args.recording_id
    if args.archive_dir is not None:
        from aerotape.replay.offline.directory import open_directory

        recording = open_directory(args.archive_dir).recording(recording_id)
        yield recording.descriptor, recording.recorded_position, recording.messages()
        return
    with connect(args) as client:
        descriptor = client.list_recording(recording_id)
        if descriptor is None:
            raise UnknownRecordingError(f"unknown recording id: {recording_id}", recording_id)
        end = client.max_recorded_position(recording_id)
        with client.replay(recording_id, follow=False) as replay:
            yield descriptor, end, replay


def _counted(
    messages: Iterable[RecordedMessage],
    row: dict[str, Any],
    bar: Progress,
    descriptor: RecordingDescriptor,
) -> Iterator[RecordedMessage]:
    """Count the messages that were written: one when the next is requested."""
    row["records"] = 0
    for message in messages:
        yield message
        row["records"] += 1
        bar.update(message.end_position - descriptor.start_position >> 20)


# ---- the journal ---------------------------------------------------------------------------------


def _write(
    args: argparse.Namespace,
    descriptor: RecordingDescriptor,
    folder: Path,
    messages: Iterator[RecordedMessage],
) -> AerotapeError | None:
    """Write the journal; return why records at the end were not written."""
    from aerotape.codecs.raft.origin import Origin
    from aerotape.codecs.raft_journal.writer import DEFAULT_NAME

    first = next(messages, None)
    if first is None:
        raise AerotapeError(f"recording {args.recording_id} has no records")
    origin = Origin.decode(first.reserved_value)
    messages = itertools.chain([first], messages)
    name = args.name
    if name is None and args.format is None and origin is not None:
        name = ChannelUri.parse(descriptor.original_channel).get("alias")
    if name is None:
        name = DEFAULT_NAME
    is_same = args.segment_size is None and args.format in (None, origin and origin.format.name)
    if origin is not None and is_same:
        return _restore(folder, name, messages)
    return _convert(args, folder, name, origin, messages)


def _restore(folder: Path, name: str, messages: Iterator[RecordedMessage]) -> AerotapeError | None:
    from aerotape.codecs.raft.origin import Origin
    from aerotape.tools._journal.segments import RestoredSegments

    damage: AerotapeError | None = None
    with RestoredSegments(folder, name) as segments:
        for message in messages:
            origin = Origin.decode(message.reserved_value)
            try:
                if origin is None:
                    raise JournalError("the message was not imported from a journal")
                segments.append(message.payload, origin)
            except JournalError as error:
                damage = _at(message, error)
                break
        segments.finish()
    return damage


def _convert(
    args: argparse.Namespace,
    folder: Path,
    name: str,
    origin: Origin | None,
    messages: Iterator[RecordedMessage],
) -> AerotapeError | None:
    """Write new segments, of another format or length."""
    from aerotape.codecs.raft.record import decode_record
    from aerotape.codecs.raft_journal.writer import DEFAULT_SEGMENT_SIZE, JournalWriter

    first = next(messages)
    try:
        decoded = decode_record(first.payload)
        if decoded is None:
            raise JournalError("the message is not a record of a journal: its frame is 0")
    except JournalError as error:
        raise _at(first, error) from error
    size = args.segment_size or (origin.segment_size if origin else DEFAULT_SEGMENT_SIZE)
    with JournalWriter(
        folder,
        name=name,
        format=args.format or (origin.format if origin else "8.3"),
        segment_size=size,
        first_index=decoded.index,
        first_id=origin.segment_id if origin else 1,
    ) as writer:
        for message in itertools.chain([first], messages):
            try:
                writer.append_bytes(message.payload)
            except (JournalError, CodecError) as error:
                return _at(message, error)
    return None


def _at(message: RecordedMessage, error: AerotapeError) -> AerotapeError:
    return JournalError(f"position {message.position}: {error}")


@contextmanager
def _new_directory(directory: Path) -> Iterator[Path]:
    """Create a directory with what is written into the folder that is yielded, in one step.

    Raises:
        StorageError: the directory is not empty, or cannot be created.
    """
    from aerotape.catalog.durability import force_names, make_directory

    folder = directory.absolute().with_name(f"{directory.absolute().name}{_INCOMPLETE}")
    try:
        if os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir())):
            raise StorageError(f"{directory} exists and is not an empty directory", directory)
        if os.path.lexists(folder):
            raise StorageError(
                f"{folder} is left from an export that did not complete: remove it", folder
            )
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
