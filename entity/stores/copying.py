"""Copies the journals of a topic from one store into another, of any kind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aerotape.entity.records import Pointer
from aerotape.entity.stores.base import EntityStore
from aerotape.entity.stores.rows import Rows, row_of_event, row_of_snapshot
from aerotape.entity.stores.sqlite import SqliteStore
from aerotape.entity.stores.url import open_store, sqlite_path
from aerotape.errors import EntityStoreError

_BATCH_ROWS: Final = 512


@dataclass(slots=True)
class Copied:
    """The numbers of copied rows.

    Attributes:
        journals: heads.
        events: of these journals.
        snapshots: of these journals.
    """

    journals: int = 0
    events: int = 0
    snapshots: int = 0


def copy_topic(source_url: str, target_url: str, topic: str) -> Copied:
    """Copy heads, events, snapshots and pointers of a topic from one store into another.

    The replicator then continues in the target. Both stores are locked meanwhile. A copy that is
    interrupted leaves no pointer, and can be repeated. Memory is bounded.

    Args:
        source_url: the store to copy.
        target_url: the store, of any kind, without the topic; it is created if it is not there.
        topic: the topic's name.

    Raises:
        ConfigurationError: a URL is invalid, or a driver is not installed.
        StoreLockedError: a replicator is running.
        EntityStoreError: the source does not have the topic, the target has it, or a store cannot
            be used.
    """
    with open_store(source_url) as source:
        pointers_of(source, topic)  # else nothing is locked or created
    with open_store(source_url, writable=True) as source, source.replicating():
        if (
            isinstance(source, SqliteStore)
            and target_url.startswith("sqlite:")
            and source.path == Path(sqlite_path(target_url)).resolve()
        ):
            raise EntityStoreError(  # it has one writer
                f"{source.url}: cannot be copied within one file; copy it into another file",
                source.url,
            )
        with open_store(target_url, writable=True) as target, target.replicating():
            return _copy(source, target, topic)


def _copy(source: EntityStore, target: EntityStore, topic: str) -> Copied:
    pointers = pointers_of(source, topic)
    if not target.pointers(topic):  # else a replicator has continued
        target.discard_load(topic)
    if target.pointers(topic) or target.ids(topic, limit=1):
        raise EntityStoreError(
            f"{target.url}: namespace {target.options.namespace} already has topic {topic}; "
            "copy it into another namespace",
            target.url,
        )
    copied = Copied()
    target.load(topic, _batches(source, topic, copied), pointers)
    return copied


def pointers_of(store: EntityStore, topic: str) -> dict[int, Pointer]:
    """Return the pointers of a topic (EntityStoreError: the store does not have it)."""
    if pointers := store.pointers(topic):
        return pointers
    raise store.no_topic(topic)


def _batches(source: EntityStore, topic: str, copied: Copied) -> Iterator[Rows]:
    """Yield all journals, and keep the lock of the source."""
    every_s = source.options.lease_ms / 3000
    renew_at = time.monotonic() + every_s
    for rows in _rows(source, topic, copied):
        if time.monotonic() >= renew_at:
            source.renew_lock()
            renew_at = time.monotonic() + every_s
        yield rows
    source.renew_lock()  # nothing was replicated meanwhile


def _rows(source: EntityStore, topic: str, copied: Copied) -> Iterator[Rows]:
    rows = Rows()
    after = None
    while found := source.ids(topic, after, _BATCH_ROWS):
        for id, head in found:
            for record in source.events(topic, id):
                rows.events.append(row_of_event(topic, id, head, record))
                copied.events += 1
                if len(rows.events) >= _BATCH_ROWS:
                    yield rows
                    rows = Rows()
            for snapshot in source.snapshots(topic, id):
                rows.snapshots.append(row_of_snapshot(topic, id, head, snapshot))
                copied.snapshots += 1
            rows.heads.append((id, head))
            copied.journals += 1
            if max(len(rows.heads), len(rows.snapshots)) >= _BATCH_ROWS:
                yield rows
                rows = Rows()
        after = found[-1][0]
    yield rows
