"""The actions of a topic as a DataFrame: from an archive directory or from a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from aerotape import codecs
from aerotape.entity.topic import recordings_of
from aerotape.errors import EntityError
from aerotape.replay.offline.directory import open_directory
from aerotape.spark.source.options import STORAGE_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA_FILE: Final = Path(codecs.__file__).parent / "schemas" / "entity.xml"
"""The SBE schema of actions."""

COLUMNS: Final = (
    "recording_id", "position", "end_position", "timestampMs", "fromSeqNr", "toSeqNr", "kind",
    "payloadType", "entityId", "origin", "writerVersion", "metadata", "sbe_payload",
)  # fmt: skip
"""Columns of actions: of the data source, and of tables written from it with the same schema."""


def read_actions(
    spark: SparkSession,
    archive_dir: str | os.PathLike[str],
    topic: str,
    storage: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the actions of a topic in an archive directory, whose archive may run.

    A further column, `partition`, is the index of the partition.

    Args:
        spark: the session.
        archive_dir: the directory, or the URL of a copy in remote storage.
        topic: the topic's name.
        storage: options of remote storage.

    Raises:
        EntityError: the topic has no recording in the directory.
        CatalogError: the directory has no catalog that can be read.
    """
    partitions = _partitions(archive_dir, topic, storage or {})
    reader = (
        spark.read.format("aerotape")
        .option("schema", str(SCHEMA_FILE))
        .option("template", "Action")
        .option("enums", "number")
        .option("columns", ",".join(COLUMNS))
        .option("recordingIds", ",".join(map(str, partitions)))
    )
    for name, value in (storage or {}).items():
        reader = reader.option(f"{STORAGE_PREFIX}{name}", value)
    return with_partitions(reader.load(os.fspath(archive_dir)), partitions)


def with_partitions(actions: DataFrame, partitions: Mapping[int, int]) -> DataFrame:
    """Return the actions of these recordings with the column `partition`.

    Args:
        actions: with the columns `COLUMNS`, for example a table of `aerotape parquet`.
        partitions: indices of partitions by recording id.
    """
    recording = fn.col("recording_id")
    index = reduce(
        lambda chain, item: chain.when(recording == item[0], item[1]),
        partitions.items(),
        fn.when(fn.lit(False), 0),
    )
    return actions.where(recording.isin(list(partitions))).select(
        *COLUMNS, index.cast("int").alias("partition")
    )


def _partitions(
    archive_dir: str | os.PathLike[str], topic: str, storage: Mapping[str, str]
) -> dict[int, int]:
    """Return the indices of a topic's partitions by recording id."""
    directory = open_directory(archive_dir, storage)
    found = recordings_of(topic, (each.descriptor for each in directory.recordings()))
    if not found:
        raise EntityError(
            f"{os.fspath(archive_dir)} has no recording of topic {topic}: check its name", topic
        )
    return {each.recording_id: partition.index for partition, each in found.items()}
