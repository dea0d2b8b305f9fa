"""The streaming reader, asked as Spark asks it, but without a Spark session."""

from __future__ import annotations

import inspect
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import BEGIN, END, BuiltMessage, SegmentBuilder, crc32

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.errors import (
    AerotapeError,
    ConfigurationError,
    DataLossError,
    StorageError,
    UnknownRecordingError,
)
from aerotape.replay.offline.directory import open_directory

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructField, StructType
from support.spark.stream_query import Query, Row, read

from aerotape.spark.data_source import AerotapeDataSource
from aerotape.spark.source.batch_reader import BatchReader
from aerotape.spark.streaming.offsets import Progress, StreamOffset
from aerotape.spark.streaming.reader import StreamReader


def batch_read(archive_dir: Path, recording_id: int, **arguments: Any) -> list[Row]:
    recording = open_directory(archive_dir).recording(recording_id)
    rows: list[Row] = recording.to_arrow(**arguments).to_pylist()
    return rows


def of(rows: list[Row], recording_id: int) -> list[Row]:
    return [row for row in rows if row["recording_id"] == recording_id]


def positions(rows: list[Row]) -> list[int]:
    return [row["position"] for row in rows]


def places(messages: list[BuiltMessage]) -> list[int]:
    return [message.position for message in messages]


def truncate(archive_dir: Path, builder: SegmentBuilder, kept: int) -> None:
    """Keep so many messages, as `aerotape truncate` does."""
    builder.messages[kept:] = []
    builder.position = builder.messages[-1].end_position
    for position in [position for position in builder.frames if position >= builder.position]:
        del builder.frames[position]
    with Catalog.open(archive_dir) as catalog:
        catalog.set_stop_position(builder.recording_id, builder.position)
    for path in archive_dir.glob(f"{builder.recording_id}-*.rec"):
        path.unlink()
    builder.write(archive_dir)


def extend(archive_dir: Path, builder: SegmentBuilder) -> None:
    """Make the recording live again."""
    with Catalog.open(archive_dir) as catalog:
        catalog.extend_recording(
            builder.recording_id, control_session_id=1, correlation_id=2, session_id=99
        )


def stop(archive_dir: Path, builder: SegmentBuilder) -> None:
    with Catalog.open(archive_dir) as catalog:
        catalog.recording_stopped(builder.recording_id, builder.position, 1_700_000_002_000)


def purge_segments(archive_dir: Path, builder: SegmentBuilder, position: int) -> None:
    with Catalog.open(archive_dir) as catalog:
        catalog.set_start_position(builder.recording_id, position)
    for path in archive_dir.glob(f"{builder.recording_id}-*.rec"):
        if int(path.stem.partition("-")[2]) < position:
            path.unlink()


def purge(archive_dir: Path, recording_id: int, *, compact: bool = False) -> None:
    with Catalog.open(archive_dir) as catalog:
        catalog.change_state(recording_id, RecordingState.INVALID)
        if compact:
            catalog.compact()
    for path in archive_dir.glob(f"{recording_id}-*.rec"):
        path.unlink()


def test_batches_give_what_a_batch_read_gives(tmp_path: Path) -> None:
    """Two recordings that grow over terms and segments, one with a start that is not 0, then one
    more: each message once, in order, and nothing when nothing was added."""
    first, second = SegmentBuilder(), SegmentBuilder(start_position=98_304, stream_id=5)
    third = SegmentBuilder()
    for builder in (first, second):
        add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path, partitionBytes="64k")
    assert query.batch() is None
    for round in range(8):
        fill(first, 20, seed=round).write(tmp_path)
        fill(second, 5 * (round % 3), seed=50 + round).write(tmp_path)
        if round == 3:
            add_recording(tmp_path, third, live=True)
        if round > 3:
            fill(third, 4, seed=70 + round).write(tmp_path)
        if round == 5:
            stop(tmp_path, second)
            second = SegmentBuilder(recording_id=9)
        if round % 2:
            query.restart()
        rows = query.batch()
        assert rows is not None and len(of(rows, 0)) == 20
        assert query.batch() is None
    rows = [row for each in query.batches for row in each]
    for id in (0, 1, 2):
        assert of(rows, id) == batch_read(tmp_path, id)
    assert len(of(rows, 1)) > 20 and len(of(rows, 2)) == 16


