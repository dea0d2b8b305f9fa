"""Purging expired journals: those whose last append is `expireAfter` ago."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from aerotape.archive.entity.head_info import Empty

if TYPE_CHECKING:
    from aerotape.archive.entity.entities import Entities
    from aerotape.archive.entity.stores.base import EntityStore


@dataclass(frozen=True, slots=True)
class Expired:
    """A journal whose day has come.

    Attributes:
        id: the entity's id.
        expire_on: the day (UTC) from which it may be purged.
        is_purged: whether a purge was written; not if the journal was changed meanwhile.
    """

    id: str
    expire_on: date
    is_purged: bool


def purge_expired(
    entities: Entities, store: EntityStore, day: date | None = None, *, dry_run: bool = False
) -> Iterator[Expired]:
    """Write a purge for each expired journal of a topic; the replicator then deletes them.

    Args:
        entities: the topic, with the same store.
        store: has the days of expiry.
        day: purge what expires on this day (UTC) or earlier. Default: today.
        dry_run: only report.
    """
    day = datetime.now(UTC).date() if day is None else day
    for id, head in store.expired(entities.topic, day):
        assert head.expire_on is not None
        # An append that is not replicated yet may have moved the day.
        is_unchanged = isinstance(entities.unreplicated(id), Empty)
        if is_unchanged and not dry_run:
            entities.purge(id)
        yield Expired(id, head.expire_on, is_unchanged and not dry_run)
