"""Data that is deleted before a streaming query has read it: an error, or a warning by option."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.changed_directory import extend, purge, purge_segments, truncate
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.errors import DataLossError, UnknownRecordingError

pytest.importorskip("pyspark")

from support.spark.stream_query import Query, places, positions, read


def replace(archive_dir: Path, builder: SegmentBuilder) -> None:
    """Truncate a recording and extend it with other messages."""
    truncate(archive_dir, builder, 30)
    extend(archive_dir, builder)
    fill(builder, 200, seed=6).write(archive_dir)


def replace_by_another(archive_dir: Path, _: SegmentBuilder) -> None:
    """Record another stream in an empty directory."""
    for path in archive_dir.iterdir():
        path.unlink()
    add_recording(archive_dir, fill(SegmentBuilder(), 200, seed=6), start_timestamp_ms=7)


def test_a_truncation_below_the_query(tmp_path: Path) -> None:
    """A truncation is an error that names the recording and both positions, also after a restart;
    by option the query continues with what is recorded there later."""
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
            f"recording 0 was truncated: it ends at position {builder.position}, and the query has "
            f"read up to position {read_to}; to continue with what is left, set the option "
            "failOnDataLoss to false"
        )
        assert (raised.value.recording_id, raised.value.position) == (0, builder.position)
        query.restart()
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="was truncated: it ends at position"):
        assert query.run() == []
    extend(tmp_path, builder)
    fill(builder, 30, seed=9).write(tmp_path)
    assert positions(query.run()) == places(builder.messages[40:])


def test_a_truncation_that_was_extended_again(tmp_path: Path) -> None:
    """Other data in place of the last message is detected. Reading resumes after the position up to
    which the query has read."""
    builder = fill(SegmentBuilder(), 60)
    add_recording(tmp_path, builder)
    query = Query(tmp_path, maxMessagesPerTrigger=20)
    query.run()
    read_to = builder.position
    replace(tmp_path, builder)
    expected = (
        rf"recording 0 no longer holds what was read before position {read_to}: it was truncated "
        "and extended, or is another recording"
    )
    with pytest.raises(DataLossError, match=expected):
        query.run()
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match=expected):
        rows = query.run()
    assert positions(rows) == [p for p in places(builder.messages) if p >= read_to]
    assert len(rows) > 5
    added = len(builder.messages)
    fill(builder, 10, seed=5).write(tmp_path)
    assert positions(query.run()) == places(builder.messages[added:])


@pytest.mark.parametrize("offset", ["with identity", "of an earlier version"])
@pytest.mark.parametrize("is_longer", [True, False])
def test_another_recording_with_the_same_id(tmp_path: Path, offset: str, is_longer: bool) -> None:
    """The directory was deleted and another archive records there: by option the query reads all of
    the other recording, also if that has the same length. Offsets of earlier versions do not
    identify the recording: of another one the query then reads what follows."""
    archive_dir = tmp_path / "archive"
    archive_dir.mkdir()
    builder = fill(SegmentBuilder(), 60)
    add_recording(archive_dir, builder)
    query = Query(archive_dir)
    query.run()
    read_to = builder.position
    if offset == "of an earlier version":
        del query.offset["recordings"]["0"]["identity"]
    shutil.rmtree(archive_dir)
    archive_dir.mkdir()
    other = fill(SegmentBuilder(), 90 if is_longer else 60, seed=9 if is_longer else 1)
    add_recording(archive_dir, other, start_timestamp_ms=7)
    query.restart()
    if offset == "of an earlier version" and not is_longer:
        assert query.batch() is None
        return
    with pytest.raises(DataLossError, match=rf"before position {read_to}: it .*another recording"):
        query.run()
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match="is another recording"):
        rows = query.run()
    begin = 0 if offset == "with identity" else read_to
    assert positions(rows) == [p for p in places(other.messages) if p >= begin]
    assert query.batch() is None


def test_an_empty_recording_that_becomes_another(tmp_path: Path) -> None:
    """Nothing was read of it: the query follows the other one. A replication does so."""
    add_recording(tmp_path, SegmentBuilder())
    query = Query(tmp_path)
    assert query.run() == []
    assert "0" in query.offset["recordings"]
    for path in tmp_path.iterdir():
        path.unlink()
    other = fill(SegmentBuilder(), 5)
    add_recording(tmp_path, other, start_timestamp_ms=7)
    assert positions(query.run()) == places(other.messages)


def test_segments_purged_before_they_were_read(tmp_path: Path) -> None:
    """Unread purged segments are an error that names the positions, or left out; a purge of what
    was read is not."""
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


@pytest.mark.parametrize(
    ("lose", "begin", "complaint"),
    [
        pytest.param(
            lambda archive_dir, builder: purge_segments(archive_dir, builder, 131_072),
            131_072,
            "positions 0 to 131072 were purged",
            id="purged-segments",
        ),
        pytest.param(
            lambda archive_dir, builder: truncate(archive_dir, builder, 30),
            0,
            "was truncated: it ends at position",
            id="truncated",
        ),
        pytest.param(replace, 0, "no longer holds", id="replaced"),
        pytest.param(replace_by_another, None, "is another recording", id="another"),
        pytest.param(
            lambda archive_dir, _: purge(archive_dir, 0),
            None,
            "recording 0 was purged",
            id="purged",
        ),
    ],
)
def test_a_batch_that_is_repeated_after_a_loss(
    tmp_path: Path,
    lose: Callable[[Path, SegmentBuilder], None],
    begin: int | None,
    complaint: str,
) -> None:
    """A batch in the checkpoint that can no longer be read completely is an error, or by option its
    remaining rows."""
    builder = fill(SegmentBuilder(segment_length=65_536), 100)
    add_recording(tmp_path, builder)
    query = Query(tmp_path)
    start, end = query.advance()
    query.restart()
    lose(tmp_path, builder)
    with pytest.raises(DataLossError, match=complaint):
        read(query.reader, start, end)
    query.restart(failOnDataLoss=False)
    with pytest.warns(RuntimeWarning, match=complaint):
        rows = read(query.reader, start, end)
    limit = end["recordings"]["0"]["position"]
    left = [p for p in places(builder.messages) if begin is not None and begin <= p < limit]
    assert positions(rows) == left


@pytest.mark.parametrize("named", [False, True])
def test_purged_recordings(tmp_path: Path, named: bool) -> None:
    """A recording that was read to its end may be purged, restored and removed from the catalog;
    one that was not is an error, or by option left out."""
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


def test_unknown_recordings(tmp_path: Path) -> None:
    """An id in the options must exist, as in a batch query."""
    builder = SegmentBuilder()
    add_recording(tmp_path, builder)
    with pytest.raises(UnknownRecordingError, match="no recording with id 7"):
        Query(tmp_path, recordingIds="0,7").batch()
    with pytest.warns(RuntimeWarning, match="no recording with id 7"):
        assert Query(tmp_path, recordingIds="0,7", failOnDataLoss=False).run() == []
