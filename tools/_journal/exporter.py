"""The output of `export`: the segments of the imported journal, or new ones; checked first."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.channel_uri import ChannelUri
from aerotape.codecs.raft.formats import FORMATS, LATEST, JournalFormat
from aerotape.codecs.raft.origin import Origin
from aerotape.codecs.raft.record import NO_ASQN, check_asqn, check_index, decode_record
from aerotape.codecs.raft_journal.segment import check_name
from aerotape.codecs.raft_journal.writer import (
    DEFAULT_NAME,
    DEFAULT_SEGMENT_SIZE,
    JournalWriter,
    check_fits,
    converted_record,
)
from aerotape.errors import AerotapeError, CodecError, ConfigurationError, JournalError
from aerotape.tools._journal.segments import RestoredSegments, SegmentLayout

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.message import Message

Messages = Iterator["Message"]
Export = Callable[[Path, Messages], tuple[int, AerotapeError | None]]
"""Writes the messages into a folder. Returns the number of records that were written, and why the
one after them was not."""


def plan(
    messages: Callable[[], Generator[Message, None, None]],
    recording: RecordingDescriptor,
    *,
    name: str | None,
    format_name: str | None,
    segment_size: int | None,
) -> Export:
    """Choose how to export a recording, and check that each record up to the first damage can be.

    Args:
        messages: iterates the recording from its first message on; is called repeatedly.
        recording: its descriptor.
        name: the journal's name.
        format_name: the journal's format.
        segment_size: length of the segment files, bytes.

    Raises:
        ConfigurationError: a record cannot be written in the format, or in segments of the size;
            or the name cannot be that of files.
        JournalError: the first message is not a record of a journal.
        AerotapeError: there are no messages.
    """
    with closing(messages()) as found:
        first = next(found, None)
    if first is None:
        raise AerotapeError(f"recording {recording.recording_id} has no records")
    try:
        decoded, _ = converted_record(first.payload, None)
    except JournalError as error:
        raise _at(first, error) from error
    origin = Origin.decode(first.reserved_value)
    if name is None and format_name is None and origin is not None:
        name = ChannelUri.parse(recording.original_channel).get("alias")
    name = check_name(DEFAULT_NAME if name is None else name)
    journal_format = origin.format if origin else LATEST
    if format_name is not None:
        journal_format = FORMATS[format_name]
    if segment_size is None and origin is not None:
        try:
            with closing(messages()) as found:
                _check_restore(found, None if format_name is None else journal_format)
        except (ConfigurationError, CodecError):
            if format_name is None:
                raise
        else:
            return partial(_restore, name)
    size = segment_size or (origin.segment_size if origin else DEFAULT_SEGMENT_SIZE)
    with closing(messages()) as found:
        _check_convert(found, journal_format, size)
    begin = (decoded.index, origin.segment_id if origin else 1)
    return partial(_convert, name, journal_format, size, begin)


def _check_restore(messages: Messages, journal_format: JournalFormat | None) -> None:
    """Check that each record has a place in the imported segments, and is of the format if given.

    Raises:
        ConfigurationError, CodecError: one has not, or is not.
    """
    layout = SegmentLayout()
    next_index: int | None = None
    for message in messages:
        origin = Origin.decode(message.reserved_value)
        try:
            decoded, converted = converted_record(message.payload, journal_format)
            check_index(decoded.index, next_index or decoded.index)
        except JournalError:  # the export ends here
            return
        layout.place(decoded.index, len(message.payload), origin)
        is_of_format = origin is not None and journal_format in (None, origin.format)
        if not is_of_format or converted != message.payload:
            raise ConfigurationError(f"record {decoded.index} has another format")
        next_index = decoded.index + 1


def _check_convert(messages: Messages, journal_format: JournalFormat, segment_size: int) -> None:
    """Check that each record can be written in a format, and in segments of a length."""
    next_index: int | None = None
    last_asqn = NO_ASQN
    for message in messages:
        try:
            decoded, converted = converted_record(message.payload, journal_format)
            check_index(decoded.index, next_index or decoded.index)
            last_asqn = check_asqn(decoded.asqn, last_asqn, decoded.index)
        except JournalError:  # the export ends here
            return
        except CodecError as error:
            found = decode_record(message.payload)
            index = -1 if found is None else found.index
            raise ConfigurationError(
                f"record {index} at position {message.position} cannot be written in format "
                f"{journal_format.name}: {error}",
                "--format",
            ) from None
        check_fits(decoded.index, len(converted), segment_size, journal_format)
        next_index = decoded.index + 1


def _restore(name: str, folder: Path, messages: Messages) -> tuple[int, AerotapeError | None]:
    """Write the segments as they were imported."""
    records = 0
    damage: AerotapeError | None = None
    with RestoredSegments(folder, name) as segments:
        for message in messages:
            try:
                segments.append(message.payload, Origin.decode(message.reserved_value))
            except JournalError as error:
                damage = _at(message, error)
                break
            records += 1
        segments.finish()
    return records, damage


def _convert(
    name: str,
    journal_format: JournalFormat,
    segment_size: int,
    begin: tuple[int, int],
    folder: Path,
    messages: Messages,
) -> tuple[int, AerotapeError | None]:
    """Write new segments, of another format or length, from an index and a segment id on."""
    first_index, first_id = begin
    records = 0
    with JournalWriter(
        folder,
        name=name,
        format=journal_format,
        segment_size=segment_size,
        first_index=first_index,
        first_id=first_id,
    ) as writer:
        for message in messages:
            try:
                writer.append_bytes(message.payload)
            except JournalError as error:
                return records, _at(message, error)
            records += 1
    return records, None


def _at(message: Message, error: AerotapeError) -> AerotapeError:
    return JournalError(f"position {message.position}: {error}")
