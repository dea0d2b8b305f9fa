"""Base of SQLite and PostgreSQL: statements, and a replicator's batch as a transaction."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from typing import Any, Final

from aerotape.archive.entity.records import EventRecord, Head, Pointer
from aerotape.archive.entity.stores.base import (
    REPLICATOR_LOCK,
    SCHEMA_VERSION,
    VERSION_SETTING,
    EntityStore,
    is_dead,
)
from aerotape.archive.entity.stores.rows import (
    EVENT_COLUMNS,
    HEAD_COLUMNS,
    READ_HEAD_COLUMNS,
    EventRow,
    event_of,
    event_rows,
    head_of,
    head_row,
)
from aerotape.archive.entity.transitions import Change

_PAGE: Final = 512
_HEADS: Final = ", ".join(
    f"coalesce({name}, '')" if name == "origin" else f'"{name}"' for name in READ_HEAD_COLUMNS
)
_EVENTS: Final = ", ".join(f'"{name}"' for name in EVENT_COLUMNS)
POINTER_COLUMNS: Final = ("topic", "partition", "offset", "next_position", "created", "updated")

METAJOURNAL: Final = """
CREATE TABLE {metajournal} (
    topic text NOT NULL,
    id text NOT NULL,
    segment bigint NOT NULL,
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    segment_size integer NOT NULL,
    seq_nr bigint NOT NULL,
    delete_to bigint,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    expire_after bigint,
    expire_on text,
    record_id text NOT NULL,
    origin text,
    PRIMARY KEY (topic, id)
)"""
JOURNAL: Final = """
CREATE TABLE {journal} (
    topic text NOT NULL,
    id text NOT NULL,
    seq_nr bigint NOT NULL,
    segment bigint NOT NULL,
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    origin text,
    version text,
    meta_record_id text NOT NULL,
    tags text,
    payload_type text,
    payload_txt text,
    payload_bin {bytes},
    metadata text,
    PRIMARY KEY (topic, id, seq_nr)
)"""
OTHERS: Final = (
    "CREATE INDEX {metajournal_index} ON {metajournal} (topic, expire_on)"
    " WHERE expire_on IS NOT NULL",
    "CREATE TABLE {pointer2} (topic text NOT NULL, partition integer NOT NULL,"
    ' "offset" bigint NOT NULL, next_position bigint NOT NULL, created bigint NOT NULL,'
    " updated bigint NOT NULL, PRIMARY KEY (topic, partition))",
    'CREATE TABLE {setting} (key text PRIMARY KEY, value text NOT NULL, "timestamp" bigint)',
    "CREATE TABLE {locks} (id text PRIMARY KEY, owner text NOT NULL, expires bigint NOT NULL)",
)


class SqlStore(EntityStore):
    """A store in a database with SQL and transactions."""

    tables: Mapping[str, str]
    """The names of the tables in SQL, by their names here."""

    def _create_tables(self, is_new: bool, statements: Iterable[str]) -> None:
        """Create the tables in the transaction if they are new; check their version."""
        setting = self.tables["setting"]
        if is_new:
            for sql in statements:
                self._execute(sql)
            self._execute(
                f"INSERT INTO {setting} VALUES (?, ?, ?)",
                (VERSION_SETTING, SCHEMA_VERSION, time.time_ns() // 1_000_000),
            )
        rows = self._query_in(f"SELECT value FROM {setting} WHERE key = ?", (VERSION_SETTING,))
        self.check_version(rows[0][0] if rows else None)

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
        found = {}
        sql = f"SELECT {_HEADS} FROM {self.tables['metajournal']} WHERE topic = ?"
        for begin in range(0, len(ids), _PAGE):
            condition, values = self._among(ids[begin : begin + _PAGE])
            for row in self._query(f"{sql} AND id {condition}", (topic, *values)):
                found[row[0]] = head_of(row)
        return found

    def _among(self, ids: Sequence[str]) -> tuple[str, Sequence[Any]]:
        """Return the condition that an id is one of these, and its parameters."""
        return f"IN ({', '.join('?' * len(ids))})", ids

    def events(self, topic: str, id: str, from_seq_nr: int = 1) -> Iterator[EventRecord]:
        head = self.head(topic, id)
        if head is None:
            return
        after = max(from_seq_nr - 1, head.delete_to or 0)
        sql = (
            f"SELECT {_EVENTS} FROM {self.tables['journal']} WHERE topic = ? AND id = ?"
            " AND seq_nr > ? AND meta_record_id = ?"
            f" ORDER BY seq_nr LIMIT {_PAGE}"
        )
        while rows := self._query(sql, (topic, id, after, head.record_id)):
            for row in rows:
                yield event_of(EventRow._make(row))
            if len(rows) < _PAGE:
                break
            after = rows[-1][2]

    def pointers(self, topic: str) -> dict[int, Pointer]:
        sql = f'SELECT partition, "offset", next_position FROM {self.tables["pointer2"]}'
        rows = self._query(f"{sql} WHERE topic = ?", (topic,))
        return {partition: Pointer(*fields) for partition, *fields in rows}

    def expired(self, topic: str, day: date) -> Iterator[tuple[str, Head]]:
        sql = (
            f"SELECT {_HEADS} FROM {self.tables['metajournal']} WHERE topic = ? AND id > ?"
            f" AND expire_on <= ? ORDER BY id LIMIT {_PAGE}"
        )
        after = ""
        while rows := self._query(sql, (topic, after, day.isoformat())):
            yield from ((row[0], head_of(row)) for row in rows)
            after = rows[-1][0]

    # -- writing -------------------------------------------------------------------------------

    def apply(
        self, topic: str, partition: int, changes: Mapping[str, Change], pointer: Pointer
    ) -> None:
        now_ms = time.time_ns() // 1_000_000
        journal, metajournal = self.tables["journal"], self.tables["metajournal"]
        with self._transaction():
            self._renew(now_ms)
            purged, deleted, heads = [], [], []
            rows: list[tuple[Any, ...]] = []
            for id, change in changes.items():
                if change.is_empty:
                    continue
                if change.is_purged:
                    purged.append((topic, id))
                elif change.delete is not None:
                    deleted.append((topic, id, *change.delete))
                if change.head is not None:
                    rows.extend(event_rows(topic, change))
                    heads.append(head_row(topic, id, self.segment_of(id), change.head))
            for table in (journal, metajournal):
                self._execute_many(f"DELETE FROM {table} WHERE topic = ? AND id = ?", purged)
            self._execute_many(
                f"DELETE FROM {journal} WHERE topic = ? AND id = ? AND seq_nr BETWEEN ? AND ?",
                deleted,
            )
            self._insert("journal", EVENT_COLUMNS, rows, "ON CONFLICT DO NOTHING")
            self._insert("metajournal", HEAD_COLUMNS, heads, _update(HEAD_COLUMNS, 2))
            self._execute(
                f"INSERT INTO {self.tables['pointer2']} VALUES (?, ?, ?, ?, ?, ?)"
                f" {_update(POINTER_COLUMNS, 2, leave=('created',))}",
                (topic, partition, *pointer, now_ms, now_ms),
            )

    # -- the lock ------------------------------------------------------------------------------

    def try_lock(self, name: str) -> str:
        now_ms = time.time_ns() // 1_000_000
        locks = self.tables["locks"]
        with self._transaction():
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

    def unlock(self, name: str) -> None:
        with self._transaction():
            self._execute(
                f"DELETE FROM {self.tables['locks']} WHERE id = ? AND owner = ?", (name, self.owner)
            )

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


def _update(columns: Sequence[str], key: int, leave: Sequence[str] = ()) -> str:
    """Return the clause that updates a row with the same key, its first `key` columns."""
    changes = ", ".join(f'"{n}" = excluded."{n}"' for n in columns[key:] if n not in leave)
    return f"ON CONFLICT ({', '.join(columns[:key])}) DO UPDATE SET {changes}"
