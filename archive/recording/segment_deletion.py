"""Deletion of segment files for clients: one deletion at a time per recording.

To remove a large file takes a file system many milliseconds, so a dedicated thread does it. The
conductor responds with the number of files, and sends a DELETE signal when all are gone. Until then
further deletions of the recording are refused, and so are other changes of its files. A deletion
that has its OK is completed before the archive closes. Shorter work on files, done before a
response, has another thread, so that it does not wait for deletions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aerotape.archive.agent import SOON_NS
from aerotape.archive.background_tasks import BackgroundTasks, Task, outcome
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.requester import Requester
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.indexes import parse_index_name
from aerotape.catalog.segment.placement import sort_out
from aerotape.catalog.segment_files import (
    DELETE_SUFFIX,
    SegmentFile,
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
        # The base position of the last segment being deleted, by recording.
        self._deletions: dict[int, int] = {}
        self._tasks = BackgroundTasks()
        # Recordings whose segment files are being moved or cleared.
        self._held: set[int] = set()
        self._is_held_up = False

    @property
    def wants_within_ns(self) -> int | None:
        """As `Agent.wants_within_ns`: a deletion waits for a condition that has to be polled."""
        return SOON_NS if self._is_held_up else None

    def end_position(self, recording_id: int) -> int | None:
        """Return the base position of the last segment being deleted; None without a deletion.

        A recording whose stop position is not past it cannot be extended yet.
        """
        return self._deletions.get(recording_id)

    def allows(self, requester: Requester, correlation_id: int, recording_id: int) -> bool:
        """Return whether a deletion may begin; if not, the client receives an error."""
        if recording_id in self._deletions:
            problem = (
                f"another delete operation in progress for recording id: {recording_id}: wait for"
                " the DELETE signal"
            )
        elif recording_id in self._held:
            problem = (
                f"segment files of recording {recording_id} are being attached, migrated or"
                " prepared for an extension: try again"
            )
        else:
            return True
        requester.send_error(correlation_id, ErrorCode.GENERIC, problem)
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
        prepare: Callable[[], list[Path]],
        *,
        is_ready: Callable[[], bool] = lambda: True,
        finish: Callable[[], None] = lambda: None,
        end_position: int = NULL_POSITION,
        is_answered: bool = False,
    ) -> None:
        """Delete files for a request: OK with their number, DELETE when they are gone.

        Call `allows` first. A missing file counts as deleted; a file that cannot be deleted is
        reported by an error before the signal.

        Args:
            prepare: called as by `submit` before the response, returns the files in the order of
                their deletion; its StorageError is sent instead, and nothing is deleted.
            is_ready: nothing is prepared or sent until it returns True.
            finish: called in the deleting thread when the files are gone; its StorageError is
                reported like that of a file.
            end_position: as `SegmentDeletions.end_position`.
            is_answered: the request has its response already; only DELETE is sent.
        """

        def fail(problem: str, exception: BaseException | None = None) -> None:
            self._errors.record("segments not deleted", problem, exception=exception)
            requester.send_error(correlation_id, ErrorCode.GENERIC, problem)

        def deletion() -> Task[None]:
            try:
                while not is_ready():
                    self._is_held_up = True
                    yield
                paths = yield from outcome(self.submit(prepare))
                if not is_answered:
                    requester.send_ok(correlation_id, len(paths))
                removing = self._deleter.submit(lambda: _remove(paths, finish))
                for problem in (yield from outcome(removing)):
                    fail(problem)
                requester.send_signal(
                    correlation_id, recording_id, NULL_VALUE, NULL_POSITION, RecordingSignal.DELETE
                )
            except StorageError as error:
                fail(str(error))
            except Exception as error:
                fail(f"deletion failed: {error}", error)
            finally:
                del self._deletions[recording_id]

        self._deletions[recording_id] = end_position
        self._tasks.start(deletion())

    def delete_left_over(self, archive_dir: Path, purged: Iterable[int]) -> None:
        """Delete the files whose deletion an earlier run did not complete.

        These are all files of purged recordings, and segment files renamed for deletion. A segment
        file with frames of another place than its name says is left and reported.
        """
        recording_ids = frozenset(purged)

        def deletion() -> Task[None]:
            removing = self._deleter.submit(lambda: _remove_left_over(archive_dir, recording_ids))
            for problem in (yield from outcome(removing)):
                self._errors.record("segments not deleted", problem)

        self._tasks.start(deletion())

    def do_work(self) -> None:
        """Advance each deletion by one step."""
        self._is_held_up = False
        self._tasks.advance()

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Call a function in the thread for short work on files; `do_work` follows."""
        return self._files.submit(call)

    def close(self) -> None:
        """Complete the deletions that clients have an OK for; cancel the others."""
        self._files.close()
        self._deleter.close(is_completed=True)
        self._tasks.close()


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
                    own, left = sort_out(entry.descriptor, segments[entry.recording_id])
                    paths += own
                    problems += left
    except AerotapeError as error:
        return [f"files of purged recordings: {error}"]
    return problems + _remove(paths)
