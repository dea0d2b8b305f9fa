"""Export of a recording into one file, and import of such a file into an archive directory.

An import becomes visible in the directory when it is complete. The bytes are written into a
separate folder first. Only when the file was found to be whole and its frames good does the catalog
get an entry, which is DELETED until all segment files have their names. So an interrupted import
leaves at most that folder, or an entry that cannot be brought back, as of a purged recording: the
next start of an archive deletes its files, ``compact`` the entry too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.directory import StoredRecording
from aerotape.catalog.durability import sync_directory
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.maintenance.export_format import (
    Progress,
    RecordingFileHeader,
    RecordingFileReader,
    write_recording_file,
)
from aerotape.catalog.no_follow import DIRECTORY_MODE, open_no_follow
from aerotape.catalog.recovery.owned_files import ids_with_files
from aerotape.catalog.recovery.trailing_segment import make_next_segment
from aerotape.catalog.segment.checks import check_recording
from aerotape.catalog.segment_files import (
    SegmentFile,
    index_segment_files,
    missing_base_positions,
    segment_file_name,
    segment_ranges,
)
from aerotape.catalog.time_index.file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_index.points import TimePoints
from aerotape.clock import epoch_ms
from aerotape.errors import CatalogError, SegmentError, StorageError, StorageErrors
from aerotape.frame_header import ChecksumName

IMPORT_FOLDER_NAME = "aerotape-import"
_CHUNK_LENGTH = 1 << 20


# ---- export --------------------------------------------------------------------------------------


def export_recording(
    recording: StoredRecording,
    path: Path,
    checksum: ChecksumName = "none",
    *,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> RecordingDescriptor:
    """Write a recording into one file; an active recording up to its recorded position.

    The file has the valid points of its time index; if none are valid, `recording.time_index` has
    the reason.

    Args:
        recording: the recording.
        path: the file, which must not exist.
        checksum: checksum of its frames, which is checked before; "none" to check headers alone.
        dry_run: check that the recording is whole, and write nothing.
        progress: called for each piece.

    Returns:
        The recording as the file describes it.

    Raises:
        SegmentError: a frame is damaged, or a segment file is missing.
        CatalogError: the descriptor is damaged.
        StorageError: a file cannot be read or written.
    """
    recording.check()
    descriptor = replace(recording.descriptor, stop_position=recording.recorded_position)
    if recording.descriptor.is_active:
        descriptor = replace(descriptor, stop_timestamp_ms=epoch_ms())
    length = descriptor.stop_position - descriptor.start_position
    check_complete(descriptor, recording.segment_files(), checksum)
    if dry_run:
        return descriptor
    content = _read(recording.archive_dir, descriptor)
    time_points = recording.time_index.points.encode()
    header = RecordingFileHeader(descriptor, length, len(time_points))
    write_recording_file(path, header, content, time_points, progress)
    return descriptor


def check_complete(
    descriptor: RecordingDescriptor, segments: Sequence[SegmentFile], checksum: ChecksumName
) -> None:
    """Check that every byte of a recording is in a good frame (SegmentError).

    With a checksum each data frame must have it, or the one of the other kind.
    """
    count, missing = missing_base_positions(descriptor, segments, descriptor.stop_position)
    if count:
        name = segment_file_name(descriptor.recording_id, missing[0])
        raise SegmentError(
            f"recording {descriptor.recording_id} is not complete: there is no {name}",
            name,
            0,
            missing[0],
        )
    within = [s for s in segments if s.base_position < descriptor.stop_position]
    for task, found in check_recording(descriptor, within, descriptor.stop_position, checksum):
        for bad in found.bad:
            position = task.base_position + bad.offset
            raise SegmentError(
                f"recording {descriptor.recording_id} is damaged at position {position} "
                f"({task.path}, offset {bad.offset}): {bad.detail}",
                task.path,
                bad.offset,
                position,
            )
        if found.without_checksum:
            raise SegmentError(
                f"recording {descriptor.recording_id} has {found.without_checksum} frames in "
                f"{task.path} that were recorded without checksums: {checksum} cannot verify them; "
                "copy it without verifying checksums",
                task.path,
                0,
                task.base_position,
            )


def _ranges(
    folder: Path, descriptor: RecordingDescriptor
) -> Iterator[tuple[SegmentFile, int, int]]:
    """Iterate the segment files of a recording, with the range of its bytes in each."""
    return segment_ranges(folder, descriptor, descriptor.start_position, descriptor.stop_position)


def _read(archive_dir: Path, descriptor: RecordingDescriptor) -> Iterator[bytes]:
    for segment, offset, end in _ranges(archive_dir, descriptor):
        path = segment.path
        with StorageErrors(f"cannot read {path}", path), path.open("rb", buffering=0) as file:
            while offset < end:
                piece = os.pread(file.fileno(), min(_CHUNK_LENGTH, end - offset), offset)
                if not piece:
                    raise StorageError(f"{path} was cut short while it was read", path)
                yield piece
                offset += len(piece)


# ---- import --------------------------------------------------------------------------------------


def import_recording(
    catalog: Catalog,
    archive_dir: Path,
    path: Path,
    recording_id: int | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> RecordingDescriptor:
    """Import an exported recording into a directory.

    Args:
        catalog: open for writing (for reading suffices for a dry run); no archive uses it.
        archive_dir: the directory.
        path: the file.
        recording_id: its new id, which must be free; None for the next one, without those that
            files in the directory are named for, as a lost catalog leaves them.
        dry_run: check that the file is whole and the id is free, and change nothing.
        progress: called for each piece.

    Returns:
        The recording as it is now.

    Raises:
        StorageError: the file is missing, cut short or altered, or the directory cannot be written.
        SegmentError: its frames are damaged.
        CatalogError: the id is taken, or the catalog cannot be written. Nothing has changed then.
    """
    with RecordingFileReader(path) as reader:
        if recording_id is None:
            catalog.avoid_ids(ids_with_files(archive_dir))
            wanted = catalog.next_recording_id
        else:
            wanted = recording_id
        _check_free(catalog, archive_dir, wanted)
        descriptor = replace(reader.header.descriptor, recording_id=wanted)
        if dry_run:
            for _ in reader.content(progress):
                pass
            return descriptor
        errors = StorageErrors(f"cannot import {path}", archive_dir, names_file=True)
        with errors, importing(archive_dir) as folder:
            segments = _write(folder, descriptor, reader.content(progress))
            check_complete(descriptor, segments, "none")
            paths = [segment.path for segment in segments]
            if reader.time_points:
                paths.append(write_copied_points(folder, descriptor, reader.time_points))
            enter(catalog, archive_dir, descriptor, paths)
    return descriptor


@contextmanager
def importing(archive_dir: Path) -> Iterator[Path]:
    """Create the folder for the files of a new recording; remove it at the end (OSError)."""
    folder = archive_dir / IMPORT_FOLDER_NAME
    # The rest of an earlier import that was killed.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(DIRECTORY_MODE)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_free(catalog: Catalog, archive_dir: Path, recording_id: int) -> None:
    if recording_id < 0:
        raise CatalogError(f"{recording_id} is not a valid recording id", catalog.path)
    if catalog.has_entry(recording_id):
        raise CatalogError(
            f"there is a recording {recording_id} in {catalog.path} (see describe-all): leave the "
            f"id out for the next one that is free",
            catalog.path,
        )
    catalog.check_readable()
    index, _ = index_segment_files(archive_dir)
    if recording_id in index:
        first = index[recording_id][0].path
        raise StorageError(
            f"{first} belongs to no recording: move it away, or leave the id out for one that "
            f"nothing is named for",
            first,
        )


def _write(
    folder: Path, descriptor: RecordingDescriptor, content: Iterator[bytes]
) -> list[SegmentFile]:
    """Write segment files of full length, and force them to storage."""
    segments = []
    rest = memoryview(b"")
    for segment, begin, end in _ranges(folder, descriptor):
        file = open_no_follow(segment.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            os.ftruncate(file, descriptor.segment_file_length)
            while begin < end:
                rest = rest or memoryview(next(content))
                count = os.pwrite(file, rest[: end - begin], begin)
                begin, rest = begin + count, rest[count:]
            os.fsync(file)
        finally:
            os.close(file)
        segments.append(segment)
    add_next_segment(folder, descriptor, segments)
    for _ in content:  # so that the digest is checked
        raise AssertionError("the length was compared with the header")
    sync_directory(folder)
    return segments


def add_next_segment(
    folder: Path, descriptor: RecordingDescriptor, segments: list[SegmentFile]
) -> None:
    """Add the segment file after a full last one, as the recorder does (OSError)."""
    path = make_next_segment(folder, descriptor)
    if path is not None:
        segments.append(SegmentFile(path, descriptor.stop_position))


def write_copied_points(folder: Path, descriptor: RecordingDescriptor, points: TimePoints) -> Path:
    """Write the time index of a copied recording, durably but for its name; return the file."""
    # An entry that is created from a descriptor has no ids of a request.
    provenance = Provenance(
        descriptor.recording_id, descriptor.start_timestamp_ms, 0, 0, descriptor.session_id
    )
    path = time_index_path(folder, descriptor.recording_id)
    write_time_index(path, provenance, points)
    # Forced, unlike points while recording: these belong to a complete recording.
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return path


def enter(
    catalog: Catalog, archive_dir: Path, descriptor: RecordingDescriptor, paths: Sequence[Path]
) -> None:
    """Move the complete files of a recording into the directory, and make it visible.

    Raises:
        CatalogError: the catalog cannot be written.
        OSError: a file cannot be moved.
    """
    # Not INVALID: repair, verify and mark-valid would make it valid with incomplete segments.
    catalog.insert_recording(descriptor, RecordingState.DELETED)
    for path in paths:
        path.rename(archive_dir / path.name)
    sync_directory(archive_dir)
    catalog.change_state(descriptor.recording_id, RecordingState.VALID)
