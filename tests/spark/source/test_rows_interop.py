"""One recording read by Spark, by the offline reader and in a replay to the Java client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.daemon import archives
from support.daemon.control_rig import await_true
from support.jvm.java import JavaClient
from support.model.messages import digest, messages

import aerotape
from aerotape.replay.offline.directory import open_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Starts in the middle of the third term: the recording's start position is not 0.
CHANNEL = "aeron:ipc?term-length=65536|init-term-id=5|term-id=7|term-offset=4096"
START_POSITION = 2 * 65_536 + 4096
STREAM_ID, SEED, MAX_LENGTH = 33, 11, 4000
COUNT, KEPT, ADDED = 300, 170, 120


def rows_agree(
    spark: SparkSession,
    archive_dir: Path,
    client: JavaClient,
    recording_id: int,
    payloads: list[bytes],
) -> None:
    """Assert that all three give these payloads, and Spark and the reader the same rows."""
    source = spark.read.format("aerotape").option("recordingIds", recording_id)
    table = source.options(checksum="crc-32c", partitionBytes="64k").load(str(archive_dir))
    assert table.rdd.getNumPartitions() > 3
    rows = sorted((row.asDict() for row in table.collect()), key=lambda row: row["position"])
    offline = open_directory(archive_dir).recording(recording_id).to_arrow(checksum="crc-32c")
    assert rows == offline.to_pylist()
    assert [bytes(row["payload"]) for row in rows] == payloads
    length = rows[-1]["end_position"] - START_POSITION
    replay = client.call("replay", recording_id, START_POSITION, length, "aeron:ipc", 99)
    replayed = client.poll(replay, len(payloads))
    client.close_resource(replay)
    assert (replayed["count"], replayed["digest"]) == (len(payloads), digest(payloads))
    assert replayed["lastPosition"] == rows[-1]["end_position"]


@pytest.mark.parametrize("kind", archives.KINDS)
def test_the_same_rows_from_all_three(
    spark: SparkSession,
    kind: archives.Kind,
    java_client: Callable[[Path | str], JavaClient],
) -> None:
    """Fragments, padding, several segments, checksums, a start that is not 0: while the recording
    is live, after it was truncated, and after it was extended."""
    properties = {
        "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c",
        "aeron.archive.segment.file.length": "131072",
    }
    first = list(messages(SEED, COUNT, 32, MAX_LENGTH))
    added = list(messages(SEED, ADDED, 32, MAX_LENGTH, first_index=1000))
    with archives.serve(kind, properties) as archive:
        client = java_client(archive.aeron_dir)
        client.connect(archive.control_channel)
        client.call("startRecording", "aeron:ipc", STREAM_ID, "LOCAL")
        publication = client.add_exclusive_publication(CHANNEL, STREAM_ID)
        counter = client.recording_counter(publication["sessionId"])
        recording_id = counter["recordingId"]
        offered = client.offer(publication, seed=SEED, count=COUNT, max_length=MAX_LENGTH)
        client.await_counter(counter["counterId"], offered["position"])
        rows_agree(spark, archive.archive_dir, client, recording_id, first)

        client.close_resource(publication)
        client.call("stopRecording", "aeron:ipc", STREAM_ID)
        await_true(lambda: client.call("getStopPosition", recording_id) == offered["position"])
        recording = open_directory(archive.archive_dir).recording(recording_id)
        cut = next(m.end_position for i, m in enumerate(recording.messages()) if i == KEPT - 1)
        client.call("truncateRecording", recording_id, cut)
        await_true(lambda: client.call("getStopPosition", recording_id) == cut)
        rows_agree(spark, archive.archive_dir, client, recording_id, first[:KEPT])

        await_true(lambda: _segments(archive.archive_dir) == _segments_up_to(cut))
        descriptor = open_directory(archive.archive_dir).recording(recording_id).descriptor
        channel = aerotape.extension_channel(descriptor, "aeron:ipc")
        client.call("extendRecording", recording_id, "aeron:ipc", STREAM_ID, "LOCAL")
        publication = client.add_exclusive_publication(channel, STREAM_ID)
        counter = client.recording_counter(publication["sessionId"])
        assert counter["recordingId"] == recording_id
        offered = client.offer(
            publication, seed=SEED, first_index=1000, count=ADDED, max_length=MAX_LENGTH
        )
        client.await_counter(counter["counterId"], offered["position"])
        rows_agree(spark, archive.archive_dir, client, recording_id, first[:KEPT] + added)


def _segments(archive_dir: Path) -> int:
    """Return the number of segment files, including those to be deleted."""
    return len([*archive_dir.glob("*.rec"), *archive_dir.glob("*.rec.del")])


def _segments_up_to(position: int) -> int:
    """Return how many segment files the recording needs up to this position."""
    return -(-(position - 2 * 65_536) // 131_072)
