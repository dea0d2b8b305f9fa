"""Entries by id and by position, in segment files of many terms."""

from __future__ import annotations

import bisect
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import aerotape
from aerotape import SegmentError
from aerotape.archive.ledger.entry_lookup import EntryMark, LedgerRecording
from aerotape.codecs import entry as codec
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import Message

MTU = 1_408
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
        for _ in range(3_000):
            writer.add_async(bytes(draw.choice((0, 10, 100, 1_500, 5_000))))
    [recording] = open_directory(folder / "archive").recordings()
    yield folder / "archive", list(recording.messages())


def recording_of(archive_dir: Path) -> LedgerRecording:
    """The recording of the ledger."""
    [recording] = open_directory(archive_dir).recordings()
    return LedgerRecording(archive_dir, recording.descriptor, "CRC32C")


def test_the_last_entry_before_a_position(recorded: tuple[Path, list[Message]]) -> None:
    """From the start, from a known entry, and with digests, it is the one of the messages."""
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
            expected = EntryMark(ends[count - 1], count - 1, header.length)
        assert recording.last_entry(limit) == expected
        assert recording.last_entry(limit, checked=True) == expected
        for known in (0, count // 2, max(count - 1, 0)):
            header = codec.read_header(messages[known].payload)
            mark = EntryMark(ends[known], known, header.length)
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


def test_a_damaged_entry_ends_a_checked_search(
    recorded: tuple[Path, list[Message]], tmp_path: Path
) -> None:
    """The ledger ends at the last entry that is whole, as after a power cut."""
    archive_dir, messages = recorded
    for path in archive_dir.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    recording, end = recording_of(tmp_path), messages[-1].end_position
    damaged = next(each for each in reversed(messages) if len(each.payload) > 1_000)
    base = damaged.end_position // 131_072 * 131_072
    path = tmp_path / f"0-{base}.rec"
    content = bytearray(path.read_bytes())
    content[damaged.end_position - base - 40] ^= 1
    path.write_bytes(content)
    number = messages.index(damaged)
    assert recording.last_entry(end).entry_id == 2_999
    assert recording.last_entry(end, checked=True).entry_id == number - 1
    assert recording.last_entry(end, checked=True).position == messages[number - 1].end_position
