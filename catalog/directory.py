"""View of an archive directory: its recordings, their segment files and ends.

Only reads, needs no archive and does not affect a running one. `aerotape.replay.offline.directory`
adds the reading of messages.
"""

from __future__ import annotations

import operator
import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

from aerotape.catalog.descriptor import max_position, segment_base
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry, entry_damage, unknown_recording
from aerotape.catalog.layout import CATALOG_FILE_NAME, RecordingState
from aerotape.catalog.location import NO_OPTIONS, StorageOptions
from aerotape.catalog.mark.mark_file import MarkFile, MarkFileInfo
from aerotape.catalog.recovery import suspect_marks
from aerotape.catalog.recovery.stop_position import (
    PAGE_LENGTH,
    SECTOR_LENGTH,
    RecordingEnd,
    find_recording_end,
)
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.scope_layout import imported_ids, scope_of_archive
from aerotape.catalog.segment_files import (
    SegmentFile,
    list_segment_files,
    open_regular_file,
    own_segments,
    segment_file_name,
)
from aerotape.catalog.time_index.file import read_parts, time_index_path
from aerotape.catalog.time_index.index import TimeIndex
from aerotape.errors import AerotapeError, CatalogError, MarkFileError, StorageErrors
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId
from aerotape.url_path import UrlPath, map_at_once

if TYPE_CHECKING:
    from aerotape.frame_header import ChecksumName

# A file that has not been written to for so long is not in the middle of a write.
_SETTLED_AFTER_NS = 1_000_000_000
_SETTLING_ROUND_S = 0.05
_SETTLING_ROUNDS = 25


