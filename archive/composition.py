"""The parts of an archive, composed for its conductor."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.control.feature import Features
from aerotape.archive.control.services import Services
from aerotape.archive.recording.file_worker import FileWorker
from aerotape.archive.recording.recordings import Recordings
from aerotape.archive.recording.segments.deletion import SegmentDeletions
from aerotape.archive.recording.segments.locks import SegmentLocks
from aerotape.archive.recording.segments.operations import SegmentOperations
from aerotape.archive.recording.storage import CatalogChanges
from aerotape.archive.removal import Removals
from aerotape.archive.replay.replay_session import Replays
from aerotape.archive.replay.tokens import ReplayTokens
from aerotape.archive.replication.replications import Replications
from aerotape.waiting import BackgroundTasks

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Mailbox, SessionWorker, Subscription
    from aerotape.archive.agent import Agent
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.control.signals import SignalAudience
    from aerotape.archive.counters import ArchiveCounters
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.recording.storage import StorageSpace
    from aerotape.archive.security.authorisation import GuardedAuthorisation
    from aerotape.catalog.file.catalog import Catalog
    from aerotape.catalog.mark.mark_file import MarkFile


@dataclass(frozen=True, kw_only=True)
class OpenedParts:
    """The parts that an archive has opened when its conductor starts.

    Attributes:
        control_subscriptions: by their registration ids.
        mark_file_worker: the thread that writes the mark file.
        recorder: the native thread that records.
        replayer: the native thread that replays; it may be the same.
    """

    config: ArchiveConfig
    archive_id: int
    archive_dir: Path
    client: AeronClient
    mailbox: Mailbox
    control_subscriptions: Mapping[int, Subscription]
    catalog: Catalog
    mark_file: MarkFile
    mark_file_worker: FileWorker
    counters: ArchiveCounters
    recorder: SessionWorker
    replayer: SessionWorker
    errors: ErrorLog


def compose_services(
    opened: OpenedParts,
    storage: StorageSpace,
    files: FileWorker,
    authorisation: GuardedAuthorisation,
) -> Services:
    """Create what the handlers of requests use, without features.

    Raises:
        AeronError: the driver refuses the channel of the recording events.
    """
    config, client, mailbox = opened.config, opened.client, opened.mailbox
    archive_dir, catalog, errors = opened.archive_dir, opened.catalog, opened.errors
    if config.recording_events_enabled:
        opened.recorder.publish_events(
            client.add_exclusive_publication(
                config.recording_events_channel, config.recording_events_stream_id
            )
        )
    naming = config.thread_naming
    changes = CatalogChanges(archive_dir, mailbox.wake, naming)
    locks = SegmentLocks()
    tasks = BackgroundTasks()
    deletions = SegmentDeletions(
        locks=locks, files=files, tasks=tasks, errors=errors, wake=mailbox.wake, naming=naming
    )
    deletions.delete_left_over(archive_dir, catalog.purged_ids())
    recordings = Recordings(
        config=config,
        archive_id=opened.archive_id,
        archive_dir=archive_dir,
        client=client,
        mailbox=mailbox,
        catalog=catalog,
        recorder=opened.recorder,
        storage=storage,
        changes=changes,
        locks=locks,
        files=files,
        session_counter=opened.counters.recording_sessions,
        errors=errors,
    )
    replays = Replays(
        config=config,
        archive_id=opened.archive_id,
        client=client,
        catalog=catalog,
        recordings=recordings,
        replayer=opened.replayer,
        session_counter=opened.counters.replay_sessions,
        errors=errors,
        deleted_up_to=locks.deleted_to,
    )
    next_id = itertools.count(random.SystemRandom().randrange(1 << 31)).__next__
    replications = Replications(
        config=config,
        archive_id=opened.archive_id,
        client=client,
        catalog=catalog,
        recordings=recordings,
        errors=errors,
        next_id=next_id,
    )
    segments = SegmentOperations(
        archive_dir=archive_dir,
        catalog=catalog,
        locks=locks,
        files=files,
        deletions=deletions,
        changes=changes,
        sync=config.file_sync_level > 0,
    )
    removals = Removals(
        archive_dir=archive_dir,
        catalog=catalog,
        recordings=recordings,
        replays=replays,
        replications=replications,
        segments=segments,
    )
    return Services(
        archive_id=opened.archive_id,
        archive_dir=archive_dir,
        catalog=catalog,
        recordings=recordings,
        replays=replays,
        replay_tokens=ReplayTokens(config.connect_timeout_ns),
        replications=replications,
        segments=segments,
        removals=removals,
        changes=changes,
        imports=FileWorker("import", mailbox.wake, naming),
        tasks=tasks,
        features=Features(),
        errors=errors,
        authorisation=authorisation,
        next_id=next_id,
    )


def retention_agent(
    opened: OpenedParts, services: Services, audience: SignalAudience | None
) -> dict[str, Agent]:
    """Return the agent that applies the retention policy, if there is one."""
    config = opened.config
    if config.retention_file is None:
        return {}
    from aerotape.archive.retention.retention import Retention

    retention = Retention(
        policy_file=config.retention_file,
        interval_ns=config.retention_interval_ns,
        services=services,
        counters=opened.counters.retention,
        wake=opened.mailbox.wake,
        audience=audience,
        naming=config.thread_naming,
    )
    return {"retention": retention}