def test_a_recording_that_stops_gives_nothing_again(tmp_path: Path) -> None:
    """Also one that is new to the query and was read in one batch; that it was read to its end is
    noted once."""
    builder = fill(SegmentBuilder(), 20)
    add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path)
    assert len(query.batch() or []) == 20
    stop(tmp_path, builder)
    assert query.batch() == []
    assert query.batch() is None
    extend(tmp_path, builder)
    assert query.batch() is None
    stop(tmp_path, builder)
    assert query.batch() is None


def test_options_of_batch_queries_hold(tmp_path: Path) -> None:
    """Recordings, positions, columns, checksum and mode, as a batch query has them."""
    builder = fill(SegmentBuilder(checksum=crc32, stream_id=10), 60)
    other = fill(SegmentBuilder(stream_id=11), 5)
    add_recording(tmp_path, builder, live=True)
    add_recording(tmp_path, other, live=True)
    victim = next(m for m in builder.messages[40:] if m.payload)
    path = builder.segment_path(tmp_path, victim.position)
    data = bytearray(path.read_bytes())
    data[victim.position - builder.segment_base(victim.position) + 32] ^= 1
    path.write_bytes(data)
    begin = builder.messages[10].position + 1
    options = {"streamId": 10, "fromPosition": begin, "checksum": "crc-32"}
    query = Query(tmp_path, **options, mode="PERMISSIVE", maxMessagesPerTrigger=7)
    expected = batch_read(tmp_path, 0, from_position=begin, checksum="crc-32", mode="PERMISSIVE")
    assert len(expected) == 49
    assert query.run() == expected
    dropping = Query(tmp_path, **options, mode="DROPMALFORMED", columns="position")
    assert dropping.run() == [
        {"position": m.position} for m in builder.messages[11:] if m is not victim
    ]
    with pytest.raises(Exception, match=rf"recording 0: .*position {victim.position}"):
        Query(tmp_path, **options).run()
    assert of(Query(tmp_path, recordingIds="1").run(), 0) == []


def test_a_recording_is_followed_under_another_channel(tmp_path: Path) -> None:
    """One that the query has begun to read is read on, also when only what is there is taken."""
    builders = [fill(SegmentBuilder(), 10, seed=seed) for seed in (1, 2)]
    for builder in builders:
        add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path, channel="alias=prices", recordingIds="0")
    found = query.run()
    for available_now in (False, True):
        with Catalog.open(tmp_path) as catalog:
            for id in (0, 1):
                catalog.replace_channel(id, stripped_channel="s", original_channel="aeron:ipc")
        for builder in builders:
            fill(builder, 10, seed=3).write(tmp_path)
        query.restart()
        if available_now:
            query.reader.prepareForTriggerAvailableNow()
        found += query.run()
    assert found == open_directory(tmp_path).recording(0).to_arrow().to_pylist()
    query.restart(recordingIds="0,1")
    assert query.run() == []


def test_a_message_in_progress_waits(tmp_path: Path) -> None:
    """A message of which fragments are missing comes when it is whole; one whose end never comes
    is passed over, as in a batch query."""
    builder = fill(SegmentBuilder(), 10)
    builder.frame(b"one " * 50, flags=BEGIN)
    begin = builder.position - 256
    add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path, maxBytesPerTrigger="1k")
    assert positions(query.run()) == places(builder.messages)
    builder.frame(b"two " * 50, flags=0)
    builder.write(tmp_path)
    assert query.run() == []
    builder.frame(b"three", flags=END)
    builder.write(tmp_path)
    query.restart()
    [row] = query.run()
    assert (row["position"], row["end_position"]) == (begin, builder.position)
    assert row["payload"] == b"one " * 50 + b"two " * 50 + b"three"
    builder.frame(b"never", flags=BEGIN)
    builder.pad_term()
    builder.frame(b"ended", flags=BEGIN)
    builder.write(tmp_path)
    assert query.run() == []
    fill(builder, 3, seed=2).write(tmp_path)
    stop(tmp_path, builder)
    assert positions(query.run()) == places(builder.messages[-3:])
    assert query.batch() is None


