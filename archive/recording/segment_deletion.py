"""Deletion of segment files for clients: one deletion at a time per recording.

To remove a large file takes a file system many milliseconds, so a dedicated thread does it. The
conductor responds with the number of files, and sends a DELETE signal when all are gone. Until then
further deletions of the recording are refused, and so are other changes of its files. A deletion
that is cut short when the archive closes renames the rest of the files for deletion, which is
quick, and the next start deletes them. Shorter work on files, done before a response, has another
thread, so that it does not wait for deletions.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aerotape.archive.agent import SOON_NS
from aerotape.archive.background_tasks import BackgroundTasks, Task, outcome
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.requester import Requester
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.indexes import parse_index_name
from aerotape.catalog.segment.placement import misplacement
from aerotape.catalog.segment_files import (
    DELETE_SUFFIX,
    file_names,
    parse_any_segment_file_name,
    parse_segment_file_name,
)
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import AerotapeError, StorageError
from aerotape.protocol import NULL_POSITION, NULL_VALUE, ErrorCode

if TYPE_CHECKING:
    from concurrent.futures import Future

_Result = TypeVar("_Result")


@dataclass(eq=False)
class _Deletion:
    requester: Requester
    correlation_id: int
    recording_id: int
    paths: list[Path]
    end_position: int
    is_granted: bool = False


class SegmentDeletions:
    """All deletions of segment files in progress. For the conductor's thread."""

    def __init__(self, *, errors: ErrorLog, wake: Callable[[], None]) -> None:
        """Create it without deletions.

        Args:
            wake: makes the conductor call `do_work` soon; called from other threads.
        """
        self._errors = errors
        self._files = FileWorker("archive-files", wake)
        self._deleter = FileWorker("archive-deleter", wake)
        self._deletions: dict[int, _Deletion] = {}
        self._tasks = BackgroundTasks()
        # Recordings whose segment files are being moved or cleared.
        self._held: set[int] = set()
        self._closing = threading.Event()
        self._is_held_up = False

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: a deletion waits for a condition that has to be polled."""
        return SOON_NS if self._is_held_up else None

    def end_position(self, recording_id: int) -> int | None:
        """Return the base position of the last segment being deleted; None without a deletion.

        A recording whose stop position is not past it cannot be extended yet.
        """
        deletion = self._deletions.get(recording_id)
        return None if deletion is None else deletion.end_position

    def allows(self, requester: Requester, correlation_id: int, recording_id: int) -> bool:
        """Return whether a deletion may begin; if not, the client receives an error."""
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
        """Whether a recording's segment files are being moved or cleared."""
        return recording_id in self._held

    def hold(self, recording_ids: Iterable[int]) -> None:
        """Refuse deletions of these recordings until `release`."""
        self._held.update(recording_ids)

    def release(self, recording_ids: Iterable[int]) -> None:
        """Allow deletions of these recordings again."""
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
        """Delete files for a request: OK with their number, DELETE when they are gone.

        Call `allows` first. Without files both are sent at once. A missing file counts as
        deleted; a file that cannot be deleted is reported by an error before the signal.

        Args:
            paths: segment files, in the order of their deletion.
            is_ready: nothing is deleted or sent until it returns True.
            prepare: called as by `submit` before the response, returns further files; its
                StorageError is sent instead, and nothing is deleted.
            finish: called in the deleting thread when the files are gone; its StorageError is
                reported like that of a file.
            end_position: as `SegmentDeletions.end_position`, if that is past the files.
        """
        deletion = _Deletion(requester, correlation_id, recording_id, list(paths), end_position)
        self._start(deletion, self._answered(deletion, is_ready, prepare, finish))

    def delete_unanswered(
        self, requester: Requester, correlation_id: int, recording_id: int, paths: Iterable[Path]
    ) -> None:
        """As `delete`, for a request that has its response already: only DELETE is sent."""
        deletion = _Deletion(requester, correlation_id, recording_id, list(paths), NULL_POSITION)
        self._start(deletion, self._removed(deletion))

    def delete_left_over(self, archive_dir: Path, purged: Iterable[int]) -> None:
        """Delete the files whose deletion an earlier run did not complete.

        These are all files of purged recordings, and segment files renamed for deletion. A segment
        file with frames of another place than its name says is left and reported.
        """
        recording_ids = frozenset(purged)
        # Many recordings may have been purged: their entries are read only for existing files.
        if recording_ids or any(map(_is_marked, file_names(archive_dir))):
            self._tasks.start(self._left_over_removed(archive_dir, recording_ids))

    def _start(self, deletion: _Deletion, task: Task[None]) -> None:
        for path in deletion.paths:
            parsed = parse_any_segment_file_name(path.name)
            if parsed is not None:
                deletion.end_position = max(deletion.end_position, parsed[1])
        self._deletions[deletion.recording_id] = deletion
        self._tasks.start(self._guarded(deletion, task))

    def do_work(self) -> None:
        """Advance each deletion by one step."""
        self._is_held_up = False
        self._tasks.advance()

    # ---- the tasks ----------------------------------------------------------------------------

    def _guarded(self, deletion: _Deletion, task: Task[None]) -> Task[None]:
        try:
            yield from task
        except Exception as error:
            self._fail(deletion, f"deletion failed: {error}", exception=error)
        finally:
            self._deletions.pop(deletion.recording_id, None)

    def _answered(
        self,
        deletion: _Deletion,
        is_ready: Callable[[], bool] | None,
        prepare: Callable[[], list[Path]] | None,
        finish: Callable[[], None] | None,
    ) -> Task[None]:
        while is_ready is not None and not is_ready():
            self._is_held_up = True
            yield
        if prepare is not None:
            try:
                deletion.paths.extend((yield from outcome(self.submit(prepare))))
            except StorageError as error:
                self._fail(deletion, str(error))
                return
        deletion.requester.send_ok(deletion.correlation_id, len(deletion.paths))
        yield from self._removed(deletion, finish)

    def _removed(self, deletion: _Deletion, finish: Callable[[], None] | None = None) -> Task[None]:
        deletion.is_granted = True
        if deletion.paths or finish is not None:
            removing = self._deleter.submit(lambda: self._remove(deletion.paths, finish))
            for problem in (yield from outcome(removing)):
                self._fail(deletion, problem)
        deletion.requester.send_signal(
            deletion.correlation_id,
            deletion.recording_id,
            NULL_VALUE,
            NULL_POSITION,
            RecordingSignal.DELETE,
        )

    def _left_over_removed(self, archive_dir: Path, purged: frozenset[int]) -> Task[None]:
        removing = self._deleter.submit(lambda: self._remove_left_over(archive_dir, purged))
        for problem in (yield from outcome(removing)):
            self._errors.record("segments not deleted", problem)

    def _fail(
        self, deletion: _Deletion, problem: str, exception: BaseException | None = None
    ) -> None:
        self._errors.record("segments not deleted", problem, exception=exception)
        deletion.requester.send_error(deletion.correlation_id, ErrorCode.GENERIC, problem)

    # ---- the other threads --------------------------------------------------------------------

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Call a function in the thread for short work on files; `do_work` follows."""
        return self._files.submit(call)

    def _remove(self, paths: list[Path], finish: Callable[[], None] | None) -> list[str]:
        """Delete files; return the problems."""
        problems: list[str] = []
        for path in paths:
            if self._closing.is_set():
                return problems
            try:
                path.unlink(missing_ok=True)
                if path.suffix != DELETE_SUFFIX:
                    # Left by an archive that renames files before their deletion.
                    path.with_name(path.name + DELETE_SUFFIX).unlink(missing_ok=True)
            except OSError as error:
                problems.append(f"unable to delete segment file: {path}: {error.strerror}")
        try:
            if finish is not None:
                finish()
        except StorageError as error:
            problems.append(str(error))
        return problems

    def _remove_left_over(self, archive_dir: Path, purged: frozenset[int]) -> list[str]:
        try:
            names = list(file_names(archive_dir))
            paths = [archive_dir / name for name in names if _is_marked(name)]
            left = [
                (owner, name)
                for name in names
                if (owner := _owner(name)) is not None and owner in purged and not _is_marked(name)
            ]
            if not left:
                return self._remove(paths, None)
            # A separate mapping: the conductor may replace that of the archive meanwhile.
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
                reason = "its entry is no longer in the catalog"
            elif segment is not None:
                reason = misplacement(entry.descriptor, path, segment[1])
            if reason:
                problems.append(f"left {path}, which is named for a purged recording: {reason}")
            else:
                paths.append(path)
        return problems + self._remove(paths, None)

    def close(self) -> None:
        """Cancel the deletions after the current file; mark the other files for the next start."""
        self._closing.set()
        self._files.close()
        self._deleter.close()
        for deletion in self._deletions.values():
            if deletion.is_granted:  # the client has received OK
                for path in deletion.paths:
                    _mark(path)
        self._deletions.clear()


def _is_marked(name: str) -> bool:
    """Whether a file is a segment file renamed for deletion."""
    return name.endswith(DELETE_SUFFIX) and parse_any_segment_file_name(name) is not None


def _mark(path: Path) -> None:
    """Rename a segment file for deletion, if it is there and that is possible."""
    if not _is_marked(path.name):
        with contextlib.suppress(OSError):
            path.rename(path.with_name(path.name + DELETE_SUFFIX))


def _owner(name: str) -> int | None:
    """Return the recording with which a file is deleted."""
    parsed = parse_any_segment_file_name(name)
    return parse_index_name(name) if parsed is None else parsed[0]
