"""Requests for segments: attach, migrate to another recording, delete once detached, purge.

The thread for work on files looks at the files; the conductor changes the catalog and responds.
Meanwhile the recordings are held: other changes of their segment files are refused.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aerotape.archive.background_tasks import BackgroundTasks, Task, outcome
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.segment_deletion import SegmentDeletions
from aerotape.archive.requester import Requester
from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem, segment_base
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.indexes import remove_indexes
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
from aerotape.catalog.time_index.upkeep import cut_before, hand_over
from aerotape.clock import epoch_ms
from aerotape.errors import AerotapeError, ArchiveError, StorageError
from aerotape.protocol import NULL_POSITION, ErrorCode

LOGGER = logging.getLogger(__name__)

# More than any directory holds; only a damaged descriptor implies so many.
_MAX_SEGMENTS = 1 << 20


@dataclass(eq=False, kw_only=True)
class SegmentMoves:
    """All pending requests for segments. For the conductor's thread.

    Attributes:
        sync: whether changes of files are synced to storage before the response.
    """

    archive_dir: Path
    catalog: Catalog
    deletions: SegmentDeletions
    errors: ErrorLog
    sync: bool
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
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

    def attach(self, requester: Requester, correlation_id: int, recording_id: int) -> None:
        """Attach detached segments; respond with their number."""
        task = self._attach(requester, correlation_id, self.descriptor(recording_id))
        self._begin(requester, correlation_id, {recording_id}, task)

    def migrate(
        self, requester: Requester, correlation_id: int, source_id: int, target_id: int
    ) -> None:
        """Migrate the segments of one recording to another; respond with their number.

        Raises:
            ArchiveError: the two recordings cannot be joined.
        """
        source, target = self.descriptor(source_id), self.descriptor(target_id)
        _check_migration(source, target)
        task = self._migrate(requester, correlation_id, source, target)
        self._begin(requester, correlation_id, {source_id, target_id}, task)

    def delete_detached(self, requester: Requester, correlation_id: int, recording_id: int) -> None:
        """Delete the segments before a recording's start; respond with their number."""
        descriptor = self.descriptor(recording_id)
        if self.deletions.allows(requester, correlation_id, recording_id):
            self.deletions.delete(
                requester,
                correlation_id,
                recording_id,
                partial(self._detached_paths, descriptor),
                finish=partial(
                    cut_before, self.archive_dir, recording_id, descriptor.start_position
                ),
            )

    def purge(
        self, requester: Requester, correlation_id: int, recording_id: int, new_start_position: int
    ) -> None:
        """Detach the segments before a position that has been checked, and delete them."""
        descriptor = self.descriptor(recording_id)
        if self.deletions.allows(requester, correlation_id, recording_id):
            paths = self._paths(descriptor, descriptor.start_position, new_start_position)
            # First the catalog: extra files before the start are harmless, missing ones are not.
            self.catalog.set_start_position(recording_id, new_start_position)
            self.deletions.delete(
                requester,
                correlation_id,
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

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: the file thread wakes the conductor."""
        return None

    def do_work(self) -> None:
        """Advance each request by one step."""
        self._tasks.advance()

    # ---- within -------------------------------------------------------------------------------

    def _begin(
        self, requester: Requester, correlation_id: int, recording_ids: set[int], task: Task[None]
    ) -> None:
        for recording_id in sorted(recording_ids):
            if not self.deletions.allows(requester, correlation_id, recording_id):
                return
        self._tasks.start(self._held(requester, correlation_id, recording_ids, task))

    def _held(
        self, requester: Requester, correlation_id: int, recording_ids: set[int], task: Task[None]
    ) -> Task[None]:
        """Hold the recordings during a task; respond to the client if it fails."""
        self.deletions.hold(recording_ids)
        self._moving |= recording_ids
        try:
            yield from task
        except AerotapeError as error:
            requester.send_error(correlation_id, ErrorCode.GENERIC, str(error))
        except Exception as error:
            self.errors.record("segments not moved", error, exception=error)
            requester.send_error(correlation_id, ErrorCode.GENERIC, f"segments not moved: {error}")
        finally:
            self._moving -= recording_ids
            self.deletions.release(recording_ids)

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

    # ---- the tasks ----------------------------------------------------------------------------

    def _attach(
        self, requester: Requester, correlation_id: int, descriptor: RecordingDescriptor
    ) -> Task[None]:
        recording_id = descriptor.recording_id
        found = yield from outcome(
            self.deletions.submit(partial(find_detached, self.archive_dir, descriptor))
        )
        if self.catalog.start_position(recording_id) != descriptor.start_position:
            raise ArchiveError(
                f"the start position of recording {recording_id} was changed while its segments"
                " were searched: try again"
            )
        if found.count:
            self.catalog.set_start_position(recording_id, found.start_position)
        if found.problem:
            requester.send_error(correlation_id, ErrorCode.GENERIC, found.problem)
        else:
            requester.send_ok(correlation_id, found.count)

    def _migrate(
        self,
        requester: Requester,
        correlation_id: int,
        source: RecordingDescriptor,
        target: RecordingDescriptor,
    ) -> Task[None]:
        """Migrate in an order that loses nothing in a crash: each position always has its file.

        The files get their new names, the catalog assigns them to the target, their old names are
        removed, and last the source becomes empty.
        """
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
            hand_over(folder, *entries)
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
        count = yield from outcome(self.deletions.submit(link))
        if source.stop_position == target.start_position:
            catalog.set_start_position(target_id, source.start_position)
        else:
            catalog.set_stop_position(target_id, source.stop_position)
        yield from outcome(self.deletions.submit(unlink))
        catalog.set_stop_position(source_id, source.start_position)
        requester.send_ok(correlation_id, count)
        self.deletions.release({source_id, target_id})
        if count or next_files:
            self.deletions.delete(
                requester,
                correlation_id,
                source_id,
                lambda: next_files,
                end_position=source.stop_position,
                is_answered=True,
            )


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
