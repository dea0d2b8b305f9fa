"""Recordings that are written into a directory from their messages."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.builders.offline_directory import content
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.maintenance.recording_writer import (
    NewStream,
    RecordingWriter,
    write_recording,
)
from aerotape.errors import ConfigurationError
from aerotape.replay.offline.directory import open_directory

STREAM = NewStream(
    channel="aeron:ipc?alias=x",
    stream_id=7,
    term_buffer_length=65_536,
    segment_file_length=131_072,
)


def payloads(total: int, seed: int = 1) -> list[bytes]:
    """Messages of lengths around those at which framing changes."""
    rng = random.Random(seed)
    lengths = (0, 1, 32, 1343, 1344, 1375, 1376, 1377, 2752, 2753, 8192)
    found: list[bytes] = []
    while sum(map(len, found)) < total:
        found.append(rng.randbytes(rng.choice((*lengths, rng.randrange(8192)))))
    return found


def write(directory: Path, messages: list[bytes]) -> RecordingDescriptor:
    def append(writer: RecordingWriter) -> None:
        for number, message in enumerate(messages):
            writer.append(message, number)

    with Catalog.open(directory, create=True) as catalog:
        return write_recording(catalog, directory, STREAM, append)


def built_as(found: RecordingDescriptor) -> SegmentBuilder:
    return SegmentBuilder(
        recording_id=found.recording_id,
        initial_term_id=found.initial_term_id,
        session_id=found.session_id,
        stream_id=found.stream_id,
    )


@pytest.mark.parametrize("total", [0, 1, 100_000, 2_500_000])
def test_files_are_those_of_a_recorded_publication(tmp_path: Path, total: int) -> None:
    """The segment files have the frames, fragments and padding of a publication."""
    messages = payloads(total)
    found = write(tmp_path, messages)
    builder = built_as(found)
    for number, message in enumerate(messages):
        builder.message(message, number)
    expected = tmp_path / "expected"
    expected.mkdir()
    builder.write(expected)
    assert found.stop_position == builder.position
    assert {p.name: p.read_bytes() for p in tmp_path.glob("*.rec")} == content(expected)
    recording = open_directory(tmp_path).recording(found.recording_id)
    assert [bytes(each.payload) for each in recording.messages()] == messages
    assert recording.descriptor == found


def test_a_full_last_segment_has_a_blank_one_after_it(tmp_path: Path) -> None:
    """As after the recorder, the file follows in which the recording would continue."""
    found = write(tmp_path, [bytes(4096 - 3 * 32)] * (131_072 // 4096))
    assert found.stop_position == 131_072
    names = {path.name: path.stat().st_size for path in tmp_path.glob("*.rec")}
    assert names == {"0-0.rec": 131_072, "0-131072.rec": 131_072}


def test_a_message_longer_than_a_publication_accepts_is_refused(tmp_path: Path) -> None:
    """Nothing is left of the recording."""
    with pytest.raises(ConfigurationError, match=r"8193 bytes is too long for terms of 65536"):
        write(tmp_path, [b"x", bytes(8193)])
    assert [path.name for path in tmp_path.iterdir()] == ["archive.catalog"]
    assert open_directory(tmp_path).recordings() == []


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        (NewStream(term_buffer_length=65_537), "term buffer length 65537"),
        (NewStream(segment_file_length=1 << 20), "segment file length 1048576 is less"),
        (NewStream(mtu_length=1400), "MTU length 1400"),
        (NewStream(mtu_length=32), "MTU length 32"),
    ],
)
def test_impossible_lengths_are_refused(tmp_path: Path, stream: NewStream, problem: str) -> None:
    """No publication has them."""
    with (
        Catalog.open(tmp_path, create=True) as catalog,
        pytest.raises(ConfigurationError, match=problem),
    ):
        write_recording(catalog, tmp_path, stream, lambda writer: None)
