"""Offline compaction of a catalog: recordings that are not valid are removed with their files.

A segment file stays if its first frame belongs to another recording or position than its name says.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import DESCRIPTOR_HEADER_LENGTH, RecordingState
from aerotape.catalog.maintenance.orphans import delete_files, index_owned_files, why_not_its
from aerotape.catalog.recovery.quarantine import clear_marks
from aerotape.catalog.time_index_upkeep import remove_indexes


@dataclass(frozen=True, slots=True)
class Compaction:
    """The outcome of a compaction, or its plan.

    Attributes:
        recording_ids: the recordings that are no longer valid, in the order of the catalog.
        entry_bytes: length of their entries.
        paths: their segment files.
        kept: files that are named for them and hold other frames, and which.
    """

    recording_ids: list[int]
    entry_bytes: int
    paths: list[Path]
    kept: list[tuple[Path, str]]


def plan_compaction(catalog: Catalog, archive_dir: Path) -> Compaction:
    """Plan a compaction.

    Raises:
        CatalogError: an entry is damaged, so that it is not known which can be removed.
        StorageError: the directory cannot be read.
    """
    catalog.check_readable()
    index = index_owned_files(archive_dir)
    gone = [entry for entry in catalog.entries() if entry.state != RecordingState.VALID]
    plan = Compaction(
        [entry.recording_id for entry in gone],
        sum(DESCRIPTOR_HEADER_LENGTH + entry.length for entry in gone),
        [],
        [],
    )
    for entry in gone:
        for file in index.get(entry.recording_id, []):
            if reason := why_not_its(file, entry.descriptor):
                plan.kept.append((file.path, reason))
            else:
                plan.paths.append(file.path)
    return plan


def compact(catalog: Catalog, archive_dir: Path) -> Compaction:
    """Remove recordings that are no longer valid from the catalog and delete their files.

    The files first: after a crash in between, another compaction finds the rest by the entries.

    Raises:
        CatalogError: an entry is damaged, or the catalog cannot be written.
        StorageError: the directory cannot be read, or a file cannot be deleted.
    """
    plan = plan_compaction(catalog, archive_dir)
    delete_files(plan.paths)
    for recording_id in plan.recording_ids:
        clear_marks(archive_dir, recording_id)
        remove_indexes(archive_dir, recording_id)
    catalog.compact()
    return plan
