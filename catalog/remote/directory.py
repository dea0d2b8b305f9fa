"""An archive directory in remote storage, read as a local one is.

No archive can run there, because it maps its files; so the directory is a copy, made once or
updated repeatedly. The catalog is fetched before the files are listed: a recording without a stop
position may have grown since, but none is shorter than its entry says. Files that are missing or
too short are reported when they are read.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import BinaryIO

from aerotape.catalog.directory import RecordingT, StoredDirectory, StoredRecording
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.location import NO_OPTIONS, StorageOptions
from aerotape.catalog.mark.layout import FILE_NAME as MARK_FILE_NAME
from aerotape.catalog.mark.layout import HEADER_LENGTH, MarkFileHeader
from aerotape.catalog.mark.mark_file import MarkFileInfo
from aerotape.catalog.recovery.stop_position import RecordingEnd, find_recording_end
from aerotape.catalog.recovery.suspect_marks import SuspectNote, marked_recording, parse_mark
from aerotape.catalog.remote.object_folder import ObjectFolder
from aerotape.catalog.remote.stop_position import find_remote_end, unnamed_file
from aerotape.catalog.scope_layout import find_imported, scope_of_archive
from aerotape.catalog.segment_files import (
    SegmentFile,
    index_segment_files,
    own_segments,
    segment_file_name,
)
from aerotape.catalog.time_index.file import time_index_name
from aerotape.errors import CatalogError, MarkFileError
from aerotape.frame_header import ChecksumName
from aerotape.qualified_id import QualifiedId
from aerotape.url_path import UrlPath


class RemoteRecording(StoredRecording):
    """One recording of a remote directory, as it was when the directory was listed."""

    def __init__(
        self,
        folder: ObjectFolder,
        entry: CatalogEntry,
        notes: list[SuspectNote],
        segments: list[SegmentFile],
        names: Collection[str],
    ) -> None:
        """Describe a recording.

        Args:
            folder: the directory.
            entry: of the catalog.
            notes: why the recording is marked as suspect.
            segments: its segment files, ascending.
            names: of all files in the directory.
        """
        super().__init__(folder.path, entry)
        self._notes = notes
        self._folder = folder
        self._segments = segments
        self._names = names

    @property
    def suspect_notes(self) -> list[SuspectNote]:
        """The reasons for which it was marked as suspect when the directory was listed."""
        return self._notes

    @property
    def storage(self) -> StorageOptions:
        """The options for the directory's storage."""
        return self._folder.options

    def _find_position(self) -> int:
        """As for a local recording; found in a few reads of the last segment file."""
        return find_remote_end(self._folder, self.descriptor, self.segment_files())

    def recorded_after(self, position: int) -> int:
        """Return `recorded_position`, but never less than `position` without a stop position."""
        recorded = self.recorded_position
        return max(recorded, position) if self.descriptor.is_active else recorded

    @property
    def is_being_written(self) -> bool:
        """False: no archive writes there."""
        return False

    def segment_files(self) -> list[SegmentFile]:
        """List the segment files as for a local recording; they cannot be opened."""
        self.check()
        return own_segments(self.descriptor, self._segments)

    def find_end(self, checksum: ChecksumName = "none") -> RecordingEnd:
        """As for a local recording; the last two segment files are fetched for it."""
        # A full segment may be followed by one without data.
        last = self.segment_files()[-2:]
        with self.local_copies(last) as copies:
            end = find_recording_end(self.descriptor, copies, checksum)
        at = [copy.path for copy in copies]
        segment = None if end.segment is None else last[at.index(end.segment.path)]
        return replace(end, segment=segment)

    def open_segment(self, base_position: int) -> BinaryIO:
        """Open the segment file that begins there (FileNotFoundError, StorageError)."""
        return self._folder.open_stream(segment_file_name(self.recording_id, base_position))

    def read_segment(self, base_position: int, offset: int, length: int) -> bytes:
        """As for a local recording, in one request, or two."""
        name = segment_file_name(self.recording_id, base_position)
        with self._folder.open(name) as file:
            return file.read_at(offset, length)

    def time_index_parts(self) -> Iterator[bytes]:
        """Fetch the file of its time index as one part, none when there is none (StorageError)."""
        if (data := self._read(time_index_name(self.recording_id))) is not None:
            yield data

    def _read(self, name: str) -> bytes | None:
        """Fetch a small file, None when there is none; if it was not listed, without a request."""
        try:
            return self._folder.read(name) if name in self._names else None
        except FileNotFoundError:
            return None

    @contextmanager
    def local_copies(self, segments: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
        """Fetch segment files whole into unnamed files (StorageError)."""
        with ExitStack() as stack:
            copies = []
            for segment in segments:
                number, path = stack.enter_context(unnamed_file(0))
                self._folder.copy_to(number, segment.path.name)
                copies.append(SegmentFile(path, segment.base_position))
            yield copies


class RemoteDirectory(StoredDirectory[RecordingT]):
    """A remote directory. Each call lists it again; recordings of one call share a listing."""

    def __init__(self, path: UrlPath, storage: StorageOptions = NO_OPTIONS) -> None:
        """Prepare to read it; nothing is asked for yet (ConfigurationError)."""
        super().__init__(path)
        self._folder = ObjectFolder(path, storage)

    def _remote_recording(
        self,
        folder: ObjectFolder,
        entry: CatalogEntry,
        notes: list[SuspectNote],
        segments: list[SegmentFile],
        names: Collection[str],
    ) -> RecordingT:
        raise NotImplementedError

    def open_catalog(self) -> Catalog:
        """Fetch the catalog (CatalogError, StorageError)."""
        path = self.path / CATALOG_FILE_NAME
        try:
            content = self._folder.read(CATALOG_FILE_NAME)
        except FileNotFoundError:
            raise CatalogError(
                f"no catalog at {path}: is this an archive directory?", path
            ) from None
        return Catalog.of_bytes(path, content)

    def recordings_of(self, entries: Iterable[CatalogEntry]) -> list[RecordingT]:
        """Return the recordings of entries of the catalog (StorageError)."""
        names = self._folder.list()
        marks = self._marks(names)
        segments, _ = index_segment_files(self.path, names)
        return [
            self._remote_recording(
                self._folder,
                entry,
                marks.get(entry.recording_id, []),
                segments.get(entry.recording_id, []),
                names,
            )
            for entry in entries
        ]

    def suspect_notes(self) -> dict[int, list[SuspectNote]]:
        """Return the notes on recordings that were marked as suspect, by id (StorageError)."""
        return self._marks(self._folder.list())

    def mark_file(self) -> MarkFileInfo:
        """Raise MarkFileError: a copied mark file does not describe a running archive."""
        raise MarkFileError(
            f"{self.path} is a copy that no archive runs in, its mark file is not read", self.path
        )

    def own_scope_id(self) -> int:
        """Return the scope of its own recordings: the archive id in the copied mark file."""
        try:
            with self._folder.open(MARK_FILE_NAME) as file:
                header = MarkFileHeader.decode(file.read_at(0, HEADER_LENGTH))
        except FileNotFoundError:
            return 0
        return 0 if header is None else scope_of_archive(header.archive_id)

    def imported_ids(self, scope_id: int | None = None) -> list[QualifiedId]:
        """Return the ids of imported recordings, as for a local directory."""
        return find_imported(lambda path: self._folder.folders(str(path)), scope_id)

    def _marks(self, names: Iterable[str]) -> dict[int, list[SuspectNote]]:
        marks = {}
        for name in names:
            recording_id = marked_recording(name)
            if recording_id is not None:
                marks[recording_id] = self._mark(name)
        return marks

    def _mark(self, name: str) -> list[SuspectNote]:
        try:
            return list(parse_mark(name, io.BytesIO(self._folder.read(name))))
        except FileNotFoundError:  # since it was listed
            return []
