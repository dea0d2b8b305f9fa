"""Entries by id and by position, in segment files of many terms."""

from __future__ import annotations

import bisect
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ledger.flipped_bits import flip

import aerotape
from aerotape.archive.features.ledger.entry_lookup import EntryMark, LedgerRecording
from aerotape.codecs import entry as codec
from aerotape.errors import DamagedEntryError, SegmentError, StorageError
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
        assert recording.first_torn_position(limit, 0) is None
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


def long_ones(messages: list[Message], numbers: list[int]) -> list[Message]:
    """Messages with long payloads, from these numbers on."""
    return [next(m for m in messages[each:] if len(m.payload) > 1_000) for each in numbers]


@pytest.mark.parametrize("numbers", [[2_900], [2_800, 2_900], [1_000, 2_000], [0]])
def test_sound_entries_after_a_damaged_one(
    recorded: tuple[Path, list[Message]], tmp_path: Path, numbers: list[int]
) -> None:
    """It is not torn, whatever is known to be on storage."""
    archive_dir, messages = recorded
    shutil.copytree(archive_dir, tmp_path / "archive")
    recording, end = recording_of(tmp_path / "archive"), messages[-1].end_position
    for message in long_ones(messages, numbers):
        damage(tmp_path / "archive", message)
    for forced in (0, messages[SYNCED].end_position, end):
        assert recording.first_torn_position(end, forced) is None


# Offsets in a frame, and bits there: of its length, flags, type, term offset, stream and term id;
# then of the id of the entry, at its low and its high end.
BITS = [(1, 7), (3, 7), (5, 7), (5, 6), (6, 0), (8, 5), (16, 5), (20, 0), (47, 3), (40, 6)]


@pytest.mark.parametrize(("offset", "bit"), BITS)
@pytest.mark.parametrize("where", ["middle", "first of a term", "last"])
def test_one_flipped_bit_hides_one_entry(
    recorded: tuple[Path, list[Message]], tmp_path: Path, offset: int, bit: int, where: str
) -> None:
    """Also one of a header: other entries are found, and the last one has its id."""
    archive_dir, messages = recorded
    shutil.copytree(archive_dir, tmp_path / "archive")
    recording, end = recording_of(tmp_path / "archive"), messages[-1].end_position
    in_term = next(each for each in messages if each.position >= 5 * 65_536)
    number = {"middle": 1_500, "first of a term": messages.index(in_term), "last": 2_999}[where]
    while where == "middle" and len(messages[number].payload) > 1_000:
        number += 1
    flip(tmp_path / "archive", 0, messages[number].position + offset, bit)
    assert recording.last_entry(end).entry_id == 2_999
    for entry_id in {0, number - 1, number + 1, number + 2, 2_998} - {number}:
        if entry_id < 3_000:
            assert recording.position_of(entry_id, end) == messages[entry_id].position
    try:
        assert recording.position_of(number, end) == messages[number].position
    except DamagedEntryError as error:
        assert f"entry {number} is damaged" in str(error)
    assert (recording.first_torn_position(end, 0) is None) == (where != "last")
    assert recording.first_torn_position(end, end) is None


@pytest.mark.parametrize("what", ["zeroed", "missing", "short"])
def test_a_damaged_segment_file(
    recorded: tuple[Path, list[Message]], tmp_path: Path, what: str
) -> None:
    """The entries in it are damaged, and the others are found."""
    archive_dir, messages = recorded
    shutil.copytree(archive_dir, tmp_path / "archive")
    recording, end = recording_of(tmp_path / "archive"), messages[-1].end_position
    base = 3 * SEGMENT_LENGTH
    path = tmp_path / "archive" / f"0-{base}.rec"
    if what == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if what == "short" else bytes(SEGMENT_LENGTH))
    assert recording.last_entry(end).entry_id == 2_999
    lost = [index for index, each in enumerate(messages) if each.position // SEGMENT_LENGTH == 3]
    for entry_id in (0, lost[0] - 1, lost[-1] + 1, 2_999):
        assert recording.position_of(entry_id, end) == messages[entry_id].position
    for entry_id in (lost[0], lost[10], lost[-1]):
        with pytest.raises(DamagedEntryError, match=f"entry {entry_id} is damaged"):
            recording.position_of(entry_id, end)
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(StorageError, match=str(path)):
        recording.position_of(lost[0], end)


@pytest.mark.parametrize("count", [1, 2])
def test_what_a_power_cut_leaves(
    recorded: tuple[Path, list[Message]], tmp_path: Path, count: int
) -> None:
    """The last entries are torn from the first one that was not known to be on storage."""
    archive_dir, messages = recorded
    shutil.copytree(archive_dir, tmp_path / "archive")
    recording = recording_of(tmp_path / "archive")
    numbers = [index for index, each in enumerate(messages) if len(each.payload) > 1_000]
    # Two long ones that follow each other.
    first = next(a for a in reversed(numbers[:-1]) if a + 1 in numbers)
    torn = messages[first + 2 - count : first + 2]
    end = torn[-1].end_position
    for message in torn:
        damage(tmp_path / "archive", message)
    for forced in (0, messages[SYNCED].end_position, torn[0].position):
        assert recording.first_torn_position(end, forced) == torn[0].position
    assert recording.first_torn_position(end, torn[0].end_position) == (
        torn[1].position if count > 1 else None
    )
    assert recording.first_torn_position(end, end) is None
    # What the last sound entry carries is confirmed, not what a damaged one does.
    assert recording.confirmed_end(end) == messages[SYNCED].end_position


@pytest.mark.parametrize("is_last", [False, True])
def test_a_hole(recorded: tuple[Path, list[Message]], tmp_path: Path, is_last: bool) -> None:
    """Where frames are missing at the end, the part that did not reach storage begins."""
    archive_dir, messages = recorded
    shutil.copytree(archive_dir, tmp_path / "archive")
    segment = messages[-1].position // SEGMENT_LENGTH - 1
    first = next(m for m in messages if m.position // SEGMENT_LENGTH == segment)
    (tmp_path / "archive" / f"0-{segment * SEGMENT_LENGTH}.rec").write_bytes(bytes(SEGMENT_LENGTH))
    end = (segment + 1) * SEGMENT_LENGTH if is_last else messages[-1].end_position
    recording = recording_of(tmp_path / "archive")
    first_torn_position = recording.first_torn_position(end, messages[SYNCED].end_position)
    if is_last:
        before = messages[messages.index(first) - 1].end_position
        assert first_torn_position is not None
        assert before <= first_torn_position <= first.position
    assert (first_torn_position is None) == (not is_last)
    assert recording.first_torn_position(end, end) is None
