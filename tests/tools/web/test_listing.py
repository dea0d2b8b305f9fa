"""Pages of the list of recordings, whose rows change between two of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine
from support.web import WebService

from aerotape.catalog.file.catalog import Catalog
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.selection import Selection
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.rest.reading import listed

COUNT = 7


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with seven recordings, of stream ids 0 to 6."""
    with Catalog.open(tmp_path, create=True) as catalog:
        for number in range(COUNT):
            stream = SegmentBuilder(recording_id=number, stream_id=number)
            recording_id = add_entry(catalog, stream, start_timestamp_ms=100 - number // 2)
            catalog.recording_stopped(recording_id, 0, 200)
    return tmp_path


def ids(snapshot: Any, after: int | None, **options: Any) -> list[int]:
    given = {"sort": "recording_id", "descending": False, "limit": 2, **options}
    selection = given.pop("selection", Selection())
    return [each["recording_id"] for each in listed(snapshot, selection, after=after, **given)[1]]


@pytest.mark.parametrize("sort", ["recording_id", "start_timestamp_ms", "recorded_bytes"])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_have_each_recording_once(directory: Path, sort: str, descending: bool) -> None:
    snapshot = ObservedArchive(directory).snapshot()
    seen: list[int] = []
    while page := ids(snapshot, seen[-1] if seen else None, sort=sort, descending=descending):
        seen += page
        assert len(seen) <= COUNT
    assert sorted(seen) == list(range(COUNT))


def test_the_last_one_matches_no_more(directory: Path) -> None:
    """The next page begins after it all the same."""
    snapshot = ObservedArchive(directory).snapshot()
    assert ids(snapshot, 3, selection=Selection(stream_id=5)) == [5]
    assert ids(snapshot, 5, selection=Selection(stream_id=3)) == []


def test_the_last_one_is_gone(directory: Path) -> None:
    """Also by id; in another order it has no place any more."""
    snapshot = ObservedArchive(directory).snapshot()
    without = replace(
        snapshot, recordings=[each for each in snapshot.recordings if each.recording_id != 3]
    )
    assert ids(without, 3) == [4, 5]
    assert ids(without, 3, descending=True) == [2, 1]
    assert ids(without, COUNT) == []
    with pytest.raises(ConfigurationError, match="after=3: there is no such recording"):
        ids(without, 3, sort="recorded_bytes")


def test_what_is_no_stream_is_refused(directory: Path, own: CommandLine) -> None:
    """The list of all recordings would be shown otherwise."""
    with WebService(own, directory) as web:
        assert web.get("/recordings?stream_id=&channel=").text.count("<tr>") == COUNT + 1
        for wrong in ("x", "1.5", "%D9%A3", "9999999999"):
            answer = web.get(f"/recordings?stream_id={wrong}", Accept="text/html")
            assert answer.status == 400
            assert "is not a whole number" in answer.text