def test_limits_hold_and_messages_stay_whole(tmp_path: Path) -> None:
    """No batch has more bytes or messages than it may, unless a single message is larger; together
    they give everything once; a trigger without limits takes the rest."""
    builders = [
        fill(SegmentBuilder(mtu_length=mtu), count, seed=mtu)
        for mtu, count in ((1408, 120), (4096, 40), (256, 7))
    ]
    for builder in builders:
        add_recording(tmp_path, builder, live=True)
    expected = {id: batch_read(tmp_path, id) for id in (0, 1, 2)}

    def size(row: Row) -> int:
        return int(row["end_position"] - row["position"])

    for limits in (
        {"maxBytesPerTrigger": 10_000},
        {"maxMessagesPerTrigger": 10},
        {"maxMessagesPerTrigger": 1},
        {"maxBytesPerTrigger": 20_000, "maxMessagesPerTrigger": 4},
    ):
        query = Query(tmp_path, **limits)
        rows = query.run()
        for id, all_of_it in expected.items():
            assert of(rows, id) == all_of_it
        for batch in query.batches:
            assert len(batch) <= limits.get("maxMessagesPerTrigger", 1000)
            assert len(batch) == 1 or sum(map(size, batch)) <= limits.get(
                "maxBytesPerTrigger", 1 << 30
            )
    query = Query(tmp_path, maxMessagesPerTrigger=10)
    assert len(query.batch() or []) == 10
    assert len(query.batch(once=True) or []) == 157


def test_recordings_share_a_limit(tmp_path: Path) -> None:
    """Each has its share of a batch, what one leaves goes to the others, and one with messages
    larger than its share is not left waiting."""
    small, large, huge = SegmentBuilder(), SegmentBuilder(), SegmentBuilder()
    for _ in range(400):
        small.message(bytes([1]) * 96)  # frames of 128 bytes
    for _ in range(40):
        large.message(bytes([2]) * 992)  # of 1024
    for _ in range(6):
        huge.message(bytes([3]) * 20_000)
    for builder in (small, large, huge):
        add_recording(tmp_path, builder)
    query = Query(tmp_path, maxBytesPerTrigger=12_288)
    query.run()
    counts = [[len(of(rows, id)) for id in (0, 1, 2)] for rows in query.batches]
    assert counts[0] == [44, 5, 0]
    # A message of 20 kB is more than all that a batch may have: it is a batch of its own.
    alone = [batch for batch in counts if batch[2]]
    assert alone == [[0, 0, 1]] * 6
    assert [batch[2] for batch in counts[:9]] == [0, 0, 1] * 3
    assert [sum(batch[id] for batch in counts) for id in (0, 1, 2)] == [400, 40, 6]

    query = Query(tmp_path, maxMessagesPerTrigger=90)
    query.run()
    counts = [[len(of(rows, id)) for id in (0, 1, 2)] for rows in query.batches]
    assert counts[0] == [44, 40, 6]
    assert counts[1] == [90, 0, 0]


def test_latest_leaves_out_what_is_there(tmp_path: Path) -> None:
    """A query that starts at the latest position gets what is recorded afterwards, a message whose
    beginning was there too, and new recordings in full; also when its first batch failed."""
    live, stopped = fill(SegmentBuilder(), 10), fill(SegmentBuilder(), 10, seed=3)
    begin = live.position
    live.frame(b"begun" * 20, flags=BEGIN)
    add_recording(tmp_path, live, live=True)
    add_recording(tmp_path, stopped)
    query = Query(tmp_path, startingPosition="latest")
    start, end = query.advance()
    assert start != end
    live.frame(b"ended", flags=END)
    fill(live, 4, seed=8).write(tmp_path)
    fresh = fill(SegmentBuilder(), 3)
    add_recording(tmp_path, fresh, live=True)
    # Spark asks for the initial offset again when it repeats the first batch.
    query.restart(startingPosition="earliest")
    assert query.new_reader().initialOffset() != start
    assert read(query.reader, start, end) == []
    rows = query.run()
    assert positions(of(rows, 0)) == [begin, *places(live.messages[10:])]
    assert of(rows, 1) == []
    assert positions(of(rows, 2)) == places(fresh.messages)
    extend(tmp_path, stopped)
    fill(stopped, 5, seed=4).write(tmp_path)
    assert positions(query.run()) == places(stopped.messages[10:])


