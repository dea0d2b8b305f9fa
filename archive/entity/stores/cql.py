"""The tables of kafka-journal in Cassandra, with its names, types and keys.

`pointer2` has one column more, `next_position`: the position that follows the last record is not
its offset plus one here.
"""

from __future__ import annotations

from typing import Final

from aerotape.archive.entity.stores.rows import EVENT_COLUMNS, HEAD_COLUMNS, READ_HEAD_COLUMNS

PUT_HEAD_COLUMNS: Final = (*HEAD_COLUMNS, "created_date")
_HEADS: Final = ", ".join(READ_HEAD_COLUMNS)
_EVENTS: Final = ", ".join(EVENT_COLUMNS)

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS {keyspace}.metajournal (
        id text, topic text, segment bigint,
        partition int, offset bigint,
        segment_size int, seq_nr bigint, delete_to bigint,
        created timestamp, created_date date, updated timestamp,
        expire_after duration, expire_on date,
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
    """CREATE TABLE IF NOT EXISTS {keyspace}.setting (
        key text PRIMARY KEY, value text, timestamp timestamp, origin text, metadata text)""",
)
"""Created in this order under the lock `schema`."""

KEYSPACE: Final = (
    "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication ="
    " {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
)
LOCKS: Final = "CREATE TABLE IF NOT EXISTS {keyspace}.locks (id text PRIMARY KEY, owner text)"
"""Has to exist before the lock of the tables can be taken. Locks expire by their TTL."""

STATEMENTS: Final = {
    "head": f"SELECT {_HEADS} FROM {{keyspace}}.metajournal WHERE topic = ? AND segment = ?"
    " AND id = ?",
    "put_head": f"INSERT INTO {{keyspace}}.metajournal ({', '.join(PUT_HEAD_COLUMNS)})"
    f" VALUES ({', '.join('?' * len(PUT_HEAD_COLUMNS))})",
    "delete_head": "DELETE FROM {keyspace}.metajournal WHERE topic = ? AND segment = ? AND id = ?",
    "expired": f"SELECT {_HEADS} FROM {{keyspace}}.metajournal WHERE topic = ?"
    " AND expire_on <= ? ALLOW FILTERING",
    "events": f"SELECT {_EVENTS} FROM {{keyspace}}.journal"
    " WHERE id = ? AND topic = ? AND segment = ? AND seq_nr > ? AND seq_nr <= ?",
    "put_event": f"INSERT INTO {{keyspace}}.journal ({_EVENTS})"
    f" VALUES ({', '.join('?' * len(EVENT_COLUMNS))})",
    "delete_events": "DELETE FROM {keyspace}.journal"
    " WHERE id = ? AND topic = ? AND segment = ? AND seq_nr >= ? AND seq_nr <= ?",
    "delete_segment": "DELETE FROM {keyspace}.journal WHERE id = ? AND topic = ? AND segment = ?",
    "pointer": "SELECT offset, next_position FROM {keyspace}.pointer2"
    " WHERE topic = ? AND partition = ?",
    "pointers": "SELECT topic, partition, offset, next_position FROM {keyspace}.pointer2",
    "put_pointer": "UPDATE {keyspace}.pointer2 SET offset = ?, next_position = ?, updated = ?"
    " WHERE topic = ? AND partition = ?",
    "new_pointer": "INSERT INTO {keyspace}.pointer2"
    " (topic, partition, offset, next_position, created, updated) VALUES (?, ?, ?, ?, ?, ?)",
    "setting": "SELECT value FROM {keyspace}.setting WHERE key = ?",
    "put_setting": "INSERT INTO {keyspace}.setting (key, value, timestamp) VALUES (?, ?, ?)",
}
"""Prepared when a store is opened."""

LOCK_STATEMENTS: Final = {
    "lock": "INSERT INTO {keyspace}.locks (id, owner) VALUES (?, ?) IF NOT EXISTS USING TTL ?",
    "relock": "UPDATE {keyspace}.locks USING TTL ? SET owner = ? WHERE id = ? IF owner = ?",
    "unlock": "DELETE FROM {keyspace}.locks WHERE id = ? IF owner = ?",
}
