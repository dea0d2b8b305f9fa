"""The parts of an archive that change segment files, without the archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aerotape.archive.control.feature import Features
from aerotape.archive.control.requests.handling import respond_later
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.recording.segments.deletion import Deletion, SegmentDeletions
from aerotape.archive.recording.segments.locks import SegmentLocks
from aerotape.archive.recording.segments.operations import SegmentOperations
from aerotape.archive.recording.storage import CatalogChanges
from aerotape.archive.removal import Removals
from aerotape.catalog.file.catalog import Catalog
from aerotape.waiting import BackgroundTasks, Task


class SegmentParts:
    """Locks, file worker, deletions and moves of a catalog, and the responses of their requests."""

    def __init__(
        self,
        archive_dir: Path,
        catalog: Any = None,
        errors: ErrorLog | None = None,
        wake: Callable[[], None] = lambda: None,
        *,
        sync: bool = False,
    ) -> None:
        self._errors = errors or ErrorLog()
        self.tasks = BackgroundTasks()
        self.locks = SegmentLocks()
        self.files = FileWorker("files", wake)
        self.deletions = SegmentDeletions(
            locks=self.locks,
            files=self.files,
            tasks=self.tasks,
            errors=self._errors,
            wake=wake,
        )
        self.changes = CatalogChanges(archive_dir, wake)
        self.moves = SegmentOperations(
            archive_dir=archive_dir,
            catalog=catalog,
            locks=self.locks,
            files=self.files,
            deletions=self.deletions,
            changes=self.changes,
            sync=sync,
        )

    def services(
        self, catalog: Catalog, recordings: Any, replays: Any, replications: Any, **others: Any
    ) -> Any:
        """Return services for handlers, without features."""
        removals = Removals(
            archive_dir=self.moves.archive_dir,
            catalog=catalog,
            recordings=recordings,
            replays=replays,
            replications=replications,
            segments=self.moves,
        )
        return SimpleNamespace(
            archive_dir=self.moves.archive_dir,
            catalog=catalog,
            recordings=recordings,
            replays=replays,
            replications=replications,
            segments=self.moves,
            removals=removals,
            tasks=self.tasks,
            features=Features(),
            **others,
        )

    def respond(
        self, client: Any, correlation_id: int, task: Task[tuple[int, Deletion | None]]
    ) -> None:
        """Run the task of a request as its handler does."""
        services: Any = SimpleNamespace(tasks=self.tasks, errors=self._errors)
        respond_later(services, client, correlation_id, task)

    def attach(self, client: Any, correlation_id: int, recording_id: int) -> None:
        """Attach segments for a client."""
        self.respond(client, correlation_id, self.moves.attach(recording_id))

    def migrate(self, client: Any, correlation_id: int, source_id: int, target_id: int) -> None:
        """Migrate segments for a client."""
        self.respond(client, correlation_id, self.moves.migrate(source_id, target_id))

    def do_work(self) -> None:
        """Work as the conductor does in a duty cycle."""
        self.tasks.do_work()

    def close(self) -> None:
        """Close as the conductor does."""
        self.changes.close()
        self.files.close()
        self.deletions.close()
        self.tasks.close()
