"""Base of SQLite and PostgreSQL: statements, and a replicator's batch as a transaction."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from heapq import merge
from itertools import groupby
from typing import Any, Final

from aerotape.entity.records import (
    EventRecord,
    Head,
    Pointer,
    Replicated,
    SnapshotRecord,
)
from aerotape.entity.stores.base import (
    MAX_SNAPSHOTS,
    PAGE,
    REPLICATOR_LOCK,
    SCHEMA_VERSION,
    VERSION_SETTING,
    EntityStore,
)
from aerotape.entity.stores.owner import is_dead
from aerotape.entity.stores.rows import (
    EVENT_COLUMNS,
    HEAD_COLUMNS,
    READ_HEAD_COLUMNS,
    SNAPSHOT_COLUMNS,
    EventRow,
    Rows,
    event_of,
    event_rows,
    expire_on,
    head_of,
    head_row,
    snapshot_of,
    snapshot_rows,
)
from aerotape.entity.stores.tables import (
    POINTER_COLUMNS,
    POSITION_INDEX,
    TABLES,
    TAG_COLUMNS,
)
from aerotape.entity.topic import MAX_PARTITIONS
from aerotape.entity.transitions import Change
from aerotape.errors import EntityStoreError

_HEADS: Final = ", ".join(
    f"coalesce({name}, '')" if name == "origin" else f'"{name}"' for name in READ_HEAD_COLUMNS
)
_TAGS: Final = EVENT_COLUMNS.index("tags")
_EVENTS: Final = ", ".join(f'"{name}"' for name in EVENT_COLUMNS)


_Query = Callable[[str, Sequence[Any]], list[Any]]
# Partition, position of a record, sequence number.
_Place = tuple[int, int, int]


class SqlStore(EntityStore):
    """A store in a database with SQL and transactions."""

    tables: Mapping[str, str]
    """The names of the tables in SQL, by their names here."""
    orders_events = True

    # -- the tables ----------------------------------------------------------------------------

    def _create_tables(self) -> None:
        """Create the tables in the transaction if there are none."""
        now_ms = time.time_ns() // 1_000_000
        setting = self.tables["setting"]
        if not self._exists("setting", self._query_in):
            for sql in TABLES:
                self._execute(self._dialect(sql))
            self._execute(
                f"INSERT INTO {setting} VALUES (?, ?, ?)", (VERSION_SETTING, SCHEMA_VERSION, now_ms)
            )
        self.check_version(self._version(self._query_in))

    def _check_tables(self) -> None:
        """Check that there are tables to read, and their version."""
        if not self._exists("setting", self._query):
            raise self.missing()
        self.check_version(self._version(self._query))

    def _version(self, query: _Query) -> str | None:
        sql = f"SELECT value FROM {self.tables['setting']} WHERE key = ?"
        rows = query(sql, (VERSION_SETTING,))
        return rows[0][0] if rows else None

    @abstractmethod
    def _exists(self, name: str, query: _Query) -> bool:
        """Whether the namespace has a table or an index."""

    @abstractmethod
    def _dialect(self, sql: str) -> str:
        """Return a statement of `tables.py` for the database."""

    # -- the database --------------------------------------------------------------------------

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Return a context: commits at its end, rolls back on an error."""

    @abstractmethod
    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement in the transaction; return the number of rows."""

    @abstractmethod
    def _execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement in the transaction for each row of parameters."""

    @abstractmethod
    def _insert(self, table: str, columns: Sequence[str], rows: Iterable[Any], then: str) -> None:
        """Insert rows in the transaction, with this clause at the end of the statement."""

    @abstractmethod
    def _query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query outside of a transaction, from any thread."""

    @abstractmethod
    def _query_in(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query in the transaction."""

    # -- reading -------------------------------------------------------------------------------

    def heads(self, topic: str, ids: Sequence[str]) -> dict[str, Head]:
        found: dict[str, Head] = {}
        for begin in range(0, len(ids), PAGE):
            condition, values = self._among(ids[begin : begin + PAGE])
            found.update(self._heads(topic, f"AND id {condition}", values))
        return found

    def _heads(
        self, topic: str, condition: str, values: Sequence[Any]
    ) -> Iterator[tuple[str, Head]]:
        """Return ids and heads of a topic with this condition and its parameters."""
        sql = f"SELECT {_HEADS} FROM {self.tables['metajournal']} WHERE topic = ? {condition}"
        return ((row[0], head_of(row)) for row in self._query(sql, (topic, *values)))

    def _among(self, ids: Sequence[str]) -> tuple[str, Sequence[Any]]:
        """Return the condition that an id is one of these, and its parameters."""
        return f"IN ({', '.join('?' * len(ids))})", ids

    def page(self, topic: str, id: str, head: Head, after: int) -> list[EventRecord]:
        sql = (
            f"SELECT {_EVENTS} FROM {self.tables['journal']} WHERE topic = ? AND id = ?"
            " AND seq_nr > ? AND meta_record_id = ?"
            f" ORDER BY seq_nr LIMIT {PAGE}"
        )
        rows = self._query(sql, (topic, id, after, head.record_id))
        return [event_of(EventRow._make(row)) for row in rows]

    def pointers(self, topic: str) -> dict[int, Pointer]:
        sql = f'SELECT partition, "offset", next_position FROM {self.tables["pointer2"]}'
        rows = self._query(f"{sql} WHERE topic = ?", (topic,))
        return {partition: Pointer(*fields) for partition, *fields in rows}

    def replicated(self, topic: str) -> dict[int, Replicated]:
        sql = f"SELECT partition, next_position, updated FROM {self.tables['pointer2']}"
        rows = self._query(f"{sql} WHERE topic = ?", (topic,))
        return {partition: Replicated(*fields) for partition, *fields in rows}

    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        pointers = (
            f'SELECT "offset", next_position FROM {self.tables["pointer2"]}'
            " WHERE topic = ? AND partition = ?"
        )
        heads = f"SELECT {_HEADS} FROM {self.tables['metajournal']} WHERE topic = ? AND id = ?"
        (row,) = self._query(
            f"SELECT pointers.*, heads.* FROM (SELECT 1) AS always"
            f" LEFT JOIN ({pointers}) AS pointers ON TRUE LEFT JOIN ({heads}) AS heads ON TRUE",
            (topic, partition, topic, id),
        )
        pointer = None if row[0] is None else Pointer(*row[:2])
        return pointer, None if row[2] is None else head_of(row[2:])

    def topics(self) -> list[str]:
        rows = self._query(f"SELECT DISTINCT topic FROM {self.tables['pointer2']}")
        return sorted(topic for (topic,) in rows)

    def ids(
        self, topic: str, after: str | None = None, limit: int = 1000
    ) -> list[tuple[str, Head]]:
        return self._page(topic, after, limit)

    def _page(
        self, topic: str, after: str | None, limit: int, condition: str = "", *values: Any
    ) -> list[tuple[str, Head]]:
        """Return the first journals, ordered by id, that follow an id and have a condition."""
        if after is not None:
            condition, values = f"{condition} AND id > ?", (*values, after)
        return list(self._heads(topic, f"{condition} ORDER BY id LIMIT ?", (*values, limit)))

    def expired(self, topic: str, now_ms: int) -> Iterator[tuple[str, Head]]:
        day, after = expire_on(now_ms).isoformat(), None
        while found := self._page(topic, after, PAGE, "AND expire_on <= ?", day):
            for id, head in found:
                if head.expires_ms is not None and head.expires_ms <= now_ms:
                    yield id, head
            after = found[-1][0]

    def tagged(self, topic: str, tag: str) -> Iterator[tuple[str, EventRecord]]:
        """Iterate over the ids and events of a topic that have a tag.

        Ordered by partition and position, then sequence number. Memory is bounded.
        """
        return self._tagged(topic, tag, (0, -1, 0), (MAX_PARTITIONS, 0, 0))

    def _tagged(
        self, topic: str, tag: str, after: _Place, end: _Place
    ) -> Iterator[tuple[str, EventRecord]]:
        source = (
            f"{self.tables['tag']} AS tag JOIN {self.tables['journal']} AS journal"
            " ON journal.topic = tag.topic AND journal.id = tag.id AND journal.seq_nr = tag.seq_nr"
            " WHERE tag.topic = ? AND tag.tag = ?"
        )
        for id, record in self._in_log_order(source, (topic, _indexed(tag)), "tag", after, end):
            if tag in record.event.tags:
                yield id, record

    def events_between(
        self, topic: str, partition: int, begin: int, end: int, tags: Collection[str] = ()
    ) -> Iterator[tuple[str, EventRecord]]:
        after, limit = (partition, begin, 0), (partition, end, 0)
        if not tags and not self._exists("journal_index", self._query):
            raise EntityStoreError(
                f"{self.url} has no index of positions: cannot be used to follow all events of a "
                "topic; start the replicator without --no-index-positions",
                self.url,
            )
        return self._between(topic, tags, after, limit)

    def _between(
        self, topic: str, tags: Collection[str], after: _Place, limit: _Place
    ) -> Iterator[tuple[str, EventRecord]]:
        if not tags:
            source = f"{self.tables['journal']} AS journal WHERE journal.topic = ?"
            yield from self._in_log_order(source, (topic,), "journal", after, limit)
            return
        found = (self._tagged(topic, tag, after, limit) for tag in tags)
        ordered = merge(*found, key=lambda item: (item[1].offset, item[1].seq_nr))
        for _, same in groupby(ordered, key=lambda item: (item[1].offset, item[1].seq_nr)):
            yield next(same)  # the others have it by another tag

    def _in_log_order(
        self, source: str, values: Sequence[Any], places: str, after: _Place, end: _Place
    ) -> Iterator[tuple[str, EventRecord]]:
        """Iterate over ids and events from one place to another, without both.

        Args:
            source: the tables, with a condition.
            values: parameters of the condition.
            places: the table that has an index of the places.
        """
        columns = ", ".join(f'journal."{name}"' for name in EVENT_COLUMNS)
        place = f'{places}.partition, {places}."offset", {places}.seq_nr'
        sql = (
            f"SELECT {columns} FROM {source} AND ({place}) > (?, ?, ?) AND ({place}) < (?, ?, ?)"
            f" ORDER BY {place} LIMIT {PAGE}"
        )
        while rows := self._query(sql, (*values, *after, *end)):
            for row in map(EventRow._make, rows):
                yield row.id, event_of(row)
            after = row.partition, row.offset, row.seq_nr

    def snapshots(self, topic: str, id: str, limit: int = MAX_SNAPSHOTS) -> list[SnapshotRecord]:
        columns = ", ".join(f'snapshot."{name}"' for name in SNAPSHOT_COLUMNS)
        rows = self._query(
            f"SELECT {columns} FROM {self.tables['snapshot']} AS snapshot"
            f" JOIN {self.tables['metajournal']} AS head ON head.topic = snapshot.topic"
            " AND head.id = snapshot.id AND head.record_id = snapshot.meta_record_id"
            " WHERE snapshot.topic = ? AND snapshot.id = ? ORDER BY snapshot.seq_nr DESC LIMIT ?",
            (topic, id, limit),
        )
        return [snapshot_of(row) for row in rows]

    # -- writing -------------------------------------------------------------------------------

    def apply(
        self, topic: str, partition: int, changes: Mapping[str, Change], pointer: Pointer
    ) -> None:
        now_ms = time.time_ns() // 1_000_000
        with self._transaction():
            self._renew(now_ms)
            purged, deleted, rows = [], [], Rows()
            for id, change in changes.items():
                if change.is_empty:
                    continue
                if change.is_purged:
                    purged.append((topic, id))
                elif change.delete is not None:
                    deleted.append((topic, id, *change.delete))
                if change.head is not None:
                    rows.events.extend(event_rows(topic, change))
                    if change.snapshots:
                        rows.snapshots.extend(snapshot_rows(topic, change))
                    rows.heads.append((id, change.head))
            for name in ("journal", "tag", "snapshot", "metajournal"):
                sql = f"DELETE FROM {self.tables[name]} WHERE topic = ? AND id = ?"
                self._execute_many(sql, purged)
            for name in ("journal", "tag"):
                sql = f"DELETE FROM {self.tables[name]} WHERE topic = ? AND id = ?"
                self._execute_many(f"{sql} AND seq_nr BETWEEN ? AND ?", deleted)
            self._put(topic, rows)
            self._put_pointer(topic, partition, pointer, now_ms)

    def index_positions(self) -> None:
        with self._transaction():
            if not self._exists("journal_index", self._query_in):
                self._execute(self._dialect(POSITION_INDEX))

    def load(self, topic: str, batches: Iterable[Rows], pointers: Mapping[int, Pointer]) -> None:
        now_ms = time.time_ns() // 1_000_000
        with self._transaction():
            self._renew(now_ms)
            for rows in batches:
                self._put(topic, rows)
            for partition, pointer in pointers.items():
                self._put_pointer(topic, partition, pointer, now_ms)

    def _put(self, topic: str, rows: Rows) -> None:
        """Store rows in the transaction; keep the latest snapshots."""
        heads = [head_row(topic, id, self.segment_of(id), head) for id, head in rows.heads]
        snapshot = self.tables["snapshot"]
        for name, columns, added, then in (
            ("journal", EVENT_COLUMNS, rows.events, "ON CONFLICT DO NOTHING"),
            ("tag", TAG_COLUMNS, list(_tag_rows(rows.events)), "ON CONFLICT DO NOTHING"),
            ("snapshot", SNAPSHOT_COLUMNS, rows.snapshots, _update(SNAPSHOT_COLUMNS, 3)),
            ("metajournal", HEAD_COLUMNS, heads, _update(HEAD_COLUMNS, 2)),
        ):
            if added:
                self._insert(name, columns, added, then)
        self._execute_many(
            f"DELETE FROM {snapshot} WHERE topic = ? AND id = ? AND seq_nr <= (SELECT seq_nr"
            f" FROM {snapshot} WHERE topic = ? AND id = ? ORDER BY seq_nr DESC"
            f" LIMIT 1 OFFSET {MAX_SNAPSHOTS})",
            [key + key for key in {row[:2] for row in rows.snapshots}],
        )

    def _put_pointer(self, topic: str, partition: int, pointer: Pointer, now_ms: int) -> None:
        self._execute(
            f"INSERT INTO {self.tables['pointer2']} VALUES (?, ?, ?, ?, ?, ?)"
            f" {_update(POINTER_COLUMNS, 2, leave=('created',))}",
            (topic, partition, *pointer, now_ms, now_ms),
        )

    # -- the lock ------------------------------------------------------------------------------

    def try_lock(self, name: str) -> str:
        with self._transaction():
            return self._take_lock(name, time.time_ns() // 1_000_000)

    def unlock(self, name: str) -> None:
        with self._transaction():
            self._release_lock(name)

    def renew_lock(self) -> None:
        with self._transaction():
            self._renew(time.time_ns() // 1_000_000)

    def _take_lock(self, name: str, now_ms: int) -> str:
        """Take or renew a lock in the transaction; return its owner."""
        locks = self.tables["locks"]
        rows = self._query_in(f"SELECT owner, expires FROM {locks} WHERE id = ?", (name,))
        if rows:
            owner: str = rows[0][0]
            if owner != self.owner and rows[0][1] > now_ms and not is_dead(owner):
                return owner
        self._execute(
            f"INSERT INTO {locks} VALUES (?, ?, ?) {_update(('id', 'owner', 'expires'), 1)}",
            (name, self.owner, now_ms + self.options.lease_ms),
        )
        return self.owner

    def _release_lock(self, name: str) -> None:
        locks = self.tables["locks"]
        self._execute(f"DELETE FROM {locks} WHERE id = ? AND owner = ?", (name, self.owner))

    def _renew(self, now_ms: int) -> None:
        locks = self.tables["locks"]
        renewed = self._execute(
            f"UPDATE {locks} SET expires = ? WHERE id = ? AND owner = ?",
            (now_ms + self.options.lease_ms, REPLICATOR_LOCK, self.owner),
        )
        if not renewed:
            sql = f"SELECT owner FROM {locks} WHERE id = ?"
            rows = self._query_in(sql, (REPLICATOR_LOCK,))
            raise self.locked(rows[0][0] if rows else "released by another process")


def _tag_rows(events: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `tag` for rows of `journal`."""
    for fields in events:
        if fields[_TAGS] is not None:
            row = EventRow._make(fields)
            for tag in json.loads(fields[_TAGS]):
                place = row.partition, row.offset, row.seq_nr
                yield row.topic, _indexed(tag), *place, row.id


def _indexed(tag: str) -> str:
    """Return a tag as it is in the index: PostgreSQL's type text has no NUL."""
    return tag.replace("\0", " ")


def _update(columns: Sequence[str], key: int, leave: Sequence[str] = ()) -> str:
    """Return the clause that updates a row with the same key, its first `key` columns."""
    changes = ", ".join(f'"{n}" = excluded."{n}"' for n in columns[key:] if n not in leave)
    return f"ON CONFLICT ({', '.join(columns[:key])}) DO UPDATE SET {changes}"
