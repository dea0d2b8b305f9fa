"""Segments that are detached, attached, migrated to another recording, or deleted.

The thread for work on files looks at the files; the conductor changes the catalog. Meanwhile the
recordings are held: other changes of their segment files are refused.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.recording.segments.deletion import Deletion, SegmentDeletions
from aerotape.archive.recording.segments.locks import SegmentLocks
from aerotape.archive.recording.storage import CatalogChanges
from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem, segment_base
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.segment.migrate import (
    SegmentMove,
    base_positions,
    begin_moves,
    find_detached,
    finish_moves,
    plan_moves,
    undo_moves,
)
from aerotape.catalog.segment_files import (
    first_segment_base,
    list_files_to_delete,
    list_segment_files,
    segment_file_name,
)
from aerotape.catalog.time_index_upkeep import cut_before, join_indexes, remove_indexes
from aerotape.clock import epoch_ms
from aerotape.errors import ArchiveError, StorageError
from aerotape.protocol import NULL_POSITION
from aerotape.waiting import Task, await_future

LOGGER = logging.getLogger(__name__)

# More than any directory holds; only a damaged descriptor implies so many.
_MAX_SEGMENTS = 1 << 20


@dataclass(eq=False, kw_only=True)
class SegmentOperations:
    """Changes of the segments of recordings. For the conductor's thread.

    Attributes:
        sync: whether changes of files are synced to storage before a task returns.
    """

    archive_dir: Path
    catalog: Catalog
    locks: SegmentLocks
    files: FileWorker
    deletions: SegmentDeletions
    changes: CatalogChanges
    sync: bool
    # Recordings with an attach or migrate request in progress.
    _moving: set[int] = field(default_factory=set, init=False)

    def detach(self, recording_id: int, new_start_position: int) -> None:
        """Move a recording's start to a position that has been checked.

        Raises:
            ArchiveError: its segments are being moved, which relies on its start position.
        """
        if recording_id in self._moving:
            raise ArchiveError(f"segments of recording {recording_id} are being moved")
        self.catalog.set_start_position(recording_id, new_start_position)

    def attach(self, recording_id: int) -> Task[tuple[int, None]]:
        """Attach detached segments; return their number.

        Raises:
            ArchiveError: the recording is held, or its segments are not those of its descriptor.
            StorageError: the directory cannot be read.
        """
        descriptor = self.descriptor(recording_id)
        with self._held({recording_id}):
            found = yield from await_future(
                self.files.submit(partial(find_detached, self.archive_dir, descriptor))
            )
            yield from self.changes.await_disk()
            if self.catalog.start_position(recording_id) != descriptor.start_position:
                raise ArchiveError(
                    f"the start position of recording {recording_id} was changed while its"
                    " segments were searched: try again"
                )
            if found.count:
                self.catalog.set_start_position(recording_id, found.start_position)
            if found.problem:
                raise ArchiveError(found.problem)
            return found.count, None

    def delete_detached(self, recording_id: int) -> Deletion:
        """Delete the segments before a recording's start (ArchiveError: it is held)."""
        descriptor = self.descriptor(recording_id)
        self.locks.check_free({recording_id})
        return self.deletions.delete(
            recording_id,
            partial(self._detached_paths, descriptor),
            finish=partial(cut_before, self.archive_dir, recording_id, descriptor.start_position),
        )

    def purge(self, recording_id: int, new_start_position: int) -> Deletion:
        """Detach the segments before a position that has been checked, and delete them.

        Raises:
            ArchiveError: the recording is held.
        """
        descriptor = self.descriptor(recording_id)
        self.locks.check_free({recording_id})
        paths = self._paths(descriptor, descriptor.start_position, new_start_position)
        # First the catalog: extra files before the start are harmless, missing ones are not.
        self.catalog.set_start_position(recording_id, new_start_position)
        return self.deletions.delete(
            recording_id,
            lambda: paths,
            finish=partial(cut_before, self.archive_dir, recording_id, new_start_position),
            end_position=new_start_position - descriptor.segment_file_length,
        )

    def descriptor(self, recording_id: int) -> RecordingDescriptor:
        """Return a recording's descriptor.

        Raises:
            CatalogError: its entry is damaged.
            ArchiveError: its values are inconsistent.
        """
        descriptor = self.catalog.descriptor(recording_id)
        problem = describe_problem(descriptor)
        if problem:
            raise ArchiveError(f"recording {recording_id} has a damaged descriptor: {problem}")
        return descriptor

    # ---- within -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _held(self, recording_ids: set[int]) -> Iterator[None]:
        with self.locks.held(recording_ids):
            self._moving |= recording_ids
            try:
                yield
            finally:
                self._moving -= recording_ids

    def _paths(
        self, descriptor: RecordingDescriptor, position: int, end_position: int
    ) -> list[Path]:
        """Return the segment files from that of `position` to `end_position`.

        Raises:
            StorageError: there are too many.
        """
        recording_id = descriptor.recording_id
        bases = base_positions(descriptor, position, end_position)
        if len(bases) > _MAX_SEGMENTS:
            raise StorageError(
                f"recording {recording_id} cannot have {len(bases)} segments from position"
                f" {position} to {end_position}",
                self.archive_dir,
            )
        return [self.archive_dir / segment_file_name(recording_id, base) for base in bases]

    def _detached_paths(self, descriptor: RecordingDescriptor) -> list[Path]:
        """Return the segment files before a recording's start, from the first that exists.

        Missing files among them count as deleted.

        Raises:
            StorageError: the directory cannot be read.
        """
        files = list_files_to_delete(self.archive_dir, descriptor.recording_id)
        if not files:
            return []
        return self._paths(descriptor, files[0].base_position, first_segment_base(descriptor))

    def migrate(self, source_id: int, target_id: int) -> Task[tuple[int, Deletion | None]]:
        """Migrate the segments of one recording to another; return how many they are.

        The order loses nothing in a crash, because each position always has its file: the files
        get their new names, the catalog assigns them to the target, their old names are removed,
        and last the source becomes empty. The deletion of what it has past its stop position is
        returned too, if it has anything.

        Raises:
            ArchiveError: the two recordings cannot be joined, or one is held.
            StorageError: files cannot be changed; then nothing is lost.
        """
        source, target = self.descriptor(source_id), self.descriptor(target_id)
        _check_migration(source, target)
        with self._held({source_id, target_id}):
            count, next_files = yield from self._migrate(source, target)
        if not count and not next_files:
            return count, None
        deletion = self.deletions.delete(
            source_id, lambda: next_files, end_position=source.stop_position
        )
        return count, deletion

    def _migrate(
        self, source: RecordingDescriptor, target: RecordingDescriptor
    ) -> Task[tuple[int, list[Path]]]:
        from aerotape.catalog.recovery.stale_tail import StaleTail

        catalog, folder = self.catalog, self.archive_dir
        source_id, target_id = source.recording_id, target.recording_id

        def link() -> int:
            planned = plan_moves(folder, source, target_id, target.stop_position)
            begin_moves(planned, folder, sync=self.sync)
            try:
                quarantine_segment()
            except StorageError:
                undo_moves(planned)
                raise
            moves.extend(planned)
            join_indexes(folder, *entries)
            return len(moves)

        def quarantine_segment() -> None:
            """Quarantine the frames in files past a stop position that was lowered.

            Otherwise they would be deleted with the remains of the empty recording.
            """
            for segment in list_segment_files(folder, source_id):
                if segment.base_position >= source.stop_position and (
                    note := tail.quarantine_segment(segment.path, segment.base_position)
                ):
                    LOGGER.warning("recording %d is migrated: %s", source_id, note)

        def unlink() -> None:
            finish_moves(moves)
            # Its entries belong to the target now.
            with contextlib.suppress(StorageError):
                remove_indexes(folder, source_id)

        next_files: list[Path] = []
        if _is_segment_base(source, source.stop_position):
            # The recorder has created the next file if the last segment is full.
            next_files.append(folder / segment_file_name(source_id, source.stop_position))
        tail = StaleTail(folder, target_id, source.stop_position, epoch_ms())
        entries = catalog.entry(source_id), catalog.entry(target_id)
        moves: list[SegmentMove] = []
        count = yield from await_future(self.files.submit(link))
        yield from self.changes.await_disk()
        if source.stop_position == target.start_position:
            catalog.set_start_position(target_id, source.start_position)
        else:
            catalog.set_stop_position(target_id, source.stop_position)
        yield from await_future(self.files.submit(unlink))
        yield from self.changes.await_disk()
        catalog.set_stop_position(source_id, source.start_position)
        return count, next_files


