"""Directories of imported recordings: created aside, and renamed into their place when complete."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.directory import StoredDirectory
from aerotape.catalog.durability import sync_directory
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import CATALOG_FILE_NAME, SEMANTIC_VERSION, RecordingState
from aerotape.catalog.location import require_local
from aerotape.catalog.mark.layout import (
    FILE_NAME,
    HEADER_LENGTH,
    NULL_TIMESTAMP_MS,
    MarkFileHeader,
)
from aerotape.catalog.no_follow import DIRECTORY_MODE, check_directory, open_no_follow
from aerotape.catalog.scope_layout import imported_directory
from aerotape.clock import epoch_ms
from aerotape.errors import (
    CatalogError,
    ConfigurationError,
    StorageError,
    StorageErrors,
    UnknownRecordingError,
)
from aerotape.frame_header import ChecksumName
from aerotape.qualified_id import QualifiedId

TEMPORARY_FOLDER_NAME: Final = "aerotape-scope-import"
_CATALOG_CAPACITY_BYTES: Final = 4096
_LEVELS: Final = 4
# Fields that never change while a recording exists.
_IDENTITY: Final = (
    "start_timestamp_ms",
    "initial_term_id",
    "segment_file_length",
    "term_buffer_length",
    "mtu_length",
    "stream_id",
    "source_identity",
)


def prepare_store(store: Path, scope_id: int, *, dry_run: bool = False) -> None:
    """Check that recordings can be imported into a store under a scope.

    A store that does not exist, or is an empty directory, is created.

    Args:
        dry_run: create nothing.

    Raises:
        StorageError: the store cannot be created.
        ConfigurationError: the scope is the store's own, or the store is remote.
        CatalogError: the store is not an archive directory.
    """
    require_local(store, "the import of an archive")
    if scope_id in (0, StoredDirectory[Any](store).own_scope_id()):
        raise ConfigurationError(
            f"ledger scope id {scope_id} is that of the recordings of {store} itself: give the "
            "imported recordings another one, as in --ledger-scope-id 7",
            "scope_id",
        )
    with StorageErrors(f"cannot create {store}", store):
        is_new = not store.exists() or (store.is_dir() and not any(store.iterdir()))
        if is_new and not dry_run:
            store.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    if not (is_new and dry_run):
        Catalog.open(store, create=is_new, read_only=not is_new).close()


def check_no_ledger(
    store: Path, qualified_id: QualifiedId, is_ledger: Callable[[QualifiedId], bool]
) -> None:
    """Raise CatalogError if a ledger of a store has the id that a recording would get."""
    if is_ledger(qualified_id):
        raise CatalogError(
            f"{qualified_id} is the id of a ledger of {store}: give this archive another ledger"
            " scope id",
            store,
        )


def stored_descriptor(directory: Path, descriptor: RecordingDescriptor) -> RecordingDescriptor:
    """Return the descriptor of an imported recording.

    Args:
        descriptor: in the source.

    Raises:
        CatalogError: it is another recording.
    """
    with Catalog.open(directory, read_only=True) as catalog:
        stored = catalog.descriptor(descriptor.recording_id)
    for name in _IDENTITY:
        ours, theirs = getattr(stored, name), getattr(descriptor, name)
        if ours != theirs:
            raise CatalogError(
                f"{directory} holds another recording, with {name} {ours} instead of {theirs}: "
                "give this archive another ledger scope id",
                directory,
            )
    return stored


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


@contextmanager
def temporary_folder(store: Path, dry_run: bool) -> Iterator[Path]:
    """Create an empty folder that excludes other imports, and remove it with its content."""
    import shutil

    folder = store / TEMPORARY_FOLDER_NAME
    if dry_run:
        yield folder
        return
    with StorageErrors(f"cannot use {folder}", folder):
        descriptor = _lock(folder)
    try:
        # The rest of an import that was killed.
        for left in folder.iterdir():
            shutil.rmtree(left, ignore_errors=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _lock(folder: Path) -> int:
    while True:
        with suppress(FileExistsError):
            folder.mkdir(DIRECTORY_MODE)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.exists() and os.path.samestat(folder.stat(), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise StorageError(
                f"another import into {folder.parent} is running: wait for its end", folder
            ) from None
        # It was removed by the import that held the lock.
        os.close(descriptor)


def write_directory(
    target: Path, qualified_id: QualifiedId, descriptor: RecordingDescriptor, checksum: ChecksumName
) -> None:
    """Write the mark file and the catalog of an imported recording's directory, durably.

    The catalog is the last: the names of all files in the directory are on storage then.

    Args:
        checksum: the checksum that the catalog entry has.
    """
    _write_mark_file(target, qualified_id)
    with Catalog.open(
        target,
        create=True,
        capacity_bytes=_CATALOG_CAPACITY_BYTES,
        sync_level=2,
        checksum=checksum,
    ) as catalog:
        catalog.insert_recording(descriptor, RecordingState.VALID)


def check_levels(directory: Path) -> None:
    """Raise CatalogError if a level of an imported recording's directory is a symbolic link."""
    with StorageErrors(f"cannot write to {directory}", directory, CatalogError):
        for level in (directory, *directory.parents[: _LEVELS - 1]):
            check_directory(level)


def place(target: Path, directory: Path) -> None:
    """Give a complete directory its name, durably (CatalogError: through a symbolic link)."""
    check_levels(directory)
    levels = list(directory.parents)[:_LEVELS]
    for level in reversed(levels):
        level.mkdir(DIRECTORY_MODE, exist_ok=True)
    target.rename(directory)
    # All of them: an import that was killed may have left directories that are not forced.
    for level in levels:
        sync_directory(level)


def _write_mark_file(target: Path, qualified_id: QualifiedId) -> None:
    """Write the mark file of a stopped archive whose id is the scope."""
    header = MarkFileHeader(
        version=SEMANTIC_VERSION,
        activity_timestamp_ms=NULL_TIMESTAMP_MS,
        start_timestamp_ms=epoch_ms(),
        control_stream_id=0,
        local_control_stream_id=0,
        events_stream_id=0,
        archive_id=qualified_id.signed[0],
        control_channel="",
        local_control_channel="",
        events_channel="",
        aeron_directory="",
    )
    with open(target / FILE_NAME, "wb", opener=open_no_follow) as file:
        file.write(header.encode())
        file.truncate(HEADER_LENGTH + header.error_buffer_length)
        file.flush()
        os.fsync(file.fileno())
