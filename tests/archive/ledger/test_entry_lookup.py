"""Entries by id and by position, in segment files of many terms."""

from __future__ import annotations

import bisect
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import aerotape
from aerotape.archive.ledger.entry_lookup import EntryMark, LedgerRecording
from aerotape.codecs import entry as codec
from aerotape.errors import SegmentError
from aerotape.message import Message
from aerotape.replay.offline.directory import open_directory

MTU = 1_408
SEGMENT_LENGTH = 131_072
SYNCED = 999
PROPERTIES = {
    "aeron.archive.segment.file.length": "128k",
    "aeron.archive.low.storage.space.threshold": "1m",
    "aeron.archive.control.channel.enabled": "false",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Message]]]:
    """An archive directory with one ledger of 3000 entries, and its messages."""
    folder = tmp_path_factory.mktemp("ledger")
    draw = random.Random(1)
    with (
        aerotape.Archive.launch(folder / "archive", folder / "aeron", properties=PROPERTIES),
        aerotape.connect(aeron_dir=folder / "aeron") as client,
        client.create_ledger("VD_JOURNAL", channel="aeron:ipc?term-length=64k") as writer,
    ):
        for index in range(3_000):
            writer.add_async(bytes(draw.choice((0, 10, 100, 1_500, 5_000))))
            if index == SYNCED:
                assert writer.sync() == SYNCED
    [recording] = open_directory(folder / "archive").recordings()
    yield folder / "archive", list(recording.messages())


def recording_of(archive_dir: Path) -> LedgerRecording:
    """The recording of the ledger."""
    [recording] = open_directory(archive_dir).recordings()
    return LedgerRecording(archive_dir, recording.descriptor, "CRC32C")


def test_the_last_entry_before_a_position(recorded: tuple[Path, list[Message]]) -> None:
    """From the start, or from a known entry, it is the one of the messages."""
    archive_dir, messages = recorded
    recording = recording_of(archive_dir)
    ends = [message.end_position for message in messages]
    assert ends[-1] > 10 * 65_536
    draw = random.Random(2)
    # Ends of frames: of entries, and of the first frames of those with several.
    inner = [each.position + MTU for each in messages if len(each.payload) > 5_000]
    limits = [0, ends[0], ends[-1], *draw.sample(ends, 60), *draw.sample(inner, 30)]
    for limit in limits:
        count = bisect.bisect_right(ends, limit)
        expected = EntryMark(0)
        if count:
            header = codec.read_header(messages[count - 1].payload)
            assert header.entry_id == count - 1
            carried = header.last_add_confirmed
            expected = EntryMark(ends[count - 1], count - 1, header.length, carried)
        assert recording.last_entry(limit) == expected
        assert recording.torn_at(limit) is None
        for known in (0, count // 2, max(count - 1, 0)):
            header = codec.read_header(messages[known].payload)
            carried = header.last_add_confirmed
            mark = EntryMark(ends[known], known, header.length, carried)
            assert recording.last_entry(limit, mark) == expected


def test_the_position_of_an_entry(recorded: tuple[Path, list[Message]]) -> None:
    """Each is found by its id; one that is not there is an error."""
    archive_dir, messages = recorded
    recording, end = recording_of(archive_dir), recorded[1][-1].end_position
    draw = random.Random(3)
    for entry_id in (0, 1, 2_999, *draw.sample(range(3_000), 60)):
        assert recording.position_of(entry_id, end) == messages[entry_id].position
    limit = messages[100].end_position
    assert recording.position_of(100, limit) == messages[100].position
    for missing, before in ((3_000, end), (101, limit), (-1, end), (0, 0)):
        with pytest.raises(SegmentError, match=f"entry {missing} is not in recording 0"):
            recording.position_of(missing, before)


def damage(archive_dir: Path, message: Message) -> None:
    """Change a byte at the end of a message with a long payload."""
    at = message.position + MTU // 2
    base = at // SEGMENT_LENGTH * SEGMENT_LENGTH
    with (archive_dir / f"0-{base}.rec").open("r+b") as file:
        file.seek(at - base)
        byte = file.read(1)[0]
        file.seek(at - base)
        file.write(bytes((byte ^ 1,)))


@pytest.mark.parametrize("numbers", [[2_999], [2_990, 2_999], [1_000, 2_000], [0], [1_500, 1_501]])
def test_what_a_power_cut_leaves(
    recorded: tuple[Path, list[Message]], tmp_path: Path, numbers: list[int]
) -> None:
    """Entries after the carried LAC are cut from the first one that is not whole."""
    archive_dir, messages = recorded
    shutil.copytree(archive_dir, tmp_path / "archive")
    recording, end = recording_of(tmp_path / "archive"), messages[-1].end_position
    # Entries 1000 and later carry LAC 999.
    damaged = [
        next(m for m in messages[number:] if len(m.payload) > 1_000)
        for number in numbers
        if any(len(m.payload) > 1_000 for m in messages[number:])
    ]
    for message in damaged:
        damage(tmp_path / "archive", message)
    unconfirmed = [each.position for each in damaged if messages.index(each) > SYNCED]
    assert recording.torn_at(end) == min(unconfirmed, default=None)


def test_a_hole_after_the_carried_lac(recorded: tuple[Path, list[Message]], tmp_path: Path) -> None:
    """Where frames are missing, the part that did not reach storage begins."""
    archive_dir, messages = recorded
    shutil.copytree(archive_dir, tmp_path / "archive")
    end = messages[-1].end_position
    first = next(m for m in messages if m.position // SEGMENT_LENGTH == end // SEGMENT_LENGTH - 1)
    base = first.position // SEGMENT_LENGTH * SEGMENT_LENGTH
    (tmp_path / "archive" / f"0-{base}.rec").write_bytes(bytes(SEGMENT_LENGTH))
    torn_at = recording_of(tmp_path / "archive").torn_at(end)
    before = messages[messages.index(first) - 1].end_position
    assert torn_at is not None
    assert before <= torn_at <= first.position
