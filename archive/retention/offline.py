"""Execution of a plan on a directory that no archive is using.

As in an archive, the catalog is changed before files are deleted, so that a crash leaves a sound
directory: files before a recording's start are detached, those of a purged recording are deleted
at the next start of an archive.
"""

from __future__ import annotations

from pathlib import Path

from aerotape.archive.retention.plan import Removal
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.maintenance.orphans import delete_files
from aerotape.catalog.recovery.quarantine import clear_marks
from aerotape.catalog.segment.migrate import base_positions
from aerotape.catalog.segment.placement import split_by_place
from aerotape.catalog.segment_files import list_files_to_delete, segment_file_name
from aerotape.catalog.time_index_upkeep import cut_before, remove_indexes
from aerotape.errors import StorageError


def carry_out(catalog: Catalog, archive_dir: Path, removal: Removal) -> None:
    """Execute a removal with a catalog that is open for writing.

    Raises:
        CatalogError: the catalog cannot be changed; no file is deleted.
        StorageError: a file cannot be deleted, or is left because it has frames of another place.
    """
    recording_id, descriptor = removal.recording_id, removal.descriptor
    if removal.new_start_position is None:
        catalog.change_state(recording_id, RecordingState.DELETED)
        files = list_files_to_delete(archive_dir, recording_id)
        own, left = split_by_place(descriptor, files[::-1])
        delete_files(own)
        clear_marks(archive_dir, recording_id)
        remove_indexes(archive_dir, recording_id)
        if left:
            raise StorageError("; ".join(left), archive_dir)
        return
    bases = base_positions(descriptor, descriptor.start_position, removal.new_start_position)
    catalog.set_start_position(recording_id, removal.new_start_position)
    delete_files(archive_dir / segment_file_name(recording_id, base) for base in bases)
    cut_before(archive_dir, recording_id, removal.new_start_position)
