"""Metadata of ledgers from their recordings, where the database is missing or damaged.

Id and type are in the alias of the recording's channel, and whether the ledger has a password or is
closed; the digest type is in its first entry. Passwords and mirrors are lost: a ledger that had a
password accepts none, and an open ledger continues without mirrors.

A database that was put back to an older state is completed from them: a ledger that was closed
since stays closed, and, if the operator says that it was put back, later ledgers are added. Nothing
else shows that: the recording of a ledger that is not listed may be a replicated copy.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aerotape.archive.features.ledger.alias import ALIAS_FRAGMENT, ledger_of_channel
from aerotape.archive.features.ledger.entry_lookup import LedgerRecording
from aerotape.archive.features.ledger.metadata import PASSWORD_LOST, LedgerMetadata
from aerotape.archive.features.ledger.metadata_store import (
    FILE_NAME,
    JOURNAL_NAME,
    DamagedMetadataError,
    MetadataStore,
)
from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs import entry as entries
from aerotape.codecs.generated.ledger_control import DigestType, LedgerState
from aerotape.errors import AerotapeError, StorageError
from aerotape.qualified_id import QualifiedId

LOGGER = logging.getLogger(__name__)

# By the number of their bytes in an entry.
_DIGESTS = {length: DigestType[name] for name, length in entries.DIGEST_LENGTHS.items()}


def open_store(
    archive_dir: Path,
    *,
    create: bool,
    is_restored: bool = False,
    report: Callable[[str], object] = LOGGER.warning,
) -> MetadataStore | None:
    """Open the metadata of a directory's ledgers, built again from their recordings if need be.

    Args:
        create: create the database where there are no ledgers yet.
        is_restored: whether the directory, or the database, was put back to an older state.
        report: called with what the operator has to know of metadata that was lost.

    Returns:
        The store; None where there are no ledgers.

    Raises:
        StorageError: files cannot be read, renamed or written.
    """
    path = archive_dir / FILE_NAME
    if path.exists():
        try:
            store = MetadataStore.open(archive_dir)
        except DamagedMetadataError as error:
            report(_set_aside(path, error))
        else:
            _complete_changes(store, archive_dir, report)
            if is_restored:
                _add_later(store, archive_dir, report)
                store.forget()
            return store
    found = ledgers_of_recordings(archive_dir, report)
    if not found and not create:
        return None
    if found:
        still_open = sum(not each.is_closed for each in found)
        report(
            f"{path} is rebuilt from the recordings of {len(found)} ledgers, {still_open} of them"
            " open: passwords, mirrors and ledgers without entries are lost, and ledgers that had a"
            " password can only be deleted; recover those that had mirrors with `aerotape ledger"
            " open`, or restore the file from a backup and start once with"
            " -Daerotape.ledgers.restored=true"
        )
    return MetadataStore.create(archive_dir, found)


def _complete_changes(
    store: MetadataStore, archive_dir: Path, report: Callable[[str], object]
) -> None:
    """Complete the changes that the catalog shows: the archive ended before, or they are undone.

    Ledgers whose recordings are purged are removed. A ledger that no other archive stores is closed
    if its recording is that of a closed one: with mirrors the other members know it.
    """
    try:
        with Catalog.open(archive_dir, read_only=True) as catalog:
            store.remove_purged(set(catalog.purged_ids()))
            for recording_id, metadata in store.open_recordings().items():
                if metadata.mirrors or not catalog.has_recording(recording_id):
                    continue
                descriptor = catalog.descriptor(recording_id)
                named = ledger_of_channel(descriptor.original_channel)
                if named is None or named.id != metadata.ledger or not named.is_closed:
                    continue
                recording = LedgerRecording.of(archive_dir, descriptor, metadata.digest_type)
                store.set_closed(named.id, recording.last_entry(descriptor.stop_position))
                report(
                    f"ledger {named.id} is closed, as its recording {recording_id} says:"
                    f" {FILE_NAME} was put back to an older state; start once with"
                    " -Daerotape.ledgers.restored=true"
                )
    except AerotapeError as error:
        report(f"ledgers that were deleted or closed may still be listed or open: {error}")


def _add_later(
    store: MetadataStore, archive_dir: Path, report: Callable[[str], object]
) -> None:
    """Add the ledgers that were created after the state to which the database was put back."""
    found = ledgers_of_recordings(archive_dir, report, store.has)
    for each in found:
        store.add(each)
    if found:
        report(
            f"{len(found)} ledgers are not listed in {FILE_NAME}, which was put back, and are added"
            " from their recordings, without passwords and mirrors:"
            f" {', '.join(str(each.ledger) for each in found)}"
        )


def _set_aside(path: Path, error: StorageError) -> str:
    aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    try:
        path.rename(aside)
        # A journal belongs to the file that is renamed.
        journal = path.with_name(JOURNAL_NAME)
        if journal.exists():
            journal.rename(aside.with_name(aside.name + "-journal"))
    except OSError as fault:
        raise StorageError(f"{error}; and it cannot be renamed: {fault.strerror}", path) from fault
    return f"{error}; it is renamed to {aside}"


def ledgers_of_recordings(
    archive_dir: Path,
    report: Callable[[str], object],
    is_listed: Callable[[QualifiedId], bool] = lambda ledger: False,
) -> list[LedgerMetadata]:
    """Return the ledgers of recordings, by the aliases in the catalog (StorageError).

    Without those that are listed already.

    Of several recordings with the alias of one ledger, such as a replicated copy, the one with the
    lowest id is the ledger's.
    """
    found: dict[QualifiedId, LedgerMetadata] = {}
    # A separate mapping: the conductor may replace that of the archive meanwhile.
    with Catalog.open(archive_dir, read_only=True) as catalog:
        if catalog.data.find(ALIAS_FRAGMENT) < 0:
            return []
        for recording_id in sorted(catalog.recording_ids()):
            try:
                descriptor = catalog.descriptor(recording_id)
            except AerotapeError as error:
                LOGGER.warning("recording %d is not a ledger's: %s", recording_id, error)
                continue
            named = ledger_of_channel(descriptor.original_channel)
            if named is None or is_listed(named.id):
                continue
            if named.id in found:
                report(
                    f"recording {recording_id} has the alias of ledger {named.id}, whose recording"
                    f" is {found[named.id].recording_id}: it stays a plain recording"
                )
                continue
            recording = LedgerRecording(archive_dir, descriptor, None)
            metadata = LedgerMetadata(
                named.id,
                named.type,
                _digest_type(recording),
                descriptor.start_timestamp_ms,
                PASSWORD_LOST if named.has_password else b"",
                recording_id=recording_id,
            )
            found[named.id] = _closed(metadata, recording) if named.is_closed else metadata
    return list(found.values())


def _closed(metadata: LedgerMetadata, recording: LedgerRecording) -> LedgerMetadata:
    try:
        end = recording.last_entry(recording.descriptor.stop_position)
    except AerotapeError as error:
        LOGGER.warning("ledger %s is open again: %s", metadata.ledger, error)
        return metadata
    return replace(
        metadata,
        state=LedgerState.CLOSED,
        last_entry_id=end.entry_id,
        length=end.length,
        end_position=end.position,
    )


def _digest_type(recording: LedgerRecording) -> DigestType:
    """Return the digest type of the first entry, CRC32C without entries."""
    try:
        data = recording.first_message()
        if data is None:
            return DigestType.CRC32C
        header = entries.read_header(data)
        if header.digest_type is not None:
            return DigestType[header.digest_type]
        # The length of the first entry is that of its payload.
        return _DIGESTS[len(data) - header.digest_offset - header.length]
    except (AerotapeError, KeyError) as error:
        LOGGER.warning(
            "recording %d: digest type unknown, CRC32C is assumed: %s",
            recording.descriptor.recording_id,
            error,
        )
        return DigestType.CRC32C
