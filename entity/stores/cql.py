"""The tables of kafka-journal in Cassandra, with its names, types and keys.

Two have a column more: `pointer2` has `next_position`, because the position that follows the last
record is not its offset plus one here, and `metajournal` has `expires`, the time of which
`expire_on` is the day. `snapshot` is a table of its own.
"""

from __future__ import annotations

from typing import Final

from aerotape.entity.stores.rows import (
    EVENT_COLUMNS,
    HEAD_COLUMNS,
    READ_HEAD_COLUMNS,
    SNAPSHOT_COLUMNS,
)

PUT_HEAD_COLUMNS: Final = (*HEAD_COLUMNS, "created_date")
_HEADS: Final = ", ".join(READ_HEAD_COLUMNS)
_EVENTS: Final = ", ".join(EVENT_COLUMNS)
_SNAPSHOTS: Final = ", ".join(SNAPSHOT_COLUMNS)

_SNAPSHOT: Final = """CREATE TABLE IF NOT EXISTS {keyspace}.snapshot (
        topic text, id text, seq_nr bigint, partition int, offset bigint, timestamp timestamp,
        origin text, version text, meta_record_id uuid,
        payload_type text, payload_txt text, payload_bin blob, metadata text,
        PRIMARY KEY ((topic, id), seq_nr)) WITH CLUSTERING ORDER BY (seq_nr DESC)"""

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS {keyspace}.metajournal (
        id text, topic text, segment bigint,
        partition int, offset bigint,
        segment_size int, seq_nr bigint, delete_to bigint,
        created timestamp, created_date date, updated timestamp,
        expire_after duration, expire_on date, expires bigint,
        record_id uuid, origin text, properties map<text, text>, metadata text,
        PRIMARY KEY ((topic, segment), id))""",
    "CREATE INDEX IF NOT EXISTS metajournal_created_date_idx"
    " ON {keyspace}.metajournal (created_date)",
    "CREATE INDEX IF NOT EXISTS metajournal_expire_on_idx ON {keyspace}.metajournal (expire_on)",
    """CREATE TABLE IF NOT EXISTS {keyspace}.journal (
        id text, topic text, segment bigint, seq_nr bigint, timestamp timestamp,
        partition int, offset bigint,
        origin text, version text, meta_record_id uuid, tags set<text>,
        payload_type text, payload_txt text, payload_bin blob,
        metadata text, headers map<text, text>,
        PRIMARY KEY ((id, topic, segment), seq_nr, timestamp))""",
    """CREATE TABLE IF NOT EXISTS {keyspace}.pointer2 (
        topic text, partition int, offset bigint, created timestamp, updated timestamp,
        next_position bigint,
        PRIMARY KEY ((topic, partition)))""",
    _SNAPSHOT,
    """CREATE TABLE IF NOT EXISTS {keyspace}.setting (
        key text PRIMARY KEY, value text, timestamp timestamp, origin text, metadata text)""",
)
"""Created in this order under the lock `schema`; with the last one, there are tables."""

KEYSPACE: Final = (
    "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication ="
    " {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
)
LOCKS: Final = "CREATE TABLE IF NOT EXISTS {keyspace}.locks (id text PRIMARY KEY, owner text)"
"""Has to exist before the lock of the tables can be taken. Locks expire by their TTL."""

SETTING: Final = {"setting": "SELECT value FROM {keyspace}.setting WHERE key = ?"}
"""Prepared first: the other statements need tables of this version."""

READS: Final = {
    "head": f"SELECT {_HEADS} FROM {{keyspace}}.metajournal WHERE topic = ? AND segment = ?"
    " AND id = ?",
    "heads_of": f"SELECT {_HEADS} FROM {{keyspace}}.metajournal WHERE topic = ? AND segment = ?"
    " LIMIT ?",
    "heads_after": f"SELECT {_HEADS} FROM {{keyspace}}.metajournal WHERE topic = ? AND segment = ?"
    " AND id > ? LIMIT ?",
    "expired": f"SELECT {_HEADS} FROM {{keyspace}}.metajournal WHERE topic = ?"
    " AND expire_on <= ? ALLOW FILTERING",
    "events": f"SELECT {_EVENTS} FROM {{keyspace}}.journal"
    " WHERE id = ? AND topic = ? AND segment = ? AND seq_nr > ? AND seq_nr <= ?",
    "snapshots": f"SELECT {_SNAPSHOTS} FROM {{keyspace}}.snapshot WHERE topic = ? AND id = ?",
    "pointer": "SELECT offset, next_position FROM {keyspace}.pointer2"
    " WHERE topic = ? AND partition = ?",
    "pointers": "SELECT topic, partition, offset, next_position, updated FROM {keyspace}.pointer2",
}
"""Prepared when a store is opened."""

WRITES: Final = {
    "put_head": f"INSERT INTO {{keyspace}}.metajournal ({', '.join(PUT_HEAD_COLUMNS)})"
    f" VALUES ({', '.join('?' * len(PUT_HEAD_COLUMNS))})",
    "delete_head": "DELETE FROM {keyspace}.metajournal WHERE topic = ? AND segment = ? AND id = ?",
    "put_event": f"INSERT INTO {{keyspace}}.journal ({_EVENTS})"
    f" VALUES ({', '.join('?' * len(EVENT_COLUMNS))})",
    "delete_events": "DELETE FROM {keyspace}.journal"
    " WHERE id = ? AND topic = ? AND segment = ? AND seq_nr >= ? AND seq_nr <= ?",
    "delete_segment": "DELETE FROM {keyspace}.journal WHERE id = ? AND topic = ? AND segment = ?",
    "put_snapshot": f"INSERT INTO {{keyspace}}.snapshot ({_SNAPSHOTS})"
    f" VALUES ({', '.join('?' * len(SNAPSHOT_COLUMNS))})",
    "old_snapshot": "SELECT seq_nr FROM {keyspace}.snapshot WHERE topic = ? AND id = ? LIMIT ?",
    "delete_old_snapshots": "DELETE FROM {keyspace}.snapshot"
    " WHERE topic = ? AND id = ? AND seq_nr <= ?",
    "delete_snapshots": "DELETE FROM {keyspace}.snapshot WHERE topic = ? AND id = ?",
    "put_pointer": "UPDATE {keyspace}.pointer2 SET offset = ?, next_position = ?, updated = ?"
    " WHERE topic = ? AND partition = ?",
    "new_pointer": "INSERT INTO {keyspace}.pointer2"
    " (topic, partition, offset, next_position, created, updated) VALUES (?, ?, ?, ?, ?, ?)",
    "put_setting": "INSERT INTO {keyspace}.setting (key, value, timestamp) VALUES (?, ?, ?)",
    "delete_setting": "DELETE FROM {keyspace}.setting WHERE key = ?",
}
"""Prepared when a store is opened writable."""

LOCK_STATEMENTS: Final = {
    "lock": "INSERT INTO {keyspace}.locks (id, owner) VALUES (?, ?) IF NOT EXISTS USING TTL ?",
    "relock": "UPDATE {keyspace}.locks USING TTL ? SET owner = ? WHERE id = ? IF owner = ?",
    "unlock": "DELETE FROM {keyspace}.locks WHERE id = ? IF owner = ?",
}
