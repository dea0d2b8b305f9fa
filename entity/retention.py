"""Retention of a topic's log: old segments are purged, but not before they are replicated.

A log that nobody replicates any more still has to serve readers, so by default nothing past the
slowest pointer is purged. That is how long replication may be down without a loss.

Also expiry: journals whose last append is `expireAfter` ago are purged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from aerotape.catalog.segment.migrate import base_positions
from aerotape.client.client import access
from aerotape.codecs.entity.messages import read_header
from aerotape.entity.log.archive import LogArchive
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.topic import existing_recordings_of
from aerotape.errors import ArchiveError, ConfigurationError, EntityError
from aerotape.waiting import Pause, Task, run

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.client.client import Client
    from aerotape.entity.blocking.entities import Entities

_NS_PER_MS: Final = 1_000_000
_REPLAYS_END_NS: Final = 5_000_000_000
_RETRY_NS: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class PartitionPurge:
    """The outcome for one partition.

    Attributes:
        partition: its index.
        recording_id: its recording.
        start_position: where it begins now, bytes.
        segment_files: the number of files deleted, or to delete.
        replicated_to: the slowest pointer, bytes; None: not replicated, or not considered.
        held_files: older files that are not deleted because they are not replicated.
    """

    partition: int
    recording_id: int
    start_position: int
    segment_files: int
    replicated_to: int | None
    held_files: int


def retain(
    client: Client,
    topic: str,
    stores: Sequence[EntityStore],
    max_age_ns: int,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> list[PartitionPurge]:
    """Purge the segments of a topic whose records are all older than `max_age_ns`.

    The age of a record is that of its action. The segment being written is never purged. All stores
    and partitions are checked before anything is purged.

    Args:
        client: of the archive.
        topic: the topic's name.
        stores: of all replicators of the topic; the slowest pointer counts, and a store without a
            pointer for a partition holds all of it.
        max_age_ns: nanoseconds.
        force: purge also what is not replicated.
        dry_run: only report.

    Raises:
        ConfigurationError: no store, and not `force`.
        EntityError: the topic has no recording, or a pointer is past the end of one, so that the
            store is that of another log.
        EntityStoreError: a store does not respond.
        ArchiveError: the archive refuses: a replay has not passed a segment.
    """
    if not stores and not force:
        raise ConfigurationError(
            "no store: its pointers limit what is purged; give stores, or force",
            "store",
        ).naming("stores", "force")
    cutoff_ms = (time.time_ns() - max_age_ns) // _NS_PER_MS
    found = existing_recordings_of(topic, client.list_recordings())
    # Before the ends of the recordings, which no pointer of the topic's own stores is past then.
    pointers = [(store, store.pointers(topic)) for store in stores]
    planned = []
    for partition, recording in found.items():
        end = client.max_recorded_position(recording.recording_id)
        reached = [(store, each.get(partition.index)) for store, each in pointers]
        for store, pointer in reached:
            if pointer is not None and pointer.next_position > end and not force:
                raise EntityError(
                    f"{partition} is replicated up to {pointer.next_position} in namespace"
                    f" {store.options.namespace} of {store.url}, but recording"
                    f" {recording.recording_id} ends at {end}: the store is that of another log;"
                    " check its URL",
                    topic,
                )
        slowest = min(
            (-1 if each is None else each.next_position for _, each in reached), default=-1
        )
        aged = _aged_segments(client, recording, end, cutoff_ms)
        allowed = [base for base in aged if force or base <= slowest]
        planned.append(
            PartitionPurge(
                partition.index,
                recording.recording_id,
                allowed[-1] if allowed else recording.start_position,
                len(allowed),
                None if slowest < 0 else slowest,
                len(aged) - len(allowed),
            )
        )
    return planned if dry_run else [_purged(client, each) for each in planned]


def _purged(client: Client, planned: PartitionPurge) -> PartitionPurge:
    """Do what is planned for a partition."""
    if not planned.segment_files:
        return planned
    archive = LogArchive(access(client))
    files = run(_purge(archive, planned.recording_id, planned.start_position))
    return replace(planned, segment_files=files)


def _purge(archive: LogArchive, recording_id: int, new_start_position: int) -> Task[int]:
    """Purge segments; retry while the archive ends the replays of `_first_timestamp`."""
    deadline_ns = time.monotonic_ns() + _REPLAYS_END_NS
    while True:
        try:
            return (yield from archive.purge_segments(recording_id, new_start_position))
        except ArchiveError:
            if time.monotonic_ns() >= deadline_ns:
                raise
        yield Pause(_RETRY_NS)


def _aged_segments(
    client: Client, recording: RecordingDescriptor, end: int, cutoff_ms: int
) -> list[int]:
    """Return the segment base positions up to which all records are older than a time."""
    aged = []
    for base in base_positions(recording, recording.start_position, end)[1:]:
        written_ms = _first_timestamp(client, recording.recording_id, base, end)
        if written_ms is None or written_ms > cutoff_ms:
            break
        aged.append(base)
    return aged


def _first_timestamp(client: Client, recording_id: int, position: int, end: int) -> int | None:
    """Return the time of the first action that begins at or after a position; None: there is none.

    Milliseconds since the epoch.
    """
    if position >= end:
        return None
    with closing(client.replay(recording_id, position, end - position, follow=False)) as messages:
        message = next(messages, None)
    return None if message is None else read_header(message.payload).timestamp_ms


@dataclass(frozen=True, slots=True)
class Expired:
    """A journal that has expired.

    Attributes:
        id: the entity's id.
        expires_ms: when it expired, milliseconds since the epoch.
        is_purged: whether a purge was written; not if the journal was changed meanwhile.
    """

    id: str
    expires_ms: int
    is_purged: bool


def purge_expired(
    entities: Entities, store: EntityStore, now_ms: int | None = None, *, dry_run: bool = False
) -> Iterator[Expired]:
    """Write a purge for each expired journal of a topic; the replicator then deletes them.

    Args:
        entities: the topic, with the same store.
        store: has the times of expiry.
        now_ms: purge what expires then or earlier, milliseconds since the epoch. Default: now.
        dry_run: only report.
    """
    now_ms = time.time_ns() // _NS_PER_MS if now_ms is None else now_ms
    for id, head in store.expired(entities.topic, now_ms):
        assert head.expires_ms is not None
        # An append that is not replicated yet may have moved the time.
        yield Expired(id, head.expires_ms, not dry_run and entities.purge_unchanged(id, head))
