"""The streaming reader, called as by Spark, but without a Spark session."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.changed_directory import extend, stop
from support.builders.segment_builder import BEGIN, END, SegmentBuilder, crc32

from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import (
    AerotapeError,
    ConfigurationError,
    StorageError,
)
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.read_progress import ReadProgress

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructField, StructType
from support.spark.stream_query import Query, Row, places, positions, read

from aerotape.spark.data_source import AerotapeDataSource
from aerotape.spark.source.batch_reader import BatchReader
from aerotape.spark.streaming.offsets import StreamOffset
from aerotape.spark.streaming.reader import StreamReader


def batch_read(archive_dir: Path, recording_id: int, **arguments: Any) -> list[Row]:
    recording = open_directory(archive_dir).recording(recording_id)
    rows: list[Row] = recording.to_arrow(**arguments).to_pylist()
    return rows


def of(rows: list[Row], recording_id: int) -> list[Row]:
    return [row for row in rows if row["recording_id"] == recording_id]


def test_batches_have_the_rows_of_a_batch_read(tmp_path: Path) -> None:
    """Recordings that grow over terms and segments: each message once, in order, and no batch when
    nothing was added."""
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


def test_the_stop_of_a_recording_is_an_empty_batch(tmp_path: Path) -> None:
    """The stop of a recording that was read to its end is one empty batch."""
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
    """Recordings, positions, columns, checksum and mode apply as in a batch query."""
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
    """A recording that the query has begun to read stays selected, also with availableNow."""
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
    """A message is returned when its last fragment is recorded; one that never ends is left out, as
    in a batch query."""
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
    """No batch exceeds the limits, except for a single larger message; together the batches have
    each message once; a trigger without limits takes the rest."""
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
    """Each has an equal share of a batch, the rest of a share goes to the others, and one with
    messages larger than its share is read too."""
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
    # A message of 20 kB exceeds the limit: it is a batch by itself.
    alone = [batch for batch in counts if batch[2]]
    assert alone == [[0, 0, 1]] * 6
    assert [batch[2] for batch in counts[:9]] == [0, 0, 1] * 3
    assert [sum(batch[id] for batch in counts) for id in (0, 1, 2)] == [400, 40, 6]

    query = Query(tmp_path, maxMessagesPerTrigger=90)
    query.run()
    counts = [[len(of(rows, id)) for id in (0, 1, 2)] for rows in query.batches]
    assert counts[0] == [44, 40, 6]
    assert counts[1] == [90, 0, 0]


def test_latest_leaves_out_existing_messages(tmp_path: Path) -> None:
    """A query that starts at the latest position returns what is recorded afterwards, a message
    that had begun, and new recordings in full; also when its first batch failed."""
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


def test_available_now_reads_existing_messages(tmp_path: Path) -> None:
    """Messages and recordings added after the query has begun are left to the next query."""
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


def test_available_now_ignores_recordings_not_selected(tmp_path: Path) -> None:
    """An unreadable live recording of another channel is no error."""
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


def test_the_query_reports_the_ends_of_recordings(tmp_path: Path) -> None:
    """The end of each recording is reported for the query's progress."""
    builder = fill(SegmentBuilder(), 20)
    add_recording(tmp_path, builder, live=True)
    query = Query(tmp_path, maxMessagesPerTrigger=1)
    assert query.reader.reportLatestOffset() is None
    query.batch()
    assert query.reader.reportLatestOffset() == {
        "version": 1,
        "recordings": {"0": {"position": builder.position}},
    }


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
    """An invalid offset, or one of a newer version, is refused with advice."""
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
        ({"toTime": "1772357402s"}, "toTime: a stream has no end"),
        ({"first": 1}, "first: a stream has no end"),
        ({"last": 1}, "last: a stream has no end"),
        ({"startingPosition": "newest"}, "startingPosition: 'newest' is not one of earliest, lat"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss: 'maybe' is not one of true, false"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger: '0' is not a positive number"),
        (
            {"maxMessagesPerTrigger": "-1"},
            "maxMessagesPerTrigger: '-1' is not a whole number",
        ),
        ({"maxMessagesPerTrigger": "1" * 5000}, "is not a whole number"),
        ({"maxBytePerTrigger": "1"}, "do you mean maxBytesPerTrigger"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, object], complaint: str) -> None:
    """Invalid options are refused with a reason."""
    with pytest.raises(ConfigurationError, match=complaint):
        Query(tmp_path, **options)


def test_batch_queries_refuse_options_of_streams(tmp_path: Path) -> None:
    """Options of streams are errors in a batch query."""
    source = AerotapeDataSource({"path": str(tmp_path), "MAXbytesPERtrigger": "5m"})
    with pytest.raises(ConfigurationError, match=r"maxBytesPerTrigger: .*readStream only"):
        source.reader(source.schema())


def test_errors_have_no_tracebacks(tmp_path: Path) -> None:
    """Spark puts an error's causes and traceback into the query's exception: errors of aerotape
    have one call, and no cause."""
    source = AerotapeDataSource({"path": str(tmp_path / "none"), "toPosition": "64"})
    schema = source.schema()
    stream = AerotapeDataSource({"path": str(tmp_path / "none")}).streamReader(schema)
    assert isinstance(stream, StreamReader)
    start = stream.initialOffset()
    end = StreamOffset({0: ReadProgress(position=64)}).to_json()
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
        text = "".join(traceback.format_exception(raised.value))
        assert text.count("Traceback") == 1, text
        in_files = sum(text.count(f'File "{each}"') for each in files)
        assert in_files == text.count(package) == 1, text