def test_available_now_takes_what_was_there(tmp_path: Path) -> None:
    """What is recorded after the query has begun is left for the next, new recordings too."""
    builder = fill(SegmentBuilder(), 50)
    add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path, maxMessagesPerTrigger=8)
    for expected in (places(builder.messages), None):
        query.restart()
        query.reader.prepareForTriggerAvailableNow()
        before = len(builder.messages)
        fill(builder, 12, seed=before).write(tmp_path)
        add_recording(tmp_path, fill(SegmentBuilder(), 2), live=True)
        rows = query.run()
        if expected is not None:
            assert positions(rows) == expected
        else:
            assert positions(of(rows, 0)) == places(builder.messages[50:62])
            assert len(rows) == 14
    stop(tmp_path, builder)
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    assert positions(of(query.run(), 0)) == places(builder.messages[62:])
    assert of(query.run(), 0) == []


def test_available_now_does_not_look_where_others_end(tmp_path: Path) -> None:
    """A live recording of another channel of which a segment cannot be read is none of its
    business."""
    builder = fill(SegmentBuilder(), 10)
    add_recording(tmp_path, builder)
    add_recording(tmp_path, fill(SegmentBuilder(), 10, seed=2), live=True)
    with Catalog.open(tmp_path) as catalog:
        catalog.replace_channel(1, stripped_channel="s", original_channel="aeron:ipc")
    [segment] = tmp_path.glob("1-*.rec")
    segment.unlink()
    segment.mkdir()
    query = Query(tmp_path, channel="alias=prices")
    query.reader.prepareForTriggerAvailableNow()
    assert positions(query.run()) == places(builder.messages)
    query = Query(tmp_path)
    with pytest.raises(StorageError):
        query.reader.prepareForTriggerAvailableNow()


def test_the_query_tells_where_recordings_end(tmp_path: Path) -> None:
    """So that Spark can report how far it is behind."""
    builder = fill(SegmentBuilder(), 20)
    add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path, maxMessagesPerTrigger=1)
    assert query.reader.reportLatestOffset() is None
    query.batch()
    assert query.reader.reportLatestOffset() == {
        "version": 1,
        "recordings": {"0": {"position": builder.position}},
    }


def test_a_truncation_below_the_query(tmp_path: Path) -> None:
    """Is an error that names the recording and both positions, again after a restart; or reading
    goes on with what is recorded there anew."""
    builder = fill(SegmentBuilder(), 60)
    add_recording(tmp_path, builder)
    query = Query(tmp_path)
    query.run()
    read_to = builder.position
    truncate(tmp_path, builder, 40)
    for _ in range(2):
        with pytest.raises(DataLossError) as raised:
            query.batch()
        assert str(raised.value) == (
            f"recording 0 was truncated to position {builder.position}, and the query has read "
            f"up to position {read_to}; to continue with what is left, set the option "
            "failOnDataLoss to false"
        )
        assert (raised.value.recording_id, raised.value.position) == (0, builder.position)
        query.restart()
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="was truncated to position"):
        assert query.run() == []
    extend(tmp_path, builder)
    fill(builder, 30, seed=9).write(tmp_path)
    assert positions(query.run()) == places(builder.messages[40:])


def test_a_truncation_that_was_extended_again(tmp_path: Path) -> None:
    """What the query has read last is no longer there: that is noticed, whether the new data ends
    behind the query's position or before, live or not. Reading goes on behind that position."""
    for seed, count, live in ((1, 60, True), (2, 60, False), (3, 3, True)):
        archive_dir = tmp_path / str(seed)
        archive_dir.mkdir()
        builder = fill(SegmentBuilder(), 60)
        add_recording(archive_dir, builder)
        query = Query(archive_dir, maxMessagesPerTrigger=20)
        query.run()
        read_to = builder.position
        truncate(archive_dir, builder, 30)
        extend(archive_dir, builder)
        fill(builder, count, seed=100 + seed).write(archive_dir)
        if not live:
            stop(archive_dir, builder)
        with pytest.raises(DataLossError, match=rf"recording 0 no longer holds .* {read_to}"):
            query.run()
        query.restart(failOnDataLoss=False)
        with pytest.warns(RuntimeWarning, match=rf"no longer holds .* {read_to}"):
            rows = query.run()
        kept = [m for m in builder.messages if m.position >= min(read_to, builder.position)]
        assert positions(rows) == places(kept)
        assert (len(kept) > 5) == (count == 60)
        if live:
            added = len(builder.messages)
            fill(builder, 10, seed=5).write(archive_dir)
            assert positions(query.run()) == places(builder.messages[added:])


