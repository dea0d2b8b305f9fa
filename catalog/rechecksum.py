"""Giving checksums to a directory that was recorded without, or with another one.

A frame keeps its checksum in place of the session id, a catalog entry in its header. What they are
over is not looked at: damage that a checksum would have shown is covered up by a new one.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aerotape import _native
from aerotape.catalog import layout
from aerotape.catalog.catalog import Catalog
from aerotape.catalog.entries import CatalogEntry, entry_damage
from aerotape.catalog.layout import ChecksumName, RecordingState
from aerotape.catalog.leftovers import OwnedFile, index_owned_files
from aerotape.catalog.stop_position import first_segment_base
from aerotape.catalog.verify import Problem
from aerotape.errors import UnknownRecordingError

_FRAME_ALIGNMENT: Final = 32
_HEADER_LENGTH: Final = 32
# DataHeaderFlyweight: frame length, version, flags, type; the session id is at byte 12.
_FRAME_BEGIN: Final = struct.Struct("<iBBH")
_SESSION_ID_OFFSET: Final = 12
_TYPE_DATA: Final = 1


@dataclass(frozen=True, slots=True)
class ChecksumOutcome:
    """What was done to one recording.

    Attributes:
        recording_id: the recording; -1 when damage to the catalog leaves open which it is.
        descriptor_changed: whether the checksum in the catalog was another one.
        segments: segment files gone through.
        frames: data frames in them.
        frames_changed: those that had another checksum or none.
        problems: what could not be done.
    """

    recording_id: int
    descriptor_changed: bool
    segments: int
    frames: int
    frames_changed: int
    problems: tuple[Problem, ...]


def write_checksums(
    catalog: Catalog,
    archive_dir: Path,
    recording_id: int | None = None,
    *,
    all_segments: bool = False,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> list[ChecksumOutcome]:
    """Give the catalog's checksum to descriptors and data frames, up to the first empty place.

    Args:
        catalog: open with the checksum to write; for reading suffices for a dry run.
        archive_dir: the directory with the segment files.
        recording_id: one valid recording, or None for all, also those that are not valid.
        all_segments: every segment file, not only the last one of each recording.
        dry_run: tell what would change, and change nothing.
        progress: called with the number of recordings done.

    Raises:
        UnknownRecordingError: no valid recording has this id.
        StorageError: the directory cannot be read.
        CatalogError: the catalog cannot be written.
    """
    entries = [
        entry
        for entry in catalog.entries()
        if recording_id is None
        or (entry.recording_id == recording_id and entry.state == RecordingState.VALID)
    ]
    if recording_id is not None and not entries:
        raise UnknownRecordingError(
            f"no valid recording with id {recording_id} in archive directory {archive_dir}",
            recording_id,
        )
    index = index_owned_files(archive_dir)
    outcomes = []
    for done, entry in enumerate(entries, start=1):
        files = sorted(
            (file for file in index.get(entry.recording_id, []) if _position(file) >= 0),
            key=_position,
        )
        outcomes.append(
            _write_one(catalog, entry, files if all_segments else files[-1:], dry_run=dry_run)
        )
        progress(done)
    return outcomes


def _position(file: OwnedFile) -> int:
    return -1 if file.base_position is None else file.base_position


def _write_one(
    catalog: Catalog, entry: CatalogEntry, files: list[OwnedFile], *, dry_run: bool
) -> ChecksumOutcome:
    if damage := entry_damage(entry):
        problem = Problem(f"left as it is, its descriptor is damaged: {damage}")
        return ChecksumOutcome(entry.recording_id, False, 0, 0, 0, (problem,))
    changed = entry.checksum != _native.checksum(catalog.checksum, entry.body)
    if changed and not dry_run:
        catalog.update_checksum(entry)
    descriptor = entry.descriptor
    problems = []
    frames = frames_changed = 0
    for file in files:
        is_first = file.base_position == first_segment_base(descriptor)
        begin = descriptor.start_position - first_segment_base(descriptor) if is_first else 0
        done = _SegmentRun(catalog.checksum, dry_run).run(file.path, begin)
        frames += done.frames
        frames_changed += done.changed
        if done.problem:
            position = _position(file) + done.offset
            problems.append(Problem(done.problem, position, str(file.path)))
    if not files and descriptor.stop_position != descriptor.start_position:
        problems.append(Problem("it has no segment files", descriptor.start_position))
    return ChecksumOutcome(
        entry.recording_id, changed, len(files), frames, frames_changed, tuple(problems)
    )


class _SegmentRun:
    """One run over a segment file; afterwards it says what it found.

    Attributes:
        frames: data frames seen.
        changed: those whose checksum was another one.
        offset: where the run ended, bytes in the file.
        problem: why, when that was not the end of the frames; else "".
    """

    def __init__(self, checksum: ChecksumName, dry_run: bool) -> None:
        self._checksum: ChecksumName = checksum
        self._dry_run = dry_run
        self.frames = 0
        self.changed = 0
        self.offset = 0
        self.problem = ""

    def run(self, path: Path, begin: int) -> _SegmentRun:
        """Give checksums to the frames from `begin` on."""
        self.offset = begin
        try:
            with path.open("rb" if self._dry_run else "r+b") as file:
                length = os.fstat(file.fileno()).st_size
                if begin < length:
                    access = mmap.ACCESS_READ if self._dry_run else mmap.ACCESS_WRITE
                    with mmap.mmap(file.fileno(), length, access=access) as data:
                        self._walk(data)
                        if self.changed and not self._dry_run:
                            data.flush()
        except OSError as error:
            self.problem = f"its file cannot be worked on: {error.strerror}"
        return self

    def _walk(self, data: mmap.mmap) -> None:
        offset, length = self.offset, len(data)
        while offset + _HEADER_LENGTH <= length:
            frame_length, _, _, frame_type = _FRAME_BEGIN.unpack_from(data, offset)
            if frame_length == 0:
                break
            end = offset + layout.align(frame_length, _FRAME_ALIGNMENT)
            if frame_length < _HEADER_LENGTH or (frame_type == _TYPE_DATA and end > length):
                self.problem = f"a frame of {frame_length} bytes cannot be there"
                break
            if frame_type == _TYPE_DATA:
                self.frames += 1
                value = _native.checksum(self._checksum, data[offset + _HEADER_LENGTH : end])
                place = offset + _SESSION_ID_OFFSET
                if layout.INT.unpack_from(data, place)[0] != value:
                    self.changed += 1
                    if not self._dry_run:
                        layout.INT.pack_into(data, place, value)
            offset = end
        self.offset = offset
