"""Descriptors of imported recordings, for an archive that serves them."""

from __future__ import annotations

from pathlib import Path

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import CATALOG_FILE_NAME
from aerotape.catalog.scopes.layout import imported_directory
from aerotape.errors import UnknownRecordingError
from aerotape.qualified_id import QualifiedId


def imported_descriptor(archive_dir: Path, qualified_id: QualifiedId) -> RecordingDescriptor:
    """Read the descriptor of an imported recording.

    Raises:
        UnknownRecordingError: it was not imported.
        CatalogError: its catalog cannot be read, or is that of another recording.
    """
    directory = imported_directory(archive_dir, qualified_id)
    recording_id = qualified_id.ledger_id
    if not (directory / CATALOG_FILE_NAME).exists():
        raise UnknownRecordingError(
            f"unknown recording id: {recording_id} of scope {qualified_id.scope_id}", recording_id
        )
    with Catalog.open(directory, read_only=True) as catalog:
        return catalog.descriptor(recording_id)
