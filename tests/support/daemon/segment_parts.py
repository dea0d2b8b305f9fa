"""The parts of an archive that change segment files, without the archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aerotape.archive.control.later_responses import LaterResponses
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.recording.removal import Removals
from aerotape.archive.recording.segments.deletion import SegmentDeletions
from aerotape.archive.recording.segments.locks import SegmentLocks
from aerotape.archive.recording.segments.moves import SegmentMoves
from aerotape.archive.recording.storage_gate import StorageGate
from aerotape.catalog.file.catalog import Catalog


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
        errors = errors or ErrorLog()
        self.locks = SegmentLocks()
        self.files = FileWorker("archive-files", wake)
        self.deletions = SegmentDeletions(
            locks=self.locks, files=self.files, errors=errors, wake=wake
        )
        self.gate = StorageGate(archive_dir, wake)
        self.moves = SegmentMoves(
            archive_dir=archive_dir,
            catalog=catalog,
            locks=self.locks,
            files=self.files,
            deletions=self.deletions,
            gate=self.gate,
            sync=sync,
        )
        self.later = LaterResponses(errors)

    def services(
        self, catalog: Catalog, recordings: Any, replays: Any, replications: Any, **others: Any
    ) -> Any:
        """Return services for handlers, without extensions."""
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
            later=self.later,
            extensions=SimpleNamespace(check_recording=lambda recording_id: None, handlers={}),
            **others,
        )

    def attach(self, client: Any, correlation_id: int, recording_id: int) -> None:
        """Attach segments for a client."""
        self.later.begin(client, correlation_id, self.moves.attach(recording_id))

    def migrate(self, client: Any, correlation_id: int, source_id: int, target_id: int) -> None:
        """Migrate segments for a client."""
        self.later.begin(client, correlation_id, self.moves.migrate(source_id, target_id))

    def do_work(self) -> None:
        """Work as the conductor does in a duty cycle."""
        self.deletions.do_work()
        self.later.do_work()

    def close(self) -> None:
        """Close as the conductor does."""
        self.gate.close()
        self.files.close()
        self.deletions.close()
        self.later.close()