class StoredRecording:
    """A recording of a directory as it was when the catalog was read: files, end, notes.

    `descriptor` is a snapshot; `recorded_position` and `suspect_notes` are determined at first use
    and then stay, so that a job sees one end throughout. Get the recording again to see a live one
    grow.

    Attributes:
        archive_dir: the directory.
        entry: its entry in the catalog file.
        recording_id: its id; -1 when damage to the catalog leaves open which it is.
        descriptor: its descriptor.
        start_position: position of the first byte.
        imported_from: the scope of an imported recording, unsigned; None for a directory's own.
    """

    imported_from: int | None = None

    def __init__(self, archive_dir: Path, entry: CatalogEntry) -> None:
        self.archive_dir = archive_dir
        self.entry = entry
        self.recording_id = entry.recording_id
        self.descriptor = entry.descriptor
        self.start_position = entry.descriptor.start_position

    @cached_property
    def suspect_notes(self) -> list[SuspectNote]:
        """The reasons for which it was marked as suspect; empty when it was not."""
        return suspect_marks.read_notes(self.archive_dir, self.recording_id)

    @property
    def is_suspect(self) -> bool:
        """Whether it is marked as suspect, and the damage was not accepted."""
        return suspect_marks.is_suspect(self.suspect_notes)

    @property
    def storage(self) -> StorageOptions:
        """Options of the remote storage that the directory is in."""
        return NO_OPTIONS

    @property
    def key(self) -> int:
        """Its id among all recordings of a store: that of its own scope, or one above 2^64."""
        return recording_key(self.imported_from, self.recording_id)

    @property
    def damage(self) -> str:
        """The damage of its entry in the catalog, which prevents reading; "" without damage."""
        return entry_damage(self.entry)

    def check(self) -> None:
        """Raise CatalogError when the recording is damaged."""
        if self.damage:
            name = f"recording {self.recording_id}" if self.recording_id >= 0 else "a recording"
            raise CatalogError(
                f"{name} has a damaged descriptor at offset {self.entry.offset} of the catalog: "
                f"{self.damage}",
                self.archive_dir / CATALOG_FILE_NAME,
            )

    @cached_property
    def recorded_position(self) -> int:
        """The stop position; for a recording without one, the end of its last whole frame.

        Raises:
            CatalogError: the descriptor is damaged.
            StorageError: a segment file cannot be read.
        """
        self.check()
        descriptor = self.descriptor
        return self._find_position() if descriptor.is_active else descriptor.stop_position

    def _find_position(self) -> int:
        """Return the end of the last whole frame (StorageError)."""
        for left in reversed(range(_SETTLING_ROUNDS)):
            segments = self.segment_files()
            # A writer may be in the middle of a write: then only what is seen in full, sector by
            # sector, counts, until the file has been left alone for long enough.
            settled = not left or not segments or _is_settled(segments)
            unit = PAGE_LENGTH if settled else SECTOR_LENGTH
            end = find_recording_end(self.descriptor, segments, write_unit_bytes=unit)
            if settled or not end.torn:
                break
            time.sleep(_SETTLING_ROUND_S)
        return end.position

    @cached_property
    def time_index(self) -> TimeIndex:
        """The known times of its positions (errors as `recorded_position`)."""
        return TimeIndex.of(self)

    def recorded_after(self, position: int) -> int:
        """Return its current end, as `recorded_position` does, but quickly and as of now.

        For readers that follow a live recording: only data after `position` is read, and a frame
        that is being written is left for the next call.

        Args:
            position: begin of a frame, or the end of the last one so far; the result is never
                less while the recording has no stop position.

        Raises:
            CatalogError: the descriptor is damaged.
            StorageError: a segment file cannot be read.
        """
        self.check()
        descriptor = self.descriptor
        if not descriptor.is_active:
            return descriptor.stop_position
        segments = self._last_segments(position)
        if not segments:
            return position
        unit = PAGE_LENGTH if _is_settled(segments) else SECTOR_LENGTH
        end = find_recording_end(
            descriptor, segments, write_unit_bytes=unit, from_position=position
        )
        return max(end.position, position)

    def _last_segments(self, position: int) -> list[SegmentFile]:
        """Return the last segment files, two at most, that follow `position` without a gap.

        Checking names is faster than listing a directory of very many files.
        """
        descriptor = self.descriptor
        length, first = descriptor.segment_file_length, segment_base(descriptor, position)

        def segment(index: int) -> SegmentFile:
            base = first + index * length
            return SegmentFile(self.archive_dir / segment_file_name(self.recording_id, base), base)

        possible = range((max_position(descriptor) - first) // length)
        count = bisect_left(possible, True, key=lambda index: not segment(index).path.exists())
        return [segment(index) for index in range(max(count - 2, 0), count)]

    @property
    def is_being_written(self) -> bool:
        """Whether it has no stop position and an archive is running in the directory."""
        if not self.descriptor.is_active:
            return False
        try:
            return MarkFile.read(self.archive_dir).is_active()
        except MarkFileError:
            return False

    def segment_files(self) -> list[SegmentFile]:
        """List the segment files there are of this recording, ascending.

        Those that were detached (before the start position) or that cannot be this recording's
        are left out. CatalogError when the descriptor is damaged.
        """
        self.check()
        return own_segments(
            self.descriptor, list_segment_files(self.archive_dir, self.recording_id)
        )

    def find_end(self, checksum: ChecksumName = "none") -> RecordingEnd:
        """Find the end of a recording without a stop position, and the data after it.

        Raises:
            CatalogError: the descriptor is damaged.
            StorageError: a segment file cannot be read.
        """
        return find_recording_end(self.descriptor, self.segment_files(), checksum)

    def open_segment(self, base_position: int) -> BinaryIO:
        """Open the segment file that begins there (FileNotFoundError, StorageError)."""
        path = self.archive_dir / segment_file_name(self.recording_id, base_position)
        return open_regular_file(path)

    def read_segment(self, base_position: int, offset: int, length: int) -> bytes:
        """Read a little of the segment file that begins there; less at its end.

        Raises:
            FileNotFoundError: there is no such file.
            StorageError: it cannot be read.
        """
        with self.open_segment(base_position) as segment:
            path = self.archive_dir / segment_file_name(self.recording_id, base_position)
            with StorageErrors(f"cannot read {path}", path):
                return os.pread(segment.fileno(), length, offset)

    def time_index_parts(self) -> Iterator[bytes]:
        """Read the file of its time index in parts, none when there is none (StorageError)."""
        return read_parts(time_index_path(self.archive_dir, self.recording_id))

    @contextmanager
    def local_copies(self, segments: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
        """Yield segment files that native code can open: these, or temporary copies."""
        yield list(segments)

    @property
    def start_time(self) -> datetime | None:
        """The time at which recording started, in UTC, as in the descriptor."""
        return self.descriptor.start_time

    @property
    def stop_time(self) -> datetime | None:
        """The time at which it stopped, in UTC; None while it is active."""
        return self.descriptor.stop_time

    def __repr__(self) -> str:
        # What the catalog has, without a look at the files.
        of = self.descriptor
        end = "(live)" if of.is_active else str(of.stop_position)
        return (
            f"<{type(self).__name__} {self.recording_id} {of.original_channel!r} "
            f"stream_id={of.stream_id} session_id={of.session_id} "
            f"positions={of.start_position}..{end}>"
        )


def recording_key(imported_from: int | None, recording_id: int) -> int:
    """Return an id of a recording that no other recording of the same store has.

    Args:
        imported_from: the scope of an imported recording, unsigned and not 0; None for one of the
            store's archive.
        recording_id: its id in its scope.
    """
    return recording_id if imported_from is None else imported_from << 64 | recording_id


def split_key(key: int) -> tuple[int | None, int]:
    """Return the arguments of `recording_key` from its result."""
    scope_id = key >> 64
    return (scope_id, key & MAX_UNSIGNED) if scope_id > 0 else (None, key)


def key_name(key: int) -> str:
    """Return the name of a recording in messages: its id, and an imported one's scope."""
    scope_id, recording_id = split_key(key)
    return str(recording_id) if scope_id is None else f"{recording_id} of scope {scope_id}"


def find_ends(recordings: Iterable[StoredRecording]) -> None:
    """Find the ends of recordings in remote storage that have no stop position, several at once.

    Each takes a few reads one after the other, which would add up. An error is raised when that
    recording's `recorded_position` is read. Recordings of a local directory are skipped.
    """

    def find(recording: StoredRecording) -> None:
        with suppress(AerotapeError):
            # Not through the property, which computes one value at a time before Python 3.12.
            recording.__dict__["recorded_position"] = recording._find_position()

    live = [
        recording
        for recording in recordings
        if isinstance(recording.archive_dir, UrlPath)
        and not recording.damage
        and recording.descriptor.is_active
    ]
    if len(live) > 1:
        map_at_once(find, live)


RecordingT = TypeVar("RecordingT", bound=StoredRecording)


class StoredDirectory(Generic[RecordingT]):
    """A directory that holds an archive. No file stays open: each call reads it again.

    Subclasses say which class its recordings are of.

    Attributes:
        path: the directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def _recording(self, entry: CatalogEntry) -> RecordingT:
        raise NotImplementedError

    def recordings(self) -> list[RecordingT]:
        """Return the valid recordings, by ascending id; see `damage` of each (CatalogError)."""
        return self.recordings_of(
            [entry for entry in self.entries() if entry.state == RecordingState.VALID]
        )

    def recordings_of(self, entries: Iterable[CatalogEntry]) -> list[RecordingT]:
        """Return the recordings of entries of the catalog, whatever their state (StorageError)."""
        return [self._recording(entry) for entry in entries]

    def recording(self, recording_id: int) -> RecordingT:
        """Return one valid recording.

        Raises:
            UnknownRecordingError: there is none with this id.
            CatalogError: the catalog cannot be read.
            TypeError: the id is not an integer.
        """
        try:
            recording_id = operator.index(recording_id)
        except TypeError:
            raise TypeError(f"recording_id must be an integer, not {recording_id!r}") from None
        with self.open_catalog() as catalog:
            entries = list(catalog.entries_of([recording_id]))
        valid = [entry for entry in entries if entry.state == RecordingState.VALID]
        for recording in self.recordings_of(valid):
            return recording
        raise unknown_recording(recording_id, entries, self.path)

    def entries(self) -> Iterator[CatalogEntry]:
        """Iterate all entries of the catalog, those that are no longer valid too."""
        with self.open_catalog() as catalog:
            yield from catalog.entries()

    def open_catalog(self) -> Catalog:
        """Open the catalog for reading (CatalogError)."""
        return Catalog.open(self.path, read_only=True)

    def suspect_notes(self) -> dict[int, list[SuspectNote]]:
        """Return the notes on recordings that were marked as suspect, by id (StorageError)."""
        return suspect_marks.read_marks(self.path)

    def mark_file(self) -> MarkFileInfo:
        """Read the mark file (MarkFileError)."""
        return MarkFile.read(self.path)

    def own_scope_id(self) -> int:
        """Return the scope of its own recordings: the archive id in its mark file, 0 without one.

        Raises:
            StorageError: a remote directory cannot be read.
        """
        try:
            return scope_of_archive(self.mark_file().header.archive_id)
        except MarkFileError:
            return 0

    def imported_ids(self, scope_id: int | None = None) -> list[QualifiedId]:
        """Return the ids of recordings imported from other archives, ascending, unsigned.

        Args:
            scope_id: only this scope, unsigned; all if None.

        Raises:
            StorageError: a directory cannot be read.
        """
        return imported_ids(self.path, scope_id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"


def _is_settled(segments: Sequence[SegmentFile]) -> bool:
    """Whether the last of the files has not been written to for a while."""
    path = segments[-1].path
    with StorageErrors(f"cannot read {path}", path):
        return time.time_ns() - path.stat().st_mtime_ns > _SETTLED_AFTER_NS
