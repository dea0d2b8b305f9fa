"""The parts of the archive that the handlers of control requests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from aerotape.archive.control.feature import Features
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.recording.file_worker import FileWorker
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.segments.operations import SegmentOperations
    from aerotape.archive.recording.storage import CatalogChanges
    from aerotape.archive.removal import Removals
    from aerotape.archive.replay.replay_session import Replays
    from aerotape.archive.replay.tokens import ReplayTokens
    from aerotape.archive.replication.replications import Replications
    from aerotape.archive.security.authorisation import GuardedAuthorisation
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.waiting import BackgroundTasks


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that a request handler may query and change.

    Attributes:
        imports: the thread that reads the directories of imported recordings.
        tasks: what takes longer than a duty cycle.
        next_id: returns an unused id for a control session or a replication.
    """

    archive_id: int
    archive_dir: Path
    catalog: Catalog
    recordings: Recordings
    replays: Replays
    replay_tokens: ReplayTokens
    replications: Replications
    segments: SegmentOperations
    removals: Removals
    changes: CatalogChanges
    imports: FileWorker
    tasks: BackgroundTasks
    features: Features
    errors: ErrorLog
    authorisation: GuardedAuthorisation
    next_id: Callable[[], int]