def test_segments_purged_before_they_were_read(tmp_path: Path) -> None:
    """Are an error that names the positions, or are left out; what had been read may go."""
    builder = fill(SegmentBuilder(segment_length=65_536), 100)
    add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path, maxMessagesPerTrigger=40)
    query.batch()
    read_to = query.offset["recordings"]["0"]["position"]
    assert read_to > 65_536
    purge_segments(tmp_path, builder, 65_536)
    query.restart()
    assert positions(query.batch() or []) == places(builder.messages[40:80])
    query = Query(tmp_path, maxMessagesPerTrigger=1)
    query.batch()
    read_to = query.offset["recordings"]["0"]["position"]
    purge_segments(tmp_path, builder, 131_072)
    with pytest.raises(DataLossError, match=rf"recording 0: positions {read_to} to 131072 were"):
        query.batch()
    query.restart(failOnDataLoss=False, maxMessagesPerTrigger=1000)
    with pytest.warns(RuntimeWarning, match="purged"):
        rows = query.run()
    assert positions(rows) == [p for p in places(builder.messages) if p >= 131_072]


def test_a_batch_that_is_repeated_after_a_loss(tmp_path: Path) -> None:
    """A batch in the checkpoint of which something is gone by the time it is read again: an error,
    or what is left of it."""

    def repeated(name: str, **options: object) -> tuple[SegmentBuilder, Query, Row]:
        archive_dir = tmp_path / name
        archive_dir.mkdir()
        builder = fill(SegmentBuilder(segment_length=65_536), 100)
        add_recording(archive_dir, builder)
        query = Query(archive_dir, **options)
        start, _ = query.advance()
        query.restart()
        return builder, query, start

    builder, query, start = repeated("purged segments")
    purge_segments(tmp_path / "purged segments", builder, 131_072)
    with pytest.raises(DataLossError, match="positions 0 to 131072 were purged"):
        read(query.reader, start, query.offset)
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="purged"):
        rows = read(query.reader, start, query.offset)
    assert positions(rows) == [p for p in places(builder.messages) if p >= 131_072]

    builder, query, start = repeated("truncated")
    truncate(tmp_path / "truncated", builder, 30)
    with pytest.raises(DataLossError, match="truncated to position"):
        read(query.reader, start, query.offset)
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="truncated"):
        rows = read(query.reader, start, query.offset)
    assert positions(rows) == places(builder.messages)

    builder, query, start = repeated("replaced")
    truncate(tmp_path / "replaced", builder, 30)
    extend(tmp_path / "replaced", builder)
    fill(builder, 200, seed=6).write(tmp_path / "replaced")
    end = query.offset["recordings"]["0"]["position"]
    with pytest.raises(DataLossError, match="no longer holds"):
        read(query.reader, start, query.offset)
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="no longer holds"):
        rows = read(query.reader, start, query.offset)
    assert positions(rows) == [p for p in places(builder.messages) if p < end]

    _, query, start = repeated("purged")
    purge(tmp_path / "purged", 0)
    with pytest.raises(DataLossError, match="recording 0 was purged"):
        read(query.reader, start, query.offset)
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="purged"):
        assert read(query.reader, start, query.offset) == []


@pytest.mark.parametrize("named", [False, True])
def test_purged_recordings(tmp_path: Path, named: bool) -> None:
    """One that was read to its end may go, and come back into the catalog, and leave it; one that
    was not is an error, or forgotten."""
    add_recording(tmp_path, fill(SegmentBuilder(), 20))
    add_recording(tmp_path, fill(SegmentBuilder(), 20, seed=4), live=True)
    query = Query(tmp_path, **({"recordingIds": "0,1"} if named else {}))
    assert len(query.run()) == 40
    aside = tmp_path / "aside"
    shutil.copytree(tmp_path, aside)
    purge(tmp_path, 0)
    assert query.batch() is None
    with Catalog.open(tmp_path) as catalog:
        catalog.change_state(0, RecordingState.VALID)
    for path in aside.glob("0-*.rec"):
        shutil.copy(path, tmp_path)
    assert query.batch() is None
    purge(tmp_path, 0, compact=True)
    assert query.run() == []
    query.restart()
    assert query.batch() is None
    assert ("0" in query.offset["recordings"]) == named
    read_to = query.offset["recordings"]["1"]["position"]
    purge(tmp_path, 1)
    with pytest.raises(DataLossError, match=rf"recording 1 was purged .* position {read_to}"):
        query.batch()
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="recording 1 was purged"):
        assert query.run() == []