def _is_segment_base(descriptor: RecordingDescriptor, position: int) -> bool:
    return position == segment_base(descriptor, position)


def _check_migration(source: RecordingDescriptor, target: RecordingDescriptor) -> None:
    """Check that two recordings are one stream, cut at a segment boundary."""

    def refuse(problem: str) -> ArchiveError:
        return ArchiveError(
            f"{problem}: cannot migrate segments of recording {source.recording_id} to recording"
            f" {target.recording_id}"
        )

    if source.stop_position == NULL_POSITION:
        raise refuse(f"recording {source.recording_id} is still active")
    for name, first, second in (
        ("SegmentFileLength", source.segment_file_length, target.segment_file_length),
        ("TermBufferLength", source.term_buffer_length, target.term_buffer_length),
        ("InitialTermId", source.initial_term_id, target.initial_term_id),
        ("StreamId", source.stream_id, target.stream_id),
        ("MtuLength", source.mtu_length, target.mtu_length),
    ):
        if first != second:
            raise refuse(f"invalid migrate: src{name}={first} dst{name}={second}")
    if source.stop_position == target.start_position:
        join_position = source.stop_position
    elif source.start_position == target.stop_position:
        join_position = source.start_position
    else:
        raise refuse(
            "invalid migrate: src and dst are not contiguous"
            f" srcStartPosition={source.start_position} srcStopPosition={source.stop_position}"
            f" dstStartPosition={target.start_position} dstStopPosition={target.stop_position}"
        )
    for label, descriptor in (("src", source), ("dst", target)):
        if not _is_segment_base(descriptor, join_position):
            raise refuse(
                f"invalid migrate: join position is not on segment boundary of {label} recording"
                f" seamPosition={join_position} startPosition={descriptor.start_position}"
                f" stopPosition={descriptor.stop_position}"
                f" termBufferLength={descriptor.term_buffer_length}"
                f" segmentFileLength={descriptor.segment_file_length}"
            )
