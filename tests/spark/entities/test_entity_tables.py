"""The batch replicator: its tables are those of the replicator that follows the log."""

from __future__ import annotations

import random
import sqlite3
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.daemon.served import connect, launch
from support.entity.built_topic import build_topic
from support.entity.logged import DAY_NS, append, append_events, delete, mark, purge

from aerotape import _native
from aerotape.archive.entity.replicator import Replicator
from aerotape.archive.entity.stores.rows import EVENT_COLUMNS, HEAD_COLUMNS
from aerotape.archive.entity.stores.url import open_store
from aerotape.codecs.entity.actions import Action, Event
from aerotape.errors import EntityError
from aerotape.spark.entities.actions import COLUMNS, read_actions, with_partitions
from aerotape.spark.entities.tables import EntityTables, entity_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
TOPIC = "orders"
PAYLOADS = (
    Event(1, b'{"a":[1,2.50,{"b":"payload\\":\\"x"}],"c":null}', "json", ("t", 'quo"te')),
    Event(1, b'"a JSON text"', "json"),
    Event(1, b"17", "json"),
    Event(1, b"null", "json"),
    Event(1, 'a "text" ü'.encode(), "text"),
    Event(1, b"", "text"),
    Event(1, b"\x00\xff", "binary", ("b",)),
    Event(1),
)
EXPIRIES = (None, None, 1, 1_500_000, DAY_NS, 90 * 60_000_000_000)


def random_actions(chance: random.Random, count: int) -> list[Action]:
    """Return actions of all kinds and payloads; some appends overlap or leave gaps."""
    ids = ["a", "B", "ÄÖ", "😀 id", "polygenelubricants", *(f"id-{n}" for n in range(15))]
    actions: list[Action] = []
    last = dict.fromkeys(ids, 0)
    for number in range(count):
        id, kind = chance.choice(ids), chance.random()
        if kind < 0.6:
            first = max(1, last[id] + chance.choice((1, 1, 1, 1, 3, -1)))
            numbers = range(first, first + chance.randrange(1, 6))
            form = chance.choice(PAYLOADS[:6]), chance.choice(PAYLOADS), PAYLOADS[4]
            chosen = [chance.choice(form) for _ in numbers]
            events = [
                Event(seq_nr, each.payload, each.payload_type, each.tags)
                for seq_nr, each in zip(numbers, chosen, strict=True)
            ]
            metadata = chance.choice((None, {"k": [1, "ü"]}))
            origin = chance.choice(("", "host"))
            actions.append(
                append_events(
                    id,
                    events,
                    chance.choice(EXPIRIES),
                    timestamp_ms=1_700_000_000_000 + number * 1_000_003,
                    metadata=metadata,
                    origin=origin,
                    version=origin,
                )
            )
            last[id] = numbers[-1]
        elif kind < 0.85:
            actions.append(delete(id, max(1, last[id] + chance.randrange(-5, 3))))
        elif kind < 0.93:
            actions.append(purge(id))
            last[id] = 0
        else:
            actions.append(mark(id))
    return actions


def stored(path: Path, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{name}"' for name in columns)
    with sqlite3.connect(path) as connection:
        return sorted(connection.execute(f"SELECT {names} FROM journal_{table}"), key=repr)


def rows(frame: DataFrame, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    found = [tuple(row) for row in frame.select(*columns).collect()]
    plain = [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in found]
    return sorted(plain, key=repr)


def check_equal(tables: EntityTables, path: Path) -> None:
    """Check that tables are those of an SQLite store."""
    assert rows(tables.metajournal, HEAD_COLUMNS) == stored(path, "metajournal", HEAD_COLUMNS)
    assert rows(tables.journal, EVENT_COLUMNS) == stored(path, "journal", EVENT_COLUMNS)
    pointer = ("topic", "partition", "offset", "next_position")
    assert rows(tables.pointer2, pointer) == stored(path, "pointer2", pointer)


def test_tables_equal_the_replicators(
    spark: SparkSession,
    archive_dir: Path,
    tmp_path: Path,
    driver: _native.MediaDriver,
    aeron_dir: Path,
    seeds: range,
) -> None:
    """Random histories: heads, events and pointers are what the replicator stores in SQLite.

    Also from a Parquet table of the actions.
    """
    for seed in seeds:
        chance = random.Random(seed)
        build_topic(archive_dir, f"{TOPIC}-{seed}", 3, random_actions(chance, 400))
    with launch(archive_dir, aeron_dir):
        for seed in seeds:
            topic, path = f"{TOPIC}-{seed}", tmp_path / f"{seed}.db"
            url = f"sqlite:{path}?segment_size=3&segments=100"
            opening = partial(open_store, url)
            connecting = partial(connect, aeron_dir)
            with Replicator(topic, connecting, opening, batch_records=37) as replicator:
                assert sum(each.records for each in replicator.run(until_caught_up=True)) == 400
            actions = read_actions(spark, archive_dir, topic)
            check_equal(entity_tables(actions, topic, segments=100, segment_size=3), path)
    partitions = {row.recording_id: row.partition for row in
                  actions.select("recording_id", "partition").distinct().collect()}  # fmt: skip
    table = str(tmp_path / "actions")
    actions.select(*COLUMNS).write.parquet(table)
    lake = with_partitions(spark.read.parquet(table), partitions)
    check_equal(entity_tables(lake, topic, segments=100, segment_size=3), path)


def test_nothing_is_collected(spark: SparkSession, archive_dir: Path) -> None:
    """Making the tables runs no Spark job."""
    build_topic(archive_dir, TOPIC, 1, [append("a", 1)])
    context = spark.sparkContext
    context.setJobGroup("entities", "tables of entities")
    entity_tables(read_actions(spark, archive_dir, TOPIC), TOPIC)
    assert list(context.statusTracker().getJobIdsForGroup("entities")) == []


def test_unknown_topic(spark: SparkSession, archive_dir: Path) -> None:
    """A topic that the directory does not have is an error with its name."""
    build_topic(archive_dir, TOPIC, 1, [append("a", 1)])
    with pytest.raises(EntityError, match="no recording of topic other"):
        read_actions(spark, archive_dir, "other")
