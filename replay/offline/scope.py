"""The recordings of a store by scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.catalog.scope_layout import imported_directory, unsigned
from aerotape.errors import CatalogError, UnknownRecordingError
from aerotape.qualified_id import QualifiedId

if TYPE_CHECKING:
    from aerotape.catalog.location import StorageOptions
    from aerotape.replay.offline.directory import ArchiveDirectory, Recording


class ArchiveScope:
    """The recordings of one scope: those of the directory's archive, or imported ones.

    Attributes:
        directory: the store.
        scope_id: the scope, unsigned.
        is_own: whether these are the recordings of the directory's archive.
    """

    def __init__(self, directory: ArchiveDirectory, scope_id: int, storage: StorageOptions) -> None:
        own = directory.own_scope_id()
        scope_id = unsigned(scope_id)
        self.directory = directory
        self.is_own = scope_id in (0, own)
        self.scope_id = own if self.is_own else scope_id
        self._storage = storage

    def recordings(self) -> list[Recording]:
        """Return the valid recordings, by ascending id; none if the scope is unknown.

        Raises:
            CatalogError: the catalog of the archive or of an imported recording cannot be read.
            StorageError: a directory cannot be read.
        """
        if self.is_own:
            return self.directory.recordings()
        return [self._imported(each) for each in self.directory.imported_ids(self.scope_id)]

    def recording(self, recording_id: int) -> Recording:
        """Return one valid recording.

        Raises:
            UnknownRecordingError: there is none with this id.
            CatalogError: its catalog cannot be read.
        """
        if self.is_own:
            return self.directory.recording(recording_id)
        qualified_id = QualifiedId(self.scope_id, recording_id)
        if qualified_id not in self.directory.imported_ids(self.scope_id):
            raise UnknownRecordingError(
                f"no recording {recording_id} of scope {self.scope_id} ({qualified_id}) in "
                f"{self.directory.path}: import it with `aerotape ledger import-archive`",
                recording_id,
            )
        return self._imported(qualified_id)

    def _imported(self, qualified_id: QualifiedId) -> Recording:
        from aerotape.replay.offline.directory import directory_at

        path = imported_directory(self.directory.path, qualified_id)
        try:
            recording = directory_at(path, self._storage).recording(qualified_id.ledger_id)
        except UnknownRecordingError as error:
            raise CatalogError(
                f"{path} does not hold recording {qualified_id.ledger_id}: remove the directory, "
                "and import the recording again",
                path,
            ) from error
        recording.imported_from = qualified_id.scope_id
        return recording
