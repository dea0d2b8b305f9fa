"""Thousands of recordings: what a page reads and shows does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry, add_recording
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import CommandLine
from support.web import WebService

from aerotape import counter_keys
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.cnc import CounterRecord
from aerotape.counter_keys import CounterType
from aerotape.errors import StorageError
from aerotape.replay.offline.selection import Selection
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.pages.routes import _live
from aerotape.tools._web.rest.reading import Reading

COUNT = 3_000
MIDDLE = COUNT // 2


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with 3,000 recordings; the one in the middle has 60 messages."""
    folder = tmp_path_factory.mktemp("many")
    with Catalog.open(folder, create=True) as catalog:
        for number in range(COUNT):
            stream = SegmentBuilder(recording_id=number)
            if number == MIDDLE:
                for _ in range(60):
                    stream.message(b"message")
                stream.write(folder)
            recording_id = add_entry(catalog, stream)
            catalog.recording_stopped(recording_id, stream.position, 1)
    return folder


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the entries of catalogs that are decoded from now on."""
    found: list[int] = []
    decode = RecordingDescriptor.decode_damaged

    def counted(body: bytes) -> Any:
        found.append(len(body))
        return decode(body)

    monkeypatch.setattr(RecordingDescriptor, "decode_damaged", counted)
    return found


def test_a_catalog_is_decoded_once(directory: Path, decoded: list[int]) -> None:
    """Not again while it is the same."""
    observed = ObservedArchive(directory)
    assert len(observed.snapshot().recordings) == COUNT
    assert len(decoded) == COUNT
    observed.renew()
    assert len(observed.snapshot().recordings) == COUNT
    assert len(decoded) == COUNT


def test_a_recording_decodes_no_others(directory: Path, decoded: list[int]) -> None:
    """All that its page reads."""
    reading = Reading(ObservedArchive(directory))
    reading.recording(MIDDLE)
    decoded.clear()
    assert reading.recording(MIDDLE)["recording_id"] == MIDDLE
    found = reading.opened(MIDDLE)
    assert len(list(reading.segments(found))) == 1
    assert reading.damage(MIDDLE).notes.total == 0
    assert len(list(reading.messages(found, Selection(), 50, "text"))) == 50
    assert reading.removal(found, "delete", None)["segments"] == 1
    assert len(decoded) == 1


def test_rows_are_limited(directory: Path, own: CommandLine) -> None:
    """On the list of recordings, and in an event of the overview's stream."""
    with WebService(own, directory) as web:
        assert web.get("/recordings").text.count("<tr>") == 101  # with the head
        assert web.get("/").text.count("<tr") == 1
    snapshot = ObservedArchive(directory).snapshot()
    live = replace(snapshot, counters=list(_positions(500)))
    event = _live(live)
    assert (event["count"], len(event["recordings"])) == (COUNT, 200)


def _positions(count: int) -> Iterator[CounterRecord]:
    """Return counters of recordings in progress."""
    for number in range(count):
        key = counter_keys.recording_position_key(1, number, 7, "aeron:ipc").ljust(112, b"\0")
        yield CounterRecord(number, CounterType.RECORDING_POSITION, 64, "", key, 0, 0, 0)


def test_a_segment_file_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was purged after the directory was read: the others are listed."""
    stream = SegmentBuilder()
    for _ in range(40):
        stream.message(bytes(12_000))
    add_recording(tmp_path, stream)
    reading = Reading(ObservedArchive(tmp_path))
    found = reading.opened(0)
    files = found.segment_files()
    assert len(files) > 2
    monkeypatch.setattr(type(found), "segment_files", lambda _: files)
    files[0].path.unlink()
    files[1].path.unlink()
    files[1].path.symlink_to(files[1].path)
    assert [each["name"] for each in reading.segments(found, files[2].base_position)] == [
        each.path.name for each in files[2:]
    ]
    with pytest.raises(StorageError, match="Too many levels of symbolic links"):
        list(reading.segments(found))
