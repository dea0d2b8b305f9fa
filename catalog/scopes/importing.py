"""Import of another archive's recordings into a store, each under its scope and id.

A recording is built in a temporary folder of the store, forced to storage, and renamed into its
place, so that it is there completely or not at all. An interrupted import leaves that folder, which
the next import removes, and at most empty directories. The source is only read. Recordings that its
archive, if one runs there, is still writing are left out.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.directory import StoredDirectory, StoredRecording
from aerotape.catalog.file.descriptor_checksum import checksum_kind
from aerotape.catalog.location import require_local
from aerotape.catalog.maintenance.export_import import check_complete, write_copied_points
from aerotape.catalog.mark.mark_file import DEFAULT_LIVENESS_TIMEOUT_MS
from aerotape.catalog.mark.ownership import check_unused
from aerotape.catalog.no_follow import DIRECTORY_MODE, open_no_follow
from aerotape.catalog.recovery.suspect_marks import mark_file_name
from aerotape.catalog.scope_layout import imported_directory
from aerotape.catalog.scopes.placing import (
    check_levels,
    check_no_ledger,
    place,
    prepare_store,
    stored_descriptor,
    temporary_folder,
    write_directory,
)
from aerotape.catalog.segment.data_extents import copy_data
from aerotape.catalog.segment_files import SegmentFile
from aerotape.clock import epoch_ms
from aerotape.errors import (
    AerotapeError,
    ArchiveInUseError,
    CatalogError,
    ConfigurationError,
    StorageError,
    StorageErrors,
)
from aerotape.frame_header import ChecksumName
from aerotape.qualified_id import QualifiedId

Progress = Callable[[int, int], object]
"""Called with the bytes copied and the bytes in total."""


@dataclass(frozen=True, slots=True)
class RecordingImport:
    """The outcome of one recording.

    Attributes:
        recording_id: its id in the source.
        qualified_id: its id in the store.
        result: "imported", "replicated", "present" (it was complete before) or "left out".
        length: bytes of the recording.
        directory: its directory in the store.
        error: why it was left out; "" if it was not.
    """

    recording_id: int
    qualified_id: QualifiedId
    result: str
    length: int
    directory: Path
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """One recording as it is copied.

    Attributes:
        recording: the recording.
        descriptor: as the store will have it, with a stop position.
        checksum: the checksum that its catalog entry has.
    """

    recording: StoredRecording
    descriptor: RecordingDescriptor
    checksum: ChecksumName

    @property
    def length(self) -> int:
        """Bytes of the recording."""
        return self.descriptor.stop_position - self.descriptor.start_position

    def segments(self) -> list[SegmentFile]:
        """List the segment files to copy."""
        stop = self.descriptor.stop_position
        return [each for each in self.recording.segment_files() if each.base_position <= stop]


def import_archive(
    store: Path,
    source: StoredDirectory[Any],
    scope_id: int,
    *,
    recording_ids: Collection[int] | None = None,
    checksum: ChecksumName = "none",
    dry_run: bool = False,
    is_ledger: Callable[[QualifiedId], bool] = lambda qualified_id: False,
    progress: Progress = lambda done, total: None,
) -> Iterator[RecordingImport]:
    """Import the valid recordings of another archive directory, in ascending order of ids.

    Args:
        store: the archive directory to import into; an archive may be running there. One that
            does not exist, or is empty, is created.
        source: the directory to read.
        scope_id: the scope, unsigned.
        recording_ids: only these recordings; all if None.
        checksum: checksum of the frames, which is verified; "none" to check headers alone.
        dry_run: check everything, and write nothing.
        is_ledger: whether a ledger of the store has an id, which no recording gets then.
        progress: called for each piece that is copied.

    Yields:
        The outcome of each recording, when it is on storage. One that is damaged, incomplete, or
        not the recording that the store has under its id, is left out.

    Raises:
        ConfigurationError: the scope is the store's own, or the source is the store.
        UnknownRecordingError: a recording in `recording_ids` does not exist.
        CatalogError: one of the directories holds no catalog that can be read.
        StorageError: the store cannot be written, or another import is running.
    """
    _check_places(store, source, scope_id, dry_run)
    in_use = _is_in_use(source.path)
    if recording_ids is None:
        recordings = source.recordings()
    else:
        recordings = [source.recording(each) for each in sorted(set(recording_ids))]
    with temporary_folder(store, dry_run) as folder:
        found = [_find(store, each, scope_id, in_use, is_ledger) for each in recordings]
        missing = [each for each, _ in found if isinstance(each, _Source)]
        total = sum(each.length for each in missing)
        done = 0
        for each, outcome in found:
            if not isinstance(each, _Source):
                yield outcome
                continue
            error = ""
            try:
                check_complete(each.descriptor, each.segments(), checksum)
            except StorageError as unsound:
                error = str(unsound)
            if not error and not dry_run:
                report = partial(_report, progress, done, total)
                error = _import(each, source, folder, outcome, report)
            done += each.length
            progress(done, total)
            yield replace(outcome, result="left out", error=error) if error else outcome


def _check_places(store: Path, source: StoredDirectory[Any], scope_id: int, dry_run: bool) -> None:
    require_local(source.path, "the import of an archive")
    if store.resolve() == source.path.resolve():
        raise ConfigurationError(f"{source.path} is the store itself", "source")
    source.open_catalog().close()
    prepare_store(store, scope_id, dry_run=dry_run)


def _is_in_use(archive_dir: Path) -> bool:
    try:
        check_unused(archive_dir, DEFAULT_LIVENESS_TIMEOUT_MS)
    except ArchiveInUseError:
        return True
    return False


def _find(
    store: Path,
    recording: StoredRecording,
    scope_id: int,
    in_use: bool,
    is_ledger: Callable[[QualifiedId], bool],
) -> tuple[_Source | None, RecordingImport]:
    """Decide what to do for a recording: what to copy, if anything, and the outcome then."""
    qualified_id = QualifiedId(scope_id, max(recording.recording_id, 0))
    directory = imported_directory(store, qualified_id)
    left_out = RecordingImport(recording.recording_id, qualified_id, "left out", 0, directory)
    try:
        recording.check()
        descriptor = recording.descriptor
        if descriptor.is_active:
            if in_use:
                raise StorageError(
                    f"recording {descriptor.recording_id} is being recorded: stop it first",
                    recording.archive_dir,
                )
            descriptor = replace(
                descriptor,
                stop_position=recording.recorded_position,
                stop_timestamp_ms=epoch_ms(),
            )
        length = descriptor.stop_position - descriptor.start_position
        outcome = RecordingImport(
            recording.recording_id, qualified_id, "imported", length, directory
        )
        if directory.exists():
            _check_same(directory, descriptor)
            return None, replace(outcome, result="present")
        check_levels(directory)
        check_no_ledger(store, qualified_id, is_ledger)
        return _Source(recording, descriptor, checksum_kind(recording.entry)), outcome
    except AerotapeError as error:
        return None, replace(left_out, error=str(error))


def _check_same(directory: Path, descriptor: RecordingDescriptor) -> None:
    """Raise CatalogError if an imported recording is not the one that the source has."""
    stored = stored_descriptor(directory, descriptor)
    advice = f"; remove {directory} to import it again"
    if stored.stop_position != descriptor.stop_position:
        raise CatalogError(
            f"{directory} holds the recording up to position {stored.stop_position}, the source up "
            f"to {descriptor.stop_position}{advice}",
            directory,
        )
    if stored.start_position > descriptor.start_position:
        raise CatalogError(
            f"{directory} holds the recording from position {stored.start_position} on, the source "
            f"from {descriptor.start_position} on{advice}",
            directory,
        )


def _report(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def _import(
    source: _Source,
    directory: StoredDirectory[Any],
    folder: Path,
    outcome: RecordingImport,
    progress: Callable[[int], object],
) -> str:
    """Build the directory of a recording and give it its name.

    Returns:
        The reason if it was not imported because the source's archive changed it; else "".

    Raises:
        StorageError: a file cannot be read or written.
    """
    target = folder / str(outcome.qualified_id)
    what = f"cannot import recording {outcome.recording_id}"
    try:
        with StorageErrors(what, outcome.directory, names_file=True):
            target.mkdir(DIRECTORY_MODE)
            _copy_segments(source, target, progress)
            _copy_notes(source, target)
            write_directory(target, outcome.qualified_id, source.descriptor, source.checksum)
            now = directory.recording(outcome.recording_id).descriptor
            if now != source.recording.descriptor:
                return f"recording {outcome.recording_id} was changed while it was copied"
            place(target, outcome.directory)
            return ""
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _copy_segments(source: _Source, target: Path, progress: Callable[[int], object]) -> None:
    """Copy the segment files, byte for byte up to the stop position, with their times."""
    start = source.descriptor.start_position
    for segment in source.segments():
        output = open_no_follow(target / segment.path.name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            with source.recording.open_segment(segment.base_position) as file:
                status = os.fstat(file.fileno())
                limit = status.st_size
                if source.recording.descriptor.is_active:
                    # What follows the last whole frame is not a part of the recording.
                    limit = min(limit, source.descriptor.stop_position - segment.base_position)
                os.ftruncate(output, status.st_size)
                begin = segment.base_position - start
                copy_data(
                    file.fileno(),
                    output,
                    limit,
                    partial(_advance, progress, begin, source.length),
                )
            os.utime(output, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(output)
        finally:
            os.close(output)


def _advance(progress: Callable[[int], object], begin: int, length: int, offset: int) -> None:
    progress(min(max(begin + offset, 0), length))


def _copy_notes(source: _Source, target: Path) -> None:
    """Copy the time index, and the notes on a suspect recording."""
    recording, descriptor = source.recording, source.descriptor
    if points := recording.time_index.points:
        write_copied_points(target, descriptor, points)
    if recording.suspect_notes:
        name = mark_file_name(descriptor.recording_id)
        shutil.copyfile(recording.archive_dir / name, target / name)
        with (target / name).open("rb") as file:
            os.fsync(file.fileno())
