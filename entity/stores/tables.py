"""The tables of SQL stores.

Placeholders: names of tables and indexes; `{bytes}`, the type of bytes; `{clustered}`, which stores
rows in the order of their key, so that those of a journal are adjacent.
"""

from __future__ import annotations

from typing import Final

NAMES: Final = ("metajournal", "journal", "tag", "snapshot", "pointer2", "setting", "locks")
POINTER_COLUMNS: Final = ("topic", "partition", "offset", "next_position", "created", "updated")
TAG_COLUMNS: Final = ("topic", "tag", "partition", "offset", "seq_nr", "id")

_METAJOURNAL: Final = """
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
    expires bigint,
    record_id text NOT NULL,
    origin text,
    PRIMARY KEY (topic, id)
){clustered}"""
_JOURNAL: Final = """
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
){clustered}"""
_SNAPSHOT: Final = """
CREATE TABLE {snapshot} (
    topic text NOT NULL,
    id text NOT NULL,
    seq_nr bigint NOT NULL,
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    origin text,
    version text,
    meta_record_id text NOT NULL,
    payload_type text,
    payload_txt text,
    payload_bin {bytes},
    metadata text,
    PRIMARY KEY (topic, id, seq_nr)
){clustered}"""
_TAG: Final = """
CREATE TABLE {tag} (
    topic text NOT NULL,
    tag text NOT NULL,
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    seq_nr bigint NOT NULL,
    id text NOT NULL,
    PRIMARY KEY (topic, tag, partition, "offset", seq_nr)
){clustered}"""
POSITION_INDEX: Final = (
    'CREATE INDEX {journal_index} ON {journal} (topic, partition, "offset", seq_nr)'
)
"""Statement that creates the index of events by position."""
_TAG_INDEX: Final = "CREATE INDEX {tag_index} ON {tag} (topic, id, seq_nr)"

TABLES: Final = (
    _METAJOURNAL,
    _JOURNAL,
    _SNAPSHOT,
    _TAG,
    _TAG_INDEX,
    "CREATE INDEX {metajournal_index} ON {metajournal} (topic, expire_on)"
    " WHERE expire_on IS NOT NULL",
    "CREATE TABLE {pointer2} (topic text NOT NULL, partition integer NOT NULL,"
    ' "offset" bigint NOT NULL, next_position bigint NOT NULL, created bigint NOT NULL,'
    " updated bigint NOT NULL, PRIMARY KEY (topic, partition))",
    'CREATE TABLE {setting} (key text PRIMARY KEY, value text NOT NULL, "timestamp" bigint)',
    "CREATE TABLE {locks} (id text PRIMARY KEY, owner text NOT NULL, expires bigint NOT NULL)",
)
"""Statements that create the tables."""
