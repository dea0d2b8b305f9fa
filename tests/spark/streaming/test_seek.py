"""Streams of raft journals that begin at an index, without a Spark session."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.journals.raft_recording import records

pytest.importorskip("pyspark")

from support.spark.stream_query import Query

RECORDS = records(400)


def test_a_stream_waits_for_its_first_record(tmp_path: Path) -> None:
    """A live recording that has not reached the index has no rows until it does; then no row is
    left out and none comes twice."""
    live, stopped = SegmentBuilder(), SegmentBuilder(stream_id=5)
    for _, _, record in RECORDS[:50]:
        stopped.message(record)
    add_recording(tmp_path, stopped)
    add_recording(tmp_path, live, live=True)
    query = Query(tmp_path, payload="raft-journal", fromIndex=120, columns="recording_id,index")
    assert query.run() == []
    for first in range(0, 400, 40):
        for _, _, record in RECORDS[first : first + 40]:
            live.message(record)
        live.write(tmp_path)
        rows = [(row["recording_id"], row["index"]) for row in query.run()]
        assert rows == [(1, n) for n in range(max(first + 1, 120), first + 41)]
