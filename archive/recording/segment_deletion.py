"""Segment files deleted for clients: one deletion at a time for each recording.

To remove a large file takes a file system many milliseconds. A thread of its own does that, so
that the conductor can go on; the conductor answers, and says with a DELETE signal when all files
are gone. Until then further deletions of the recording are refused, and so is what would touch
the files. A deletion that the archive's end cuts short names the rest of the files as about to be
deleted, which is quick, and the next start deletes them: nobody then takes them for a recording's.
Shorter work with files, which is done before a client is answered, has another thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aerotape.archive.agent import SOON_NS
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.requester import Requester
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.segment.placement import misplacement
from aerotape.catalog.segment_files import (
    DELETE_SUFFIX,
    file_names,
    parse_any_segment_file_name,
    parse_segment_file_name,
)
from aerotape.catalog.time_index.file import parse_time_index_name
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AerotapeError, StorageError
from aerotape.protocol import NULL_POSITION, NULL_VALUE, ErrorCode

if TYPE_CHECKING:
    from concurrent.futures import Future

_Result = TypeVar("_Result")


class _Deletion:
    def __init__(
        self,
        requester: Requester,
        correlation_id: int,
        recording_id: int,
        paths: list[Path],
        *,
        end_position: int,
    ) -> None:
        self.requester = requester
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.paths = paths
        self.end_position = end_position
        self.is_granted = False
        self.steps: Iterator[None] = iter(())


class SegmentDeletions:
    """All deletions of segment files in progress. For the conductor's thread."""

    def __init__(
        self,
        *,
        errors: ErrorLog,
        wake: Callable[[], None],
    ) -> None:
        """Begin with none.

        Args:
            wake: has `do_work` called soon; called from another thread.
        """
        self._errors = errors
        self._files = FileWorker("archive-files", wake)
        self._deleter = FileWorker("archive-deleter", wake)
        self._deletions: dict[int, _Deletion] = {}
        # Recordings whose segment files others are at work on.
        self._held: set[int] = set()
        self._closing = threading.Event()
        self._is_held_up = False
        self._left_over: Future[list[str]] | None = None

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: a deletion waits for a condition that has to be polled."""
        return SOON_NS if self._is_held_up else None

    def end_position(self, recording_id: int) -> int | None:
        """Return the base position of the last segment that is being deleted; None when none is.

        A recording that ends at or before that position cannot be extended yet.
        """
        deletion = self._deletions.get(recording_id)
        return None if deletion is None else deletion.end_position

    def allows(self, requester: Requester, correlation_id: int, recording_id: int) -> bool:
        """Return whether a deletion may begin; the client is told when another is under way."""
        if recording_id in self._deletions:
            problem = "are being deleted: wait for the DELETE signal"
        elif recording_id in self._held:
            problem = "are being moved or cleared"
        else:
            return True
        requester.send_error(
            correlation_id,
            ErrorCode.GENERIC,
            f"another delete operation in progress for recording id: {recording_id}:"
            f" segments of recording {recording_id} {problem}",
        )
        return False

    def is_held(self, recording_id: int) -> bool:
        """Whether others are at work on a recording's segment files."""
        return recording_id in self._held

    def hold(self, recording_ids: Iterable[int]) -> None:
        """Refuse deletions of these recordings until `release`."""
        self._held.update(recording_ids)

    def release(self, recording_ids: Iterable[int]) -> None:
        """End what `hold` has begun."""
        self._held.difference_update(recording_ids)

    def delete(
        self,
        requester: Requester,
        correlation_id: int,
        recording_id: int,
        paths: Iterable[Path] = (),
        *,
        is_ready: Callable[[], bool] | None = None,
        prepare: Callable[[], list[Path]] | None = None,
        finish: Callable[[], None] | None = None,
        end_position: int = NULL_POSITION,
    ) -> None:
        """Answer a request by deleting files: OK with their number, DELETE when they are gone.

        Ask `allows` first. Without files both are sent at once. A file that is not there counts
        as deleted. One that cannot be deleted is told with an error before the signal.

        Args:
            paths: segment files, in the order in which they are to go.
            is_ready: nothing is done or answered until this says so.
            prepare: called as by `submit` before the answer, for further files; when it raises
                StorageError, that is the answer and nothing is deleted.
            finish: called in the deleting thread when the files are gone; its StorageError is told
                like that of a file.
            end_position: as `SegmentDeletions.end_position`, where that is behind the files.
        """
        deletion = self._new(
            requester, correlation_id, recording_id, list(paths), end_position=end_position
        )
        self._begin(deletion, self._answered(deletion, is_ready, prepare, finish))

    def delete_unanswered(
        self, requester: Requester, correlation_id: int, recording_id: int, paths: Iterable[Path]
    ) -> None:
        """Delete files for a request that is answered elsewhere; DELETE when they are gone.

        As `delete` otherwise; without files the signal is sent at once.
        """
        deletion = self._new(requester, correlation_id, recording_id, list(paths))
        self._begin(deletion, self._removed(deletion))

    def delete_left_over(self, archive_dir: Path, purged: Iterable[int]) -> None:
        """Delete what is still there of what was to be deleted before the archive started.

        That is all of recordings that were purged. Their entries are read only where there are such
        files, for many recordings may have been purged. A segment file that holds frames of another
        place than its name says is left and reported. Of other recordings it is what is named as
        about to be deleted.
        """
        recording_ids = frozenset(purged)
        if recording_ids or any(map(_is_to_go, file_names(archive_dir))):
            self._left_over = self._deleter.submit(
                lambda: self._remove_purged(archive_dir, recording_ids)
            )

    def _new(
        self,
        requester: Requester,
        correlation_id: int,
        recording_id: int,
        paths: list[Path],
        *,
        end_position: int = NULL_POSITION,
    ) -> _Deletion:
        for path in paths:
            parsed = parse_any_segment_file_name(path.name)
            if parsed is not None:
                end_position = max(end_position, parsed[1])
        return _Deletion(requester, correlation_id, recording_id, paths, end_position=end_position)

    def _begin(self, deletion: _Deletion, steps: Iterator[None]) -> None:
        deletion.steps = steps
        self._deletions[deletion.recording_id] = deletion
        self._step(deletion)

    def do_work(self) -> None:
        """Let each deletion take a step."""
        self._is_held_up = False
        if self._left_over is not None and self._left_over.done():
            for problem in self._left_over.result():
                self._errors.record("segments not deleted", problem)
            self._left_over = None
        for deletion in list(self._deletions.values()):
            self._step(deletion)

    def _step(self, deletion: _Deletion) -> None:
        done = True
        try:
            done = next(deletion.steps, True) is True
        except Exception as error:
            self._fail(deletion, f"deletion failed: {error}", exception=error)
        if done:
            del self._deletions[deletion.recording_id]

    # ---- what a deletion does, step by step ---------------------------------------------------

    def _answered(
        self,
        deletion: _Deletion,
        is_ready: Callable[[], bool] | None,
        prepare: Callable[[], list[Path]] | None,
        finish: Callable[[], None] | None,
    ) -> Iterator[None]:
        while is_ready is not None and not is_ready():
            self._is_held_up = True
            yield
        if prepare is not None:
            future = self.submit(prepare)
            while not future.done():
                yield
            error = future.exception()
            if isinstance(error, StorageError):
                self._fail(deletion, str(error))
                return
            deletion.paths += future.result()
        deletion.requester.send_ok(deletion.correlation_id, len(deletion.paths))
        yield from self._removed(deletion, finish)

    def _removed(
        self, deletion: _Deletion, finish: Callable[[], None] | None = None
    ) -> Iterator[None]:
        deletion.is_granted = True
        if deletion.paths or finish is not None:
            future = self._deleter.submit(lambda: self._remove(deletion.paths, finish))
            while not future.done():
                yield
            for problem in future.result():
                self._fail(deletion, problem)
        deletion.requester.send_signal(
            deletion.correlation_id,
            deletion.recording_id,
            NULL_VALUE,
            NULL_POSITION,
            RecordingSignal.DELETE,
        )

    def _fail(
        self, deletion: _Deletion, problem: str, exception: BaseException | None = None
    ) -> None:
        self._errors.record("segments not deleted", problem, exception=exception)
        deletion.requester.send_error(deletion.correlation_id, ErrorCode.GENERIC, problem)

    # ---- the other threads --------------------------------------------------------------------

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Have something done with files in another thread, one thing after the other.

        Files are deleted in yet another, so that nothing that a client waits for comes after many
        of these. `do_work` is called when it is done.
        """
        return self._files.submit(call)

    def _remove(self, paths: list[Path], finish: Callable[[], None] | None) -> list[str]:
        """Delete files; return what has gone wrong."""
        problems: list[str] = []
        for path in paths:
            if self._closing.is_set():
                return problems
            try:
                path.unlink(missing_ok=True)
                if path.suffix != DELETE_SUFFIX:
                    # As an archive leaves it that renames what it is about to delete.
                    path.with_name(path.name + DELETE_SUFFIX).unlink(missing_ok=True)
            except OSError as error:
                problems.append(f"unable to delete segment file: {path}: {error.strerror}")
        try:
            if finish is not None:
                finish()
        except StorageError as error:
            problems.append(str(error))
        return problems

    def _remove_purged(self, archive_dir: Path, purged: frozenset[int]) -> list[str]:
        try:
            names = list(file_names(archive_dir))
            mine = [archive_dir / name for name in names if _is_to_go(name)]
            left = [
                (owner, name)
                for name in names
                if (owner := _owner(name)) is not None and owner in purged and not _is_to_go(name)
            ]
            if not left:
                return self._remove(mine, None)
            # One of its own: the archive's may be given another file meanwhile.
            with Catalog.open(archive_dir, read_only=True) as catalog:
                owners = {owner for owner, _ in left}
                entries = {entry.recording_id: entry for entry in catalog.entries_of(owners)}
        except AerotapeError as error:
            return [f"files of purged recordings: {error}"]
        problems: list[str] = []
        for owner, name in left:
            path, segment = archive_dir / name, parse_segment_file_name(name)
            entry = entries.get(owner)
            reason = ""
            if entry is None:
                reason = "its entry is in the catalog no more"
            elif segment is not None:
                reason = misplacement(entry.descriptor, path, segment[1])
            if reason:
                problems.append(f"left {path}, which is named for a purged recording: {reason}")
            else:
                mine.append(path)
        return problems + self._remove(mine, None)

    def close(self) -> None:
        """Give up what is not done yet, with the file that is being deleted the last to go."""
        self._closing.set()
        self._files.close()
        self._deleter.close()
        for deletion in self._deletions.values():
            if deletion.is_granted:  # else nobody was told that they would go
                for path in deletion.paths:
                    _name_as_to_go(path)
        self._deletions.clear()


def _is_to_go(name: str) -> bool:
    """Whether a file is named as a segment file that is about to be deleted."""
    return name.endswith(DELETE_SUFFIX) and parse_any_segment_file_name(name) is not None


def _name_as_to_go(path: Path) -> None:
    """Name a segment file as about to be deleted, if it is still there and that can be done."""
    if not _is_to_go(path.name):
        with contextlib.suppress(OSError):
            path.rename(path.with_name(path.name + DELETE_SUFFIX))


def _owner(name: str) -> int | None:
    """Return the recording that a file goes with when the recording does."""
    parsed = parse_any_segment_file_name(name)
    return parse_time_index_name(name) if parsed is None else parsed[0]
