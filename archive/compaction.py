"""Compaction of the catalog when an archive starts.

A purge leaves its recording's entry in the catalog, and every listing passes over it. When more
than half of the entries are such, they are removed before anything else uses the catalog. Ids are
not given out again; recordings marked invalid stay, because they can be brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aerotape.archive.control.feature import Feature
from aerotape.archive.error_log import LOGGER
from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import AerotapeError


def compact_at_start(
    catalog: Catalog,
    archive_dir: Path,
    capacity_bytes: int,
    features: Sequence[type[Feature]] = (),
) -> list[int]:
    """Remove the entries of purged recordings when they are more than half of all entries.

    A recording of which a file is left stays until that file is deleted, and one that a feature
    still names until it does not. When the compaction fails the catalog stays as it was, and
    the reason is logged.

    Args:
        catalog: open for writing, and not in use yet.
        capacity_bytes: smallest length of the catalog file.
        features: of the archive.

    Returns:
        The ids of the recordings that were removed.
    """
    purged = set(catalog.purged_ids())
    if 2 * len(purged) <= catalog.entry_count:
        return []
    from aerotape.catalog.recovery.owned_files import ids_with_files

    try:
        removed = sorted(
            purged.difference(
                ids_with_files(archive_dir), *(each.retained(archive_dir) for each in features)
            )
        )
        if removed:
            catalog.compact(removed, capacity_bytes)
            LOGGER.info("catalog compacted: entries of %d purged recordings removed", len(removed))
        return removed
    except AerotapeError as error:
        LOGGER.warning("catalog not compacted: %s", error)
        return []
