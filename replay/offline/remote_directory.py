"""Archive directories in remote storage as users open them: `directory` on `catalog.remote`."""

from __future__ import annotations

from collections.abc import Collection

from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.location import StorageOptions
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.remote.directory import RemoteDirectory, RemoteRecording
from aerotape.catalog.remote.object_folder import ObjectFolder
from aerotape.catalog.segment_files import SegmentFile
from aerotape.replay.offline.directory import ArchiveDirectory, Recording


class _RemoteRecording(RemoteRecording, Recording):
    """A recording in remote storage, with what reads its messages."""


class RemoteArchiveDirectory(RemoteDirectory[Recording], ArchiveDirectory):
    """An archive directory in remote storage."""

    def _remote_recording(
        self,
        folder: ObjectFolder,
        entry: CatalogEntry,
        notes: list[SuspectNote],
        segments: list[SegmentFile],
        names: Collection[str],
    ) -> Recording:
        return _RemoteRecording(folder, entry, notes, segments, names)

    @property
    def _storage(self) -> StorageOptions:
        return self._folder.options
