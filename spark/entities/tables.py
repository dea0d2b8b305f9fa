"""The batch replicator: the tables of a topic, computed from all its actions.

The result equals what the replicator stores from the same log. Spark sorts the actions by entity
and position; then each task goes from actions to Parquet files in one pass, without returning
rows to the JVM.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as fn

from aerotape.catalog.location import NO_OPTIONS, StorageOptions
from aerotape.codecs.entity.segments import (
    DEFAULT_SEGMENT_SIZE,
    DEFAULT_SEGMENTS,
    MIN_SEGMENT_SIZE,
)
from aerotape.entity.topic import check_topic
from aerotape.errors import ConfigurationError
from aerotape.spark.entities.task import WriteTask
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.writer import STAGED_FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TABLES: Final = ("metajournal", "journal", "snapshot", "pointer2")
_POINTERS: Final = "partition int, offset bigint, next_position bigint"


@dataclass(frozen=True, slots=True)
class EntityTables:
    """The tables of a topic, with the columns of SQL stores.

    Attributes:
        metajournal: heads.
        journal: events.
        snapshot: the latest snapshots of each entity, at most ten.
        pointer2: for each partition `topic`, `partition`, `offset` and `next_position`.
    """

    metajournal: DataFrame
    journal: DataFrame
    snapshot: DataFrame
    pointer2: DataFrame


def write_tables(
    actions: DataFrame,
    topic: str,
    folder: str | os.PathLike[str],
    *,
    segments: int = DEFAULT_SEGMENTS,
    segment_size: int = DEFAULT_SEGMENT_SIZE,
    storage: StorageOptions = NO_OPTIONS,
) -> None:
    """Compute the tables of a topic and write them as Parquet files.

    A task's memory holds the actions of one entity, and a row group. The pointers are written last.

    Args:
        actions: all actions of the topic from the beginning of its log, as `read_actions` returns
            them.
        topic: the topic's name.
        folder: a path that all workers reach, or a URL; without files. Each table is a folder in
            it.
        segments: the number of segments of heads.
        segment_size: events in a segment of a journal.
        storage: options of remote storage.

    Raises:
        ConfigurationError: an argument is invalid, or the folder has files.
        StorageError: the folder cannot be written.
        PySparkException: a task failed: a record is invalid.
    """
    check_topic(topic)
    for name, value, least in (
        ("segments", segments, 1),
        ("segment_size", segment_size, MIN_SEGMENT_SIZE),
    ):
        if value < least:
            raise ConfigurationError(f"{name}={value}: must be at least {least}", name)
    store = OutputStore.open(folder, storage)
    if store.files():
        raise ConfigurationError(f"{store.name} has files: expected a new folder", "folder")
    for table in _TABLES:
        store.make_folder(table)
    task = WriteTask(store, topic, segments, segment_size)
    pointers = (
        with_types(actions)
        .repartition("entityId")
        .sortWithinPartitions("entityId", "position")
        .mapInArrow(task, _POINTERS)
        .groupBy("partition")
        .agg(fn.max("offset").alias("offset"), fn.max("next_position").alias("next_position"))
        .select(fn.lit(topic).alias("topic"), "partition", "offset", "next_position")
        .toArrow()
    )
    import pyarrow.parquet

    with store.new_file("pointer2/part.parquet") as file:
        pyarrow.parquet.write_table(pointers, file)
    store.delete_folder(STAGED_FOLDER)


def read_tables(spark: SparkSession, folder: str | os.PathLike[str]) -> EntityTables:
    """Return the tables in a folder that `write_tables` has written."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from aerotape.spark.entities.rows import EVENTS, HEADS, SNAPSHOTS

    def read(name: str, schema: Any) -> DataFrame:
        return spark.read.schema(schema).parquet(f"{os.fspath(folder).rstrip('/')}/{name}")

    return EntityTables(
        read("metajournal", from_arrow_schema(HEADS)),
        read("journal", from_arrow_schema(EVENTS)),
        read("snapshot", from_arrow_schema(SNAPSHOTS)),
        read("pointer2", f"topic string, {_POINTERS}"),
    )


def with_types(actions: DataFrame) -> DataFrame:
    """Return the columns of actions that tables need, with the types that tasks expect."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from aerotape.spark.entities.rows import ACTIONS

    return actions.select(
        *(fn.col(each.name).cast(each.dataType) for each in from_arrow_schema(ACTIONS))
    )
