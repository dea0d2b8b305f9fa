"""Comparison of two archive directories, recording by recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aerotape.catalog.descriptor import describe_problem, segment_base
from aerotape.catalog.directory import StoredDirectory, StoredRecording
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import AerotapeError, StorageError, UnknownRecordingError
from aerotape.frame_header import (
    FRAME_ALIGNMENT,
    HEADER_LENGTH,
    SESSION_ID_OFFSET,
    FrameHeader,
    is_frame_at,
)

_CHUNK_LENGTH = 1 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of one recording.

    Attributes:
        recording_id: the recording.
        only_in: 1 or 2 when one of the directories has none of this id; else 0.
        fields: name of a field of the descriptor, to both its values. Of a recording without a stop
            position there is `recorded_position` too.
        position: the first position whose byte is another one; -1 when all that both have are
            the same.
        detail: which file and offset that is, or why bytes could not be compared; "".
        compared_bytes: how many were compared.
    """

    recording_id: int
    only_in: int = 0
    fields: dict[str, tuple[Any, Any]] = dataclasses.field(default_factory=dict)
    position: int = -1
    detail: str = ""
    compared_bytes: int = 0

    @property
    def same(self) -> bool:
        """Whether the recording is the same in both."""
        return not (self.only_in or self.fields or self.detail)


def compare(
    first: StoredDirectory[Any],
    second: StoredDirectory[Any],
    recording_id: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Difference]:
    """Compare the recordings of two directories, whatever their states but those deleted.

    Args:
        first: one directory.
        second: the other one.
        recording_id: only this one.
        progress: called with the bytes that have been compared of a recording.

    Raises:
        CatalogError: a catalog cannot be read.
        UnknownRecordingError: none of the directories has the recording asked for.
    """
    recordings = [_recordings(directory) for directory in (first, second)]
    if recording_id is not None and not any(recording_id in each for each in recordings):
        raise UnknownRecordingError(
            f"no recording with id {recording_id} in {first.path} or {second.path}", recording_id
        )
    for each in sorted({*recordings[0], *recordings[1]}):
        if recording_id not in (None, each):
            continue
        ours, theirs = recordings[0].get(each), recordings[1].get(each)
        if ours is None or theirs is None:
            yield Difference(each, 1 if theirs is None else 2)
        else:
            yield _compare(ours, theirs, progress)


def _recordings(directory: StoredDirectory[Any]) -> dict[int, StoredRecording]:
    return {
        entry.recording_id: StoredRecording(directory.path, entry)
        for entry in directory.entries()
        if entry.state != RecordingState.DELETED and entry.recording_id >= 0
    }


def _compare(
    ours: StoredRecording, theirs: StoredRecording, progress: Callable[[int], None]
) -> Difference:
    fields = {
        name: (value, other) for name, value, other in _fields(ours, theirs) if value != other
    }
    damage = ours.damage or theirs.damage
    problem = damage or describe_problem(ours.descriptor) or describe_problem(theirs.descriptor)
    if problem:
        return Difference(ours.recording_id, 0, fields, -1, f"not compared: {problem}")
    try:
        begin = max(ours.start_position, theirs.start_position)
        end = min(ours.recorded_position, theirs.recorded_position)
        if ours.descriptor.is_active or theirs.descriptor.is_active:
            ends = ours.recorded_position, theirs.recorded_position
            if ends[0] != ends[1]:
                fields["recorded_position"] = ends
        position = _first_difference(ours, theirs, begin, end, progress)
    except (AerotapeError, OSError) as error:
        return Difference(ours.recording_id, 0, fields, -1, f"not compared: {error}")
    compared = max(end - begin, 0)
    if position < 0:
        return Difference(ours.recording_id, 0, fields, compared_bytes=compared)
    places = [_place(recording, position) for recording in (ours, theirs)]
    detail = " and ".join(f"{path}, offset {offset}" for path, offset in places)
    if all(_is_session_id(recording, position) for recording in (ours, theirs)):
        detail += (
            "; that is the session id of a frame, which holds the frame's checksum where the"
            " archive records with one"
        )
    return Difference(ours.recording_id, 0, fields, position, detail, position - begin)


def _fields(ours: StoredRecording, theirs: StoredRecording) -> Iterator[tuple[str, Any, Any]]:
    yield "state", ours.entry.state_name, theirs.entry.state_name
    for field in dataclasses.fields(ours.descriptor):
        name = field.name
        yield name, getattr(ours.descriptor, name), getattr(theirs.descriptor, name)


def _place(recording: StoredRecording, position: int) -> tuple[Path, int]:
    descriptor = recording.descriptor
    base = segment_base(descriptor, position)
    path = recording.archive_dir / segment_file_name(recording.recording_id, base)
    return path, position - base


def _is_session_id(recording: StoredRecording, position: int) -> bool:
    """Whether the byte at a position belongs to the session id of a frame."""
    begin = position - position % FRAME_ALIGNMENT
    if not 0 <= position - begin - SESSION_ID_OFFSET < 4:
        return False
    header = FrameHeader.decode(_read(recording, begin, HEADER_LENGTH))
    # The bytes of a payload hardly state the place at which they are.
    return is_frame_at(header, recording.descriptor, begin)


def _first_difference(
    ours: StoredRecording,
    theirs: StoredRecording,
    begin: int,
    end: int,
    progress: Callable[[int], None],
) -> int:
    position = begin
    while position < end:
        length = min(_CHUNK_LENGTH, end - position, _left(ours, position), _left(theirs, position))
        one, other = (_read(recording, position, length) for recording in (ours, theirs))
        if one != other:
            return position + next(i for i in range(length) if one[i] != other[i])
        position += length
        progress(position - begin)
    return -1


def _left(recording: StoredRecording, position: int) -> int:
    """Return the number of bytes from a position to the end of its segment file."""
    return recording.descriptor.segment_file_length - _place(recording, position)[1]


def _read(recording: StoredRecording, position: int, length: int) -> bytes:
    """Read bytes of one segment file (OSError, StorageError)."""
    path, offset = _place(recording, position)
    data = recording.read_segment(position - offset, offset, length)
    if len(data) < length:
        raise StorageError(f"{path} ends at offset {offset + len(data)}", path)
    return data
