"""Frames that are written again are those that the recorder has written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder, crc32
from support.ledger.flipped_bits import zero

from aerotape.archive.features.ledger.frames import restore
from aerotape.catalog.descriptor import segment_base
from aerotape.catalog.framing import framed_length
from aerotape.catalog.segment_files import list_segment_files, segment_file_name
from aerotape.errors import SegmentError
from aerotape.frame_header import ChecksumName, FrameHeader, is_frame_at
from aerotape.replay.offline.directory import open_directory


@pytest.mark.parametrize("checksum", ["none", "crc-32"])
def test_frames_are_as_before(tmp_path: Path, checksum: ChecksumName) -> None:
    """With checksum and session id, padding, fragments, and a file that is lost."""
    built = SegmentBuilder(checksum=crc32 if checksum == "crc-32" else None)
    rng = random.Random(3)
    for number in range(300):
        length = rng.choice((0, 1, 90, 1376, 8192, rng.randrange(8192)))
        built.message(rng.randbytes(length), number)
    add_recording(tmp_path, built)
    recording = open_directory(tmp_path).recording(0)
    messages = list(recording.messages())
    files = list_segment_files(tmp_path, 0)
    before = [each.path.read_bytes() for each in files]
    assert len(files) > 3
    for first, last in ((0, 3), (20, 60), (250, 299), (0, 299)):
        begin, end = messages[first].position, messages[last].end_position
        zero(tmp_path, 0, begin, end)
        assert [each.path.read_bytes() for each in files] != before
        restore(
            tmp_path, recording.descriptor, begin, end, messages[first : last + 1], checksum
        )
        assert [each.path.read_bytes() for each in files] == before
    files[1].path.unlink()
    inner = [
        each
        for each in messages
        if files[1].base_position <= each.position < files[2].base_position
    ]
    begin, end = files[1].base_position, files[2].base_position
    restore(tmp_path, recording.descriptor, begin, end, inner, checksum)
    assert [each.path.read_bytes() for each in files] == before


def test_messages_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Nothing is written then."""
    add_recording(tmp_path, fill(SegmentBuilder(), 20))
    recording = open_directory(tmp_path).recording(0)
    messages = list(recording.messages())
    [file, *_] = list_segment_files(tmp_path, 0)
    before = file.path.read_bytes()
    end = messages[4].end_position
    with pytest.raises(SegmentError, match="ends at"):
        restore(tmp_path, recording.descriptor, 0, end - 32, messages[:5])
    assert file.path.read_bytes() == before


def test_padding_that_a_replay_takes(tmp_path: Path) -> None:
    """Where there are no messages, no padding is longer than where a message does not fit."""
    built = fill(SegmentBuilder(), 300)
    add_recording(tmp_path, built)
    recording = open_directory(tmp_path).recording(0)
    descriptor = recording.descriptor
    begin, end = 0, 2 * descriptor.term_buffer_length
    assert end < descriptor.stop_position
    kept = [each for each in recording.messages() if each.position >= end]
    restore(tmp_path, descriptor, begin, end, [])
    assert list(open_directory(tmp_path).recording(0).messages()) == kept
    at, lengths = 0, []
    while at < end:
        base = segment_base(descriptor, at)
        data = (tmp_path / segment_file_name(0, base)).read_bytes()
        header = FrameHeader.decode(data, at - base)
        assert is_frame_at(header, descriptor, at)
        lengths.append(header.frame_length)
        at += header.frame_length
    assert at == end
    assert max(lengths) == framed_length(descriptor.term_buffer_length // 8, descriptor.mtu_length)