def test_recordings_that_were_never_there(tmp_path: Path) -> None:
    """An id that was asked for must exist, as in a batch query."""
    builder = SegmentBuilder()
    add_recording(tmp_path, builder)
    with pytest.raises(UnknownRecordingError, match="no recording with id 7"):
        Query(tmp_path, recordingIds="0,7").batch()
    with pytest.warns(RuntimeWarning, match="no recording with id 7"):
        assert Query(tmp_path, recordingIds="0,7", failOnDataLoss=False).run() == []


@pytest.mark.parametrize(
    ("offset", "complaint"),
    [
        (
            {"version": 2, "recordings": {}},
            "of version 2, this aerotape supports version 1",
        ),
        ({"version": 0}, "holds an offset that is not of aerotape"),
        ({"prices-0": {"0": 12}}, "holds an offset that is not of aerotape"),
        ({"version": 1, "recordings": {"a": {"position": 1}}}, "holds an offset that is not"),
        ({"version": 1, "recordings": {"1": {"position": "1"}}}, "holds an offset that is not"),
        ({"version": 1, "recordings": {"1": {"from": 1}}}, "holds an offset that is not"),
        ({"version": 1, "recordings": [1]}, "holds an offset that is not"),
    ],
)
def test_foreign_checkpoints(tmp_path: Path, offset: Row, complaint: str) -> None:
    """What is no offset, or one of a newer version, is refused with a remedy."""
    add_recording(tmp_path, fill(SegmentBuilder(), 2))
    query = Query(tmp_path)
    with pytest.raises(ConfigurationError, match=complaint):
        query.reader.latestOffset(offset, ReadAllAvailable())
    with pytest.raises(ConfigurationError, match=complaint):
        query.reader.partitions(offset, offset)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"toPosition": 64}, "toPosition: a stream has no end"),
        ({"startingPosition": "newest"}, "startingPosition: 'newest' is not one of earliest, lat"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss: 'maybe' is not one of true, false"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger: '0' is not a positive number"),
        ({"maxMessagesPerTrigger": "-1"}, "maxMessagesPerTrigger: '-1' is not a positive whole"),
        ({"maxMessagesPerTrigger": "1" * 5000}, "is not a positive whole number"),
        ({"maxBytePerTrigger": "1"}, "do you mean maxBytesPerTrigger"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, object], complaint: str) -> None:
    """Are refused with a reason."""
    with pytest.raises(ConfigurationError, match=complaint):
        Query(tmp_path, **options)


def test_batch_queries_refuse_options_of_streams(tmp_path: Path) -> None:
    """They would do nothing there."""
    source = AerotapeDataSource({"path": str(tmp_path), "MAXbytesPERtrigger": "5m"})
    with pytest.raises(ConfigurationError, match=r"maxBytesPerTrigger: .*readStream only"):
        source.reader(source.schema())


def test_errors_do_not_tell_the_calls_that_found_them(tmp_path: Path) -> None:
    """Spark puts an error with its causes and all calls into the query's exception: of ours there
    is one call, and no cause."""
    source = AerotapeDataSource({"path": str(tmp_path / "none"), "toPosition": "64"})
    schema = source.schema()
    stream = AerotapeDataSource({"path": str(tmp_path / "none")}).streamReader(schema)
    assert isinstance(stream, StreamReader)
    start = stream.initialOffset()
    end = StreamOffset({0: Progress(position=64)}).to_json()
    files = [inspect.getfile(each) for each in (AerotapeDataSource, BatchReader)]
    # Not only the name: a checkout may lie in a folder of that name.
    package = f'File "{Path(files[0]).parents[1]}'
    failing: list[Callable[[], object]] = [
        lambda: source.reader(StructType([StructField("colour", StringType())])),
        lambda: source.streamReader(schema),
        lambda: source.writer(schema, overwrite=False),
        stream.prepareForTriggerAvailableNow,
        lambda: stream.latestOffset(start, ReadAllAvailable()),
        lambda: stream.partitions(start, end),
    ]
    for fail in failing:
        with pytest.raises(AerotapeError) as raised:
            fail()
        told = "".join(traceback.format_exception(raised.value))
        assert told.count("Traceback") == 1, told
        in_files = sum(told.count(f'File "{each}"') for each in files)
        assert in_files == told.count(package) == 1, told
