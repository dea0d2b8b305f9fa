"""The batch replicator: heads, events and pointers of a topic, computed from all its actions.

The result equals what the replicator stores from the same log. Actions of an entity are ordered by
position; a purge begins a new incarnation, of which the last one counts. All of it is DataFrame
operations, and nothing is collected on the driver. Appends in the binary form, and the rare ones
with a JSON text as payload, are converted in Python tasks (`decoding`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn
from pyspark.sql.window import Window

from aerotape.codecs.entity.segments import DEFAULT_SEGMENT_SIZE, DEFAULT_SEGMENTS
from aerotape.spark.entities.decoding import as_json, expiry
from aerotape.spark.entities.expressions import (
    expire_after,
    expire_on,
    head_segment,
    is_plain_json,
    metadata_of_events,
    or_null,
    record_id,
    text,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_APPEND, _MARK, _DELETE, _PURGE = 1, 2, 3, 4
_JSON: Final = 2
_BODY: Final = (
    "events array<struct<seqNr: bigint, tags: string, payloadType: string, payload: string>>,"
    " metadata struct<expireAfter: string, data: string>"
)
_ALL: Final = (Window.unboundedPreceding, Window.unboundedFollowing)
_SO_FAR: Final = (Window.unboundedPreceding, Window.currentRow)
_BEFORE: Final = (Window.unboundedPreceding, -1)


@dataclass(frozen=True, slots=True)
class EntityTables:
    """The tables of a topic, with the columns of SQL stores.

    Attributes:
        metajournal: heads.
        journal: events.
        pointer2: for each partition `topic`, `partition`, `offset` and `next_position`.
    """

    metajournal: DataFrame
    journal: DataFrame
    pointer2: DataFrame


def entity_tables(
    actions: DataFrame,
    topic: str,
    *,
    segments: int = DEFAULT_SEGMENTS,
    segment_size: int = DEFAULT_SEGMENT_SIZE,
) -> EntityTables:
    """Return the tables of a topic.

    Args:
        actions: all actions of the topic from the beginning of its log, as `read_actions` returns
            them.
        topic: the topic's name.
        segments: the number of segments of heads.
        segment_size: events in a segment of a journal.
    """
    decoded = actions.where(fn.col("kind") != _MARK).select(
        text("entityId").alias("id"),
        "partition",
        "position",
        "kind",
        fn.col("fromSeqNr").alias("first"),
        fn.col("toSeqNr").alias("last"),
        fn.col("timestampMs").alias("timestamp"),
        text("origin").alias("origin"),
        text("writerVersion").alias("version"),
        text("metadata").alias("metadata"),
        "payloadType",
        fn.col("sbe_payload").alias("payload"),
    )
    return EntityTables(
        _heads(decoded, topic, segments, segment_size),
        _events(decoded, topic, segment_size),
        _pointers(actions, topic),
    )


def _applied(actions: DataFrame) -> DataFrame:
    """Return the appends and deletes of last incarnations with the state of their journal.

    Columns: `seq_before` and `seq_nr`, the last event before and after the action; `delete_to` and
    `begin`, position of the first action, of the journal.
    """
    order = Window.partitionBy("id").orderBy("position")
    kind, first, last = fn.col("kind"), fn.col("first"), fn.col("last")
    purge = fn.when(kind == _PURGE, 1).otherwise(0)
    current = (
        actions.withColumn("purges", fn.sum(purge).over(order.rowsBetween(*_SO_FAR)))
        .withColumn("all_purges", fn.sum(purge).over(order.rowsBetween(*_ALL)))
        .where((fn.col("purges") == fn.col("all_purges")) & (kind != _PURGE))
        .withColumn("begin", fn.min("position").over(order.rowsBetween(*_ALL)))
    )
    begins = fn.col("position") == fn.col("begin")
    # A delete that begins a journal sets its sequence number.
    reach = fn.when((kind == _APPEND) | begins, last).otherwise(0)
    moved = current.withColumn(
        "seq_nr", fn.max(reach).over(order.rowsBetween(*_SO_FAR))
    ).withColumn(
        "seq_before", fn.coalesce(fn.max(reach).over(order.rowsBetween(*_BEFORE)), fn.lit(0))
    )
    deleted = fn.when(kind == _DELETE, fn.least(last, "seq_nr")).otherwise(
        fn.when(begins, first - 1).otherwise(0)
    )
    return moved.withColumn("delete_to", fn.max(deleted).over(order.rowsBetween(*_ALL)))


def _heads(actions: DataFrame, topic: str, segments: int, segment_size: int) -> DataFrame:
    binary = fn.when(
        (fn.col("payloadType") != _JSON) & fn.contains("payload", fn.lit(b'"expireAfter"')),
        fn.col("payload"),
    )
    states = _applied(
        actions.withColumn("expire", expire_after(fn.col("payloadType") == _JSON, "payload"))
        .withColumn("binary", binary)
        .drop("payload", "payloadType", "metadata", "version")
    )
    appended = fn.when(fn.col("kind") == _APPEND, fn.col("position"))
    heads = states.groupBy("id").agg(
        fn.first("partition").alias("partition"),
        fn.max("position").alias("offset"),
        fn.max("seq_nr").alias("seq_nr"),
        or_null(fn.max("delete_to"), 0).alias("delete_to"),
        fn.min_by("timestamp", "position").alias("created"),
        fn.max_by("timestamp", "position").alias("updated"),
        fn.max_by("timestamp", appended).alias("appended"),
        fn.max_by("expire", appended).alias("expire"),
        fn.max_by("binary", appended).alias("binary"),
        fn.first("begin").alias("begin"),
        fn.min_by("origin", "position").alias("origin"),
    )
    decoded = heads.withColumn("expire", fn.coalesce("expire", expiry(fn.col("binary"))))
    return decoded.select(
        fn.lit(topic).alias("topic"),
        "id",
        head_segment("id", segments).alias("segment"),
        "partition",
        "offset",
        fn.lit(segment_size).alias("segment_size"),
        "seq_nr",
        "delete_to",
        "created",
        "updated",
        fn.col("expire").alias("expire_after"),
        expire_on("appended", "expire").alias("expire_on"),
        record_id("partition", "begin", "id").alias("record_id"),
        or_null(fn.col("origin"), "").alias("origin"),
    )


def _events(actions: DataFrame, topic: str, segment_size: int) -> DataFrame:
    appends = (
        _applied(actions)
        .where(fn.col("kind") == _APPEND)
        .withColumn("after", fn.greatest("seq_before", "delete_to"))
        .where(fn.col("last") > fn.col("after"))
        .withColumn("meta_record_id", record_id("partition", "begin", "id"))
    )
    payload = fn.col("payload")
    is_plain = (fn.col("payloadType") == _JSON) & is_plain_json("payload")
    # One scan and one shuffle for all forms: a union would read and sort the actions twice.
    others = as_json(fn.when(~is_plain, payload), fn.col("payloadType"))
    body = fn.from_json(fn.coalesce(others, text("payload")), _BODY, {"mode": "FAILFAST"})
    events = appends.withColumn("body", body).withColumn("event", fn.explode("body.events"))
    events = events.where(fn.col("event.seqNr") > fn.col("after"))
    payload = fn.col("event.payload")
    kind = fn.coalesce("event.payloadType", fn.when(payload.isNull(), "none").otherwise("json"))
    seq_nr = fn.col("event.seqNr")
    return events.select(
        fn.lit(topic).alias("topic"),
        "id",
        seq_nr.alias("seq_nr"),
        fn.floor((seq_nr - 1) / segment_size).alias("segment"),
        "partition",
        fn.col("position").alias("offset"),
        "timestamp",
        or_null(fn.col("origin"), "").alias("origin"),
        or_null(fn.col("version"), "").alias("version"),
        "meta_record_id",
        or_null(fn.col("event.tags"), "[]").alias("tags"),
        or_null(kind, "none").alias("payload_type"),
        fn.when(kind == "json", fn.coalesce(payload, fn.lit("null")))
        .when(kind == "text", payload)
        .alias("payload_txt"),
        fn.when(kind == "binary", fn.unbase64(payload)).alias("payload_bin"),
        metadata_of_events("metadata", "body.metadata").alias("metadata"),
    )


def _pointers(actions: DataFrame, topic: str) -> DataFrame:
    return (
        actions.groupBy("partition")
        .agg(
            fn.lit(topic).alias("topic"),
            fn.max("position").alias("offset"),
            fn.max("end_position").alias("next_position"),
        )
        .select("topic", "partition", "offset", "next_position")
    )
