"""Tables of schema version 1: refused by readers, migrated by a writable store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.entity.logged import DAY_NS, TOPIC, append, apply, logged

from aerotape.archive.entity.stores.base import EntityStore
from aerotape.archive.entity.stores.cassandra import CassandraStore
from aerotape.archive.entity.stores.sql import SqlStore
from aerotape.archive.entity.stores.url import open_store
from aerotape.errors import EntityStoreError, StoreLockedError

DAY_MS = 86_400_000
Open = Callable[..., str]


@pytest.fixture
def url(store_url: Open) -> str:
    """A store as version 1 left it, with 1500 events and a journal that expires at 3:00 of day 2.

    Version 2 has added a column and tables and changed nothing else.
    """
    url = store_url()
    with open_store(url, writable=True) as store, store.replicating():
        log = [append(f"id-{n // 10}", n % 10 + 1) for n in range(1500)]
        log.append(append("short", 1, expire_after_ns=DAY_NS // 8, timestamp_ms=DAY_MS))
        apply(store, logged(log))
    with open_store(url, writable=True) as store:
        downgrade(store)
    return url


def downgrade(store: EntityStore) -> None:
    """Make the tables those of version 1."""
    if isinstance(store, CassandraStore):
        space, run = store.options.namespace, store._session.execute
        for sql in (
            f"ALTER TABLE {space}.metajournal DROP expires",
            f"DROP TABLE {space}.snapshot",
            f"DELETE FROM {space}.setting WHERE key = 'segments'",
            f"UPDATE {space}.setting SET value = '1' WHERE key = 'schema-version'",
        ):
            run(sql)
        return
    assert isinstance(store, SqlStore)
    tables = store.tables
    with store._transaction():
        store._execute(f"ALTER TABLE {tables['metajournal']} DROP COLUMN expires")
        store._execute(f"DROP TABLE {tables['snapshot']}")
        store._execute(f"DROP TABLE {tables['tag']}")
        store._execute(f"UPDATE {tables['setting']} SET value = '1'")


def test_migration(url: str) -> None:
    """The replicator migrates; then all is there, and nothing expires before its day has ended."""
    for _ in range(2):
        with pytest.raises(EntityStoreError, match=r"version '1': expected '2'; start the replica"):
            open_store(url)
    open_store(url, writable=True).close()
    with open_store(url) as store:
        assert len(store.ids(TOPIC)) == 151
        assert [each.seq_nr for each in store.events(TOPIC, "id-7")] == list(range(1, 11))
        head = store.head(TOPIC, "short")
        assert head is not None
        assert (head.expires_ms, head.expire_after_ns) == (2 * DAY_MS, DAY_NS // 8)
        assert list(store.expired(TOPIC, 2 * DAY_MS - 1)) == []
        assert [id for id, _ in store.expired(TOPIC, 2 * DAY_MS)] == ["short"]
        assert store.snapshot(TOPIC, "short") is None
        if isinstance(store, SqlStore):
            found = {(id, each.seq_nr) for id, each in store.tagged(TOPIC, "tag")}
            assert len(found) == 1501
    with open_store(url, writable=True) as store, store.replicating():
        last = append("short", 2, expire_after_ns=DAY_NS // 8, timestamp_ms=DAY_MS)
        apply(store, logged([last], 1 << 20))
        head = store.head(TOPIC, "short")
        assert head is not None
        assert head.expires_ms == DAY_MS + DAY_MS // 8


def test_a_running_replicator_is_not_disturbed(store_url: Open) -> None:
    """While a replicator of version 1 has the lock, nothing is migrated."""
    url = store_url()
    with open_store(url, writable=True) as old:
        downgrade(old)
        with old.replicating():
            with pytest.raises(StoreLockedError, match="another replicator has its lock"):
                open_store(url, writable=True)
            with pytest.raises(EntityStoreError, match="schema version '1'"):
                open_store(url)
            old.renew_lock()
        open_store(url, writable=True).close()
    open_store(url).close()


def test_migration_with_other_segments(url: str) -> None:
    """Tables of version 1 in Cassandra are not migrated with another number of segments."""
    other = f"{url}segments=51"
    if url.startswith("cassandra"):
        with pytest.raises(EntityStoreError, match="with another number of segments than 51"):
            open_store(other, writable=True)
        with pytest.raises(EntityStoreError, match="schema version '1'"):
            open_store(url)
    open_store(url, writable=True).close()
    open_store(url).close()


def test_segments_of_cassandra(store_url: Open) -> None:
    """Heads would not be found with another number of segments: it is refused."""
    url = store_url("segments=50")
    open_store(url, writable=True).close()
    other = url.replace("segments=50", "segments=51")
    for writable in (False, True):
        if url.startswith("cassandra"):
            with pytest.raises(EntityStoreError, match="has 50 segments, not 51: open it with seg"):
                open_store(other, writable=writable)
        else:
            open_store(other, writable=writable).close()
