"""The catalog compacted while the archive runs, when somebody has asked for it.

Another thread looks which purged recordings have no file left. The conductor then leaves those out
of a new catalog file, which takes the place of the old one at once; what was purged meanwhile, or
is being deleted, waits for the next time. Nothing else changes: ids are not given out again, valid
recordings and those marked invalid stay as they are, and who has the old file open keeps that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aerotape.archive.error_log import LOGGER, ErrorLog
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.compaction_request import answer, take_request
from aerotape.errors import AerotapeError

if TYPE_CHECKING:
    from aerotape.catalog.maintenance.orphans import Compaction

_INTERVAL_NS: Final = 1_000_000_000


class CatalogCompaction:
    """Looks for requests and serves them. For the conductor's thread."""

    def __init__(
        self,
        *,
        archive_dir: Path,
        catalog: Catalog,
        capacity_bytes: int,
        is_deleting: Callable[[int], bool],
        errors: ErrorLog,
        wake: Callable[[], None],
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Begin to look.

        Args:
            capacity_bytes: the length that the catalog file is to have at least.
            is_deleting: whether segment files of a recording are being deleted.
            wake: has `do_work` called soon; called from another thread.
        """
        self._archive_dir = archive_dir
        self._catalog = catalog
        self._capacity_bytes = capacity_bytes
        self._is_deleting = is_deleting
        self._errors = errors
        self._worker = FileWorker("archive-compaction", wake)
        self._monotonic_ns = monotonic_ns
        self._due_ns = monotonic_ns()
        self._steps: Iterator[None] | None = None

    def do_work(self) -> None:
        """Look for a request once a second, or go on with one."""
        if self._steps is None:
            if self._monotonic_ns() < self._due_ns:
                return
            self._due_ns = self._monotonic_ns() + _INTERVAL_NS
            try:
                word = take_request(self._archive_dir)
            except OSError as error:
                self._errors.record("catalog not compacted", error)
                return
            if word is None:
                return
            self._steps = self._serve(word)
        try:
            next(self._steps)
        except StopIteration:
            self._steps = None
        except BaseException:
            self._steps = None
            raise

    def _serve(self, word: str) -> Iterator[None]:
        future = self._worker.submit(self._plan)
        yield
        while not future.done():
            yield
        before = self._catalog.capacity_bytes
        try:
            plan = future.result()
            gone = self._compact(plan)
        except AerotapeError as error:
            self._errors.record("catalog not compacted", error)
            facts: dict[str, object] = {"problem": str(error)}
        else:
            facts = {
                "recordings_removed": gone,
                "capacity_bytes_before": before,
                "capacity_bytes": self._catalog.capacity_bytes,
            }
            LOGGER.info("catalog compacted: %d purged recordings are left out", len(gone))
        try:
            answer(self._archive_dir, word, facts)
        except OSError as error:
            self._errors.record("compaction not answered", error)

    def _plan(self) -> Compaction:
        from aerotape.catalog.maintenance.orphans import plan_online_compaction

        with Catalog.open(self._archive_dir, read_only=True) as catalog:
            return plan_online_compaction(catalog, self._archive_dir)

    def _compact(self, plan: Compaction) -> list[int]:
        only = {each for each in plan.recording_ids if not self._is_deleting(each)}
        if not only:
            return []
        return self._catalog.leave_out(only, self._capacity_bytes)

    def close(self) -> None:
        """Give up what has been asked for."""
        self._steps = None
        self._worker.close()
