"""Deletion of segment files: one deletion at a time per recording.

To remove a large file takes a file system many milliseconds, so a dedicated thread does it. A
deletion reports the number of files before they are deleted, and its end when all are gone. Until
then further deletions of the recording are refused, and so are other changes of its files. A
deletion that has reported its files is completed before the archive closes. Shorter work on files
has another thread, so that it does not wait for deletions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.recording.segments.locks import SegmentLocks
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.segment.placement import split_by_place
from aerotape.catalog.segment_files import (
    DELETE_SUFFIX,
    SegmentFile,
    file_names,
    parse_any_segment_file_name,
    parse_segment_file_name,
)
from aerotape.catalog.time_index_upkeep import parse_index_name
from aerotape.errors import AerotapeError, ArchiveError, StorageError
from aerotape.protocol import NULL_POSITION
from aerotape.waiting import BackgroundTasks, Pause, Task, await_future

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aerotape.archive.threads import ThreadNaming


class Deletion:
    """A deletion in progress. It is completed whether or not a task waits for it.

    Attributes:
        recording_id: the recording.
        counted: the number of files, once they are known.
        deleted: texts for the files that could not be deleted, once the others are gone.

    Both fail with ArchiveError when nothing can be deleted.
    """

    def __init__(self, recording_id: int, wake: Callable[[], None]) -> None:
        from concurrent.futures import Future

        self.recording_id = recording_id
        self.counted: Future[int] = Future()
        self.deleted: Future[list[str]] = Future()
        for each in (self.counted, self.deleted):
            each.set_running_or_notify_cancel()  # a task that ends does not cancel it
            # A waiting task may have been polled already in this duty cycle.
            each.add_done_callback(lambda _: wake())

    def begun(self) -> Task[tuple[int, Deletion]]:
        """Wait until the files are known; return their number, and the deletion."""
        return (yield from await_future(self.counted)), self


class SegmentDeletions:
    """All deletions of segment files in progress. For the conductor's thread."""

    def __init__(
        self,
        *,
        locks: SegmentLocks,
        files: FileWorker,
        tasks: BackgroundTasks,
        errors: ErrorLog,
        wake: Callable[[], None],
        naming: ThreadNaming = "classic",
    ) -> None:
        """Create it without deletions.

        Args:
            files: prepares deletions.
            tasks: advances them.
            wake: makes the conductor continue the tasks soon; called from other threads.
            naming: of the thread that deletes.
        """
        self._locks = locks
        self._files = files
        self._errors = errors
        self._deleter = FileWorker("delete", wake, naming)
        self._tasks = tasks
        self._wake = wake

    def delete(
        self,
        recording_id: int,
        prepare: Callable[[], list[Path]],
        *,
        is_ready: Callable[[], bool] = lambda: True,
        finish: Callable[[], None] = lambda: None,
        end_position: int = NULL_POSITION,
    ) -> Deletion:
        """Delete files of a recording that is free (`SegmentLocks.check_free`).

        A missing file counts as deleted.

        Args:
            prepare: called in the thread for short work on files; returns the files in the order
                of their deletion. When it raises StorageError nothing is deleted.
            is_ready: nothing is prepared until it returns True.
            finish: called in the deleting thread when the files are gone; its StorageError is
                reported like that of a file.
            end_position: the base position of the last segment that is deleted.
        """
        deletion = Deletion(recording_id, self._wake)

        def task() -> Task[None]:
            try:
                while not is_ready():
                    yield Pause()
                paths = yield from await_future(self._files.submit(prepare))
                deletion.counted.set_result(len(paths))
                removing = self._deleter.submit(lambda: _remove(paths, finish))
                problems = yield from await_future(removing)
                for problem in problems:
                    self._errors.record("segments not deleted", problem)
                deletion.deleted.set_result(problems)
            except Exception as error:
                is_known = isinstance(error, StorageError)
                problem = str(error) if is_known else f"deletion failed: {error}"
                self._errors.record(
                    "segments not deleted", problem, exception=None if is_known else error
                )
                for each in (deletion.counted, deletion.deleted):
                    if not each.done():
                        each.set_exception(ArchiveError(problem))
            finally:
                self._locks.end_deletion(recording_id)

        self._locks.begin_deletion(recording_id, end_position)
        self._tasks.start(task())
        return deletion

    def delete_left_over(self, archive_dir: Path, purged: Iterable[int]) -> None:
        """Delete the files whose deletion an earlier run did not complete.

        These are all files of purged recordings, and segment files renamed for deletion. A segment
        file with frames of another place than its name says is left and reported.
        """
        recording_ids = frozenset(purged)

        def deletion() -> Task[None]:
            removing = self._deleter.submit(lambda: _remove_left_over(archive_dir, recording_ids))
            for problem in (yield from await_future(removing)):
                self._errors.record("segments not deleted", problem)

        self._tasks.start(deletion())

    def close(self) -> None:
        """Complete the deletions that have reported their files."""
        self._deleter.close(is_completed=True)


def _is_marked(name: str) -> bool:
    """Whether a file is a segment file renamed for deletion."""
    return name.endswith(DELETE_SUFFIX) and parse_any_segment_file_name(name) is not None


def _remove(paths: list[Path], finish: Callable[[], None] = lambda: None) -> list[str]:
    """Delete files; return the problems."""
    problems: list[str] = []
    for path in paths:
        try:
            path.unlink(missing_ok=True)
            if path.suffix != DELETE_SUFFIX:
                # Left by an archive that renames files before their deletion.
                path.with_name(path.name + DELETE_SUFFIX).unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"unable to delete segment file: {path}: {error.strerror}")
    try:
        finish()
    except StorageError as error:
        problems.append(str(error))
    return problems


def _remove_left_over(archive_dir: Path, purged: frozenset[int]) -> list[str]:
    paths: list[Path] = []
    problems: list[str] = []
    segments: dict[int, list[SegmentFile]] = {}
    try:
        for name in file_names(archive_dir):
            path, segment = archive_dir / name, parse_segment_file_name(name)
            if _is_marked(name) or parse_index_name(name) in purged:
                paths.append(path)
            elif segment is not None and segment[0] in purged:
                segments.setdefault(segment[0], []).append(SegmentFile(path, segment[1]))
        if segments:
            # A separate mapping: the conductor may replace that of the archive meanwhile.
            with Catalog.open(archive_dir, read_only=True) as catalog:
                for entry in catalog.entries_of(segments):
                    own, left = split_by_place(entry.descriptor, segments[entry.recording_id])
                    paths += own
                    problems += left
    except AerotapeError as error:
        return [f"files of purged recordings: {error}"]
    return problems + _remove(paths)
