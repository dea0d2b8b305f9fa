"""The batch replicator: its tables are those of the replicator that follows the log."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest
from pyspark.errors import PySparkException
from support.daemon.served import connect, launch
from support.entity.built_topic import build_topic
from support.entity.logged import DAY_NS, append, append_events, delete, mark, purge, save
from support.entity.model import Model

from aerotape import _native
from aerotape.codecs.entity.actions import Action, Append, Delete, Event, Purge, Snapshot
from aerotape.codecs.entity.payload import events_of
from aerotape.entity.records import EventRecord
from aerotape.entity.replicator import Replicator
from aerotape.entity.stores.rows import (
    EVENT_COLUMNS,
    HEAD_COLUMNS,
    SNAPSHOT_COLUMNS,
    EventRow,
    event_of,
)
from aerotape.entity.stores.url import open_store
from aerotape.errors import ConfigurationError, EntityError
from aerotape.spark.entities.actions import COLUMNS, read_actions, with_partitions
from aerotape.spark.entities.tables import EntityTables, read_tables, write_tables
from aerotape.spark.entities.task import whole_entities

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
        elif kind < 0.98:
            seq_nr = max(1, last[id] - chance.choice((-1, 0, 0, 1, 5)))
            state = replace(chance.choice(PAYLOADS), seq_nr=seq_nr, tags=())
            actions.append(save(id, state, metadata=chance.choice((None, [1])), origin="host"))
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


def computed(actions: DataFrame, topic: str, folder: Path) -> EntityTables:
    """Return the tables that Spark computes and writes."""
    write_tables(actions, topic, folder, segments=100, segment_size=3)
    return read_tables(actions.sparkSession, folder)


def check_equal(tables: EntityTables, path: Path) -> None:
    """Check that tables are those of an SQLite store."""
    assert rows(tables.metajournal, HEAD_COLUMNS) == stored(path, "metajournal", HEAD_COLUMNS)
    assert rows(tables.journal, EVENT_COLUMNS) == stored(path, "journal", EVENT_COLUMNS)
    assert rows(tables.snapshot, SNAPSHOT_COLUMNS) == stored(path, "snapshot", SNAPSHOT_COLUMNS)
    pointer = ("topic", "partition", "offset", "next_position")
    assert rows(tables.pointer2, pointer) == stored(path, "pointer2", pointer)


def model_of(actions: list[Action]) -> Model:
    """Return the model after these actions."""
    model = Model()
    for action in actions:
        match action:
            case Snapshot():
                pass
            case Append():
                events = events_of(action).events
                model.append(action.id, [EventRecord(event, 0, 0, 0) for event in events])
            case Delete():
                model.delete(action.id, action.to_seq_nr)
            case Purge():
                model.purge(action.id)
    return model


def check_model(tables: EntityTables, model: Model) -> None:
    """Check that heads and events are those of the model."""
    heads = rows(tables.metajournal, ("id", "seq_nr", "delete_to"))
    assert heads == sorted(
        ((id, each.seq_nr, each.delete_to or None) for id, each in model.journals.items()), key=repr
    )
    events: dict[str, list[Event]] = {id: [] for id in model.journals}
    for row in sorted(map(EventRow._make, rows(tables.journal, EVENT_COLUMNS)), key=_seq_nr):
        events[row.id].append(event_of(row).event)
    assert events == {id: [each.event for each in model.read(id)] for id in model.journals}


def _seq_nr(row: EventRow) -> int:
    return row.seq_nr


def test_tables_equal_the_replicators_and_the_model(
    spark: SparkSession,
    archive_dir: Path,
    tmp_path: Path,
    driver: _native.MediaDriver,
    aeron_dir: Path,
    seeds: range,
) -> None:
    """Random histories: Spark's tables, the replicator's in SQLite and the model are equal.

    Also from a Parquet table of the actions.
    """
    histories = {seed: random_actions(random.Random(seed), 400) for seed in seeds}
    for seed, history in histories.items():
        build_topic(archive_dir, f"{TOPIC}-{seed}", 3, history)
    with launch(archive_dir, aeron_dir):
        for seed, history in histories.items():
            topic, path = f"{TOPIC}-{seed}", tmp_path / f"{seed}.db"
            url = f"sqlite:{path}?segment_size=3&segments=100"
            opening = partial(open_store, url, writable=True)
            connecting = partial(connect, aeron_dir)
            with Replicator(topic, connecting, opening, batch_records=37) as replicator:
                assert sum(each.records for each in replicator.run(until_caught_up=True)) == 400
            actions = read_actions(spark, archive_dir, topic)
            tables = computed(actions, topic, tmp_path / topic)
            check_equal(tables, path)
            check_model(tables, model_of(history))
    partitions = {row.recording_id: row.partition for row in
                  actions.select("recording_id", "partition").distinct().collect()}  # fmt: skip
    table = str(tmp_path / "actions")
    actions.select(*COLUMNS).write.parquet(table)
    lake = with_partitions(spark.read.parquet(table), partitions)
    check_equal(computed(lake, topic, tmp_path / "lake"), path)


def test_a_damaged_append(spark: SparkSession, archive_dir: Path, tmp_path: Path) -> None:
    """A payload that is not what its action says fails the job, which names the position."""
    damaged = replace(append("a", 1), payload=b'{"events":[{"seqNr":1,"tags":[],"payload":x}]}')
    build_topic(archive_dir, TOPIC, 1, [append("a", 1), damaged])
    with pytest.raises(PySparkException, match="partition 0: invalid record at 192"):
        write_tables(read_actions(spark, archive_dir, TOPIC), TOPIC, tmp_path / "tables")


def test_arguments(spark: SparkSession, archive_dir: Path, tmp_path: Path) -> None:
    """A topic that the directory does not have, and a folder that is used, are refused."""
    build_topic(archive_dir, TOPIC, 1, [append("a", 1)])
    with pytest.raises(EntityError, match="no recording of topic other"):
        read_actions(spark, archive_dir, "other")
    actions = read_actions(spark, archive_dir, TOPIC)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "file").touch()
    with pytest.raises(ConfigurationError, match="has files: expected a new folder"):
        write_tables(actions, TOPIC, tmp_path / "tables")
    with pytest.raises(ConfigurationError, match="segment_size=1: must be at least 2"):
        write_tables(actions, TOPIC, tmp_path / "new", segment_size=1)


def test_no_actions(spark: SparkSession, archive_dir: Path, tmp_path: Path) -> None:
    """A topic without actions has empty tables."""
    build_topic(archive_dir, TOPIC, 1, [])
    tables = computed(read_actions(spark, archive_dir, TOPIC), TOPIC, tmp_path / "tables")
    assert [tables.metajournal.count(), tables.journal.count(), tables.pointer2.count()] == [0] * 3


def test_batches_are_cut_between_entities() -> None:
    """Actions of an entity are in one batch, wherever Spark ends its batches."""
    chance = random.Random(1)
    ids = [b"%03d" % (number // 7) for number in range(700)]
    for _ in range(20):
        cuts = sorted({0, *chance.choices(range(1, 700), k=chance.randrange(40)), 700})
        batches = [
            pyarrow.record_batch({"entityId": ids[begin:end]}) for begin, end in pairwise(cuts)
        ]
        whole = [batch["entityId"].to_pylist() for batch in whole_entities(batches)]
        assert [id for batch in whole for id in batch] == ids
        assert all(one[-1] != other[0] for one, other in pairwise(whole))
    single = [pyarrow.record_batch({"entityId": [id] * 3}) for id in (b"a", b"a", b"b", b"c")]
    assert [len(batch) for batch in whole_entities(single)] == [6, 3, 3]  # not all in memory
