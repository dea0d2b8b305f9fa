"""Segments that are attached to a recording, migrated to another, or deleted once detached.

What has to look at many files is done by the thread that deletes files; the conductor takes the
result, changes the catalog and answers. Meanwhile the recordings are held: what else would change
their segment files is refused.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.segment_deletion import SegmentDeletions
from aerotape.archive.requester import Requester
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
    list_files_to_delete,
    list_segment_files,
    segment_file_name,
)
from aerotape.catalog.time_index.file import remove_time_index
from aerotape.catalog.time_index.upkeep import cut_before, hand_over
from aerotape.clock import epoch_ms
from aerotape.errors import AerotapeError, ArchiveError, StorageError
from aerotape.protocol import NULL_POSITION, ErrorCode

LOGGER = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_Steps = Generator[None, None, None]
# More segments than any directory holds: only a damaged descriptor makes for as many.
_MAX_SEGMENTS = 1 << 20


class _Move:
    """A request whose work is done in steps."""

    def __init__(
        self, requester: Requester, correlation_id: int, recording_ids: set[int], steps: _Steps
    ) -> None:
        self.requester = requester
        self.correlation_id = correlation_id
        self.recording_ids = recording_ids
        self.steps = steps


class SegmentMoves:
    """All requests about segments that are under way. For the conductor's thread."""

    def __init__(
        self,
        *,
        archive_dir: Path,
        catalog: Catalog,
        deletions: SegmentDeletions,
        errors: ErrorLog,
        sync: bool,
    ) -> None:
        """Begin with none.

        Args:
            sync: whether changes to files have to be on storage before they are told.
        """
        self._archive_dir = archive_dir
        self._catalog = catalog
        self._deletions = deletions
        self._errors = errors
        self._sync = sync
        self._moves: list[_Move] = []

    def detach(self, recording_id: int, new_start_position: int) -> None:
        """Move a recording's start to a position that has been checked.

        Raises:
            ArchiveError: its segments are being moved, from where it starts by what was found then.
        """
        if any(recording_id in move.recording_ids for move in self._moves):
            raise ArchiveError(
                f"segments of recording {recording_id} are being moved", ErrorCode.GENERIC
            )
        self._catalog.set_start_position(recording_id, new_start_position)

    def attach(self, requester: Requester, correlation_id: int, recording_id: int) -> None:
        """Answer an attach request with the number of segments that the recording got back."""
        steps = self._attach(requester, correlation_id, self.descriptor(recording_id))
        self._begin(requester, correlation_id, {recording_id}, steps)

    def migrate(
        self, requester: Requester, correlation_id: int, source_id: int, target_id: int
    ) -> None:
        """Answer a migrate request with the number of segments that changed sides.

        Raises:
            ArchiveError: the two recordings do not go together.
        """
        source, target = self.descriptor(source_id), self.descriptor(target_id)
        _check_migration(source, target)
        steps = self._migrate(requester, correlation_id, source, target)
        self._begin(requester, correlation_id, {source_id, target_id}, steps)

    def delete_detached(self, requester: Requester, correlation_id: int, recording_id: int) -> None:
        """Answer a request to delete the segments before a recording's start."""
        descriptor = self.descriptor(recording_id)
        if self._deletions.allows(requester, correlation_id, recording_id):
            self._deletions.delete(
                requester,
                correlation_id,
                recording_id,
                prepare=partial(self._detached_paths, descriptor),
                finish=partial(
                    cut_before, self._archive_dir, recording_id, descriptor.start_position
                ),
            )

    def purge(
        self, requester: Requester, correlation_id: int, recording_id: int, new_start_position: int
    ) -> None:
        """Detach the segments before a position that has been checked, and delete them."""
        descriptor = self.descriptor(recording_id)
        if self._deletions.allows(requester, correlation_id, recording_id):
            bases = self._bases(descriptor, descriptor.start_position, new_start_position)
            # First the catalog: files before a recording's start are no harm, missing ones are.
            self._catalog.set_start_position(recording_id, new_start_position)
            self._deletions.delete(
                requester,
                correlation_id,
                recording_id,
                prepare=partial(self._paths, recording_id, bases),
                finish=partial(cut_before, self._archive_dir, recording_id, new_start_position),
                end_position=bases[-1],
            )

    def descriptor(self, recording_id: int) -> RecordingDescriptor:
        """Return a recording's descriptor, whose figures can be.

        Raises:
            CatalogError: it is damaged.
            ArchiveError: its figures cannot be.
        """
        descriptor = self._catalog.descriptor(recording_id)
        problem = describe_problem(descriptor)
        if problem:
            raise ArchiveError(
                f"recording {recording_id} has a damaged descriptor: {problem}", ErrorCode.GENERIC
            )
        return descriptor

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: the file thread wakes the conductor."""
        return None

    def do_work(self) -> None:
        """Let each request take a step."""
        for move in list(self._moves):
            self._step(move)

    # ---- within -------------------------------------------------------------------------------

    def _begin(
        self, requester: Requester, correlation_id: int, recording_ids: set[int], steps: _Steps
    ) -> None:
        for recording_id in sorted(recording_ids):
            if not self._deletions.allows(requester, correlation_id, recording_id):
                return
        self._deletions.hold(recording_ids)
        move = _Move(requester, correlation_id, recording_ids, steps)
        self._moves.append(move)
        self._step(move)

    def _step(self, move: _Move) -> None:
        try:
            next(move.steps)
            return
        except StopIteration:
            pass
        except AerotapeError as error:
            move.requester.send_error(move.correlation_id, ErrorCode.GENERIC, str(error))
        except Exception as error:
            self._errors.record("segments not moved", error, exception=error)
            move.requester.send_error(
                move.correlation_id, ErrorCode.GENERIC, f"segments not moved: {error}"
            )
        self._end(move)

    def _end(self, move: _Move) -> None:
        if move in self._moves:
            self._moves.remove(move)
            self._deletions.release(move.recording_ids)

    def _elsewhere(self, call: Callable[[], _Result]) -> Generator[None, None, _Result]:
        """Have something done in the other thread and wait for it."""
        future = self._deletions.submit(call)
        while not future.done():
            yield
        return future.result()

    def _bases(self, descriptor: RecordingDescriptor, position: int, end_position: int) -> range:
        """Return the base positions of the segments from that of `position` to `end_position`.

        Raises:
            StorageError: there cannot be so many.
        """
        bases = base_positions(descriptor, position, end_position)
        if len(bases) > _MAX_SEGMENTS:
            raise StorageError(
                f"recording {descriptor.recording_id} cannot have {len(bases)} segments from"
                f" position {position} to {end_position}",
                self._archive_dir,
            )
        return bases

    def _paths(self, recording_id: int, bases: Iterable[int]) -> list[Path]:
        return [self._archive_dir / segment_file_name(recording_id, base) for base in bases]

    def _detached_paths(self, descriptor: RecordingDescriptor) -> list[Path]:
        """Return the segment files before a recording's start, from the first that there is.

        A gap among them counts as deleted.

        Raises:
            StorageError: the directory cannot be read.
        """
        recording_id = descriptor.recording_id
        files = list_files_to_delete(self._archive_dir, recording_id)
        start_base = descriptor.start_position & -descriptor.term_buffer_length
        if not files:
            return []
        return self._paths(
            recording_id, self._bases(descriptor, files[0].base_position, start_base)
        )

    # ---- the requests, step by step -----------------------------------------------------------

    def _attach(
        self, requester: Requester, correlation_id: int, descriptor: RecordingDescriptor
    ) -> _Steps:
        recording_id = descriptor.recording_id
        found = yield from self._elsewhere(partial(find_detached, self._archive_dir, descriptor))
        if self._catalog.start_position(recording_id) != descriptor.start_position:
            raise ArchiveError(
                f"the start position of recording {recording_id} was changed while its segments"
                " were looked for: try again",
                ErrorCode.GENERIC,
            )
        if found.count:
            self._catalog.set_start_position(recording_id, found.start_position)
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
    ) -> _Steps:
        """At every moment one of the two, or both, has each position with its file.

        So the files get their new names first, then the catalog has the target own them, then the
        old names go, and last the source becomes empty.
        """
        from aerotape.catalog.recovery.stale_tail import StaleTail

        catalog, folder = self._catalog, self._archive_dir
        source_id, target_id = source.recording_id, target.recording_id

        def link() -> int:
            planned = plan_moves(folder, source, target_id, target.stop_position)
            begin_moves(planned, folder, sync=self._sync)
            try:
                quarantine_segment()
            except StorageError:
                undo_moves(planned)
                raise
            moves.extend(planned)
            hand_over(folder, *entries)
            return len(moves)

        def quarantine_segment() -> None:
            """Keep the frames in files behind a stop position that was lowered.

            Nothing would tell them from what is left of an empty recording, which is purged.
            """
            for segment in list_segment_files(folder, source_id):
                if segment.base_position >= source.stop_position and (
                    kept := tail.quarantine_segment(segment.path, segment.base_position)
                ):
                    LOGGER.warning("recording %d is migrated: %s", source_id, kept)

        def unlink() -> None:
            finish_moves(moves)
            # Its points are the other's now.
            with contextlib.suppress(StorageError):
                remove_time_index(folder, source_id)

        # The recorder makes a new file where a segment is full.
        next_files = [
            folder / segment_file_name(source_id, base)
            for base in [source.stop_position]
            if _is_segment_base(source, base)
        ]
        tail = StaleTail(folder, target_id, source.stop_position, epoch_ms())
        entries = catalog.entry(source_id), catalog.entry(target_id)
        moves: list[SegmentMove] = []
        count = yield from self._elsewhere(link)
        if source.stop_position == target.start_position:
            catalog.set_start_position(target_id, source.start_position)
        else:
            catalog.set_stop_position(target_id, source.stop_position)
        yield from self._elsewhere(unlink)
        catalog.set_stop_position(source_id, source.start_position)
        requester.send_ok(correlation_id, count)
        self._deletions.release({source_id, target_id})
        if count or next_files:
            self._deletions.delete_unanswered(requester, correlation_id, source_id, next_files)


def _is_segment_base(descriptor: RecordingDescriptor, position: int) -> bool:
    return position == segment_base(descriptor, position)


def _check_migration(source: RecordingDescriptor, target: RecordingDescriptor) -> None:
    """Refuse to join two recordings that are not one stream cut at a segment boundary."""

    def refuse(problem: str) -> ArchiveError:
        return ArchiveError(
            f"{problem}: cannot migrate segments of recording {source.recording_id} to recording"
            f" {target.recording_id}",
            ErrorCode.GENERIC,
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
