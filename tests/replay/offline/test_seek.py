"""Seeking in recordings of raft journals, against a scan of all records."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.journals.raft_bytes import initial
from support.journals.raft_recording import BuiltRecord, record_into, records

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.seek_index.file import (
    RECORDS_PER_POINT,
    SeekPoint,
    decode_seek_index,
    encode_seek_index,
    seek_index_path,
)
from aerotape.codecs.raft.record import encode_record
from aerotape.errors import CodecError, ConfigurationError
from aerotape.replay.offline import seek
from aerotape.replay.offline.directory import Recording, open_directory

COUNT = 5 * RECORDS_PER_POINT + 300
STARTED = 1_700_000_000_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[BuiltRecord]]:
    """A recording of a journal whose first index is 100."""
    directory = tmp_path_factory.mktemp("source")
    return directory, record_into(directory, records(COUNT, first_index=100))


@pytest.fixture
def built(source: tuple[Path, list[BuiltRecord]], tmp_path: Path) -> list[BuiltRecord]:
    """The records of recording 0 in `tmp_path`, which has no seek index."""
    for path in source[0].iterdir():
        if path.suffix != ".seek-index":
            (tmp_path / path.name).hardlink_to(path)
    # The tests change it.
    catalog = tmp_path / "archive.catalog"
    data = catalog.read_bytes()
    catalog.unlink()
    catalog.write_bytes(data)
    return source[1]


def opened(directory: Path) -> Recording:
    return open_directory(directory).recording(0)


def stored(directory: Path) -> list[SeekPoint]:
    data = seek_index_path(directory, 0).read_bytes()
    points = decode_seek_index(data, 0, STARTED)
    assert points is not None
    return points


def store(directory: Path, points: list[SeekPoint]) -> None:
    seek_index_path(directory, 0).write_bytes(encode_seek_index(0, STARTED, points))


def first(
    recording: Recording, *, from_index: int | None = None, from_asqn: int | None = None
) -> int | None:
    """The position of the first message from a target on."""
    messages = recording.messages(from_index=from_index, from_asqn=from_asqn)
    return next((message.position for message in messages), None)


def by_index(built: list[BuiltRecord], index: int) -> int | None:
    return next((each.position for each in built if each.index >= index), None)


def by_asqn(built: list[BuiltRecord], asqn: int) -> int | None:
    found = [each.position for each in built if -1 < each.asqn <= asqn]
    return found[-1] if found else built[0].position


def check(directory: Path, built: list[BuiltRecord], seed: int, count: int = 40) -> None:
    """Compare random targets, and those at the ends."""
    rng = random.Random(seed)
    recording = opened(directory)
    highest = max(each.asqn for each in built)
    indexes = [0, 99, 100, 99 + COUNT, 100 + COUNT]
    for index in indexes + [rng.randint(90, COUNT + 110) for _ in range(count)]:
        assert first(recording, from_index=index) == by_index(built, index), index
    asqns = [0, built[0].asqn + 1, highest, highest + 1, 1 << 62]
    for asqn in asqns + [rng.randint(0, highest + 9) for _ in range(count)]:
        assert first(recording, from_asqn=asqn) == by_asqn(built, asqn), asqn


def test_seeking_finds_what_a_scan_finds(
    tmp_path: Path, built: list[BuiltRecord], seeds: range
) -> None:
    """With an index that is missing at first, and is written by the way."""
    for seed in seeds:
        check(tmp_path, built, seed)
    points = stored(tmp_path)
    by_position = {each.position: (each.index, each.asqn) for each in built}
    assert [by_position[p.position] for p in points] == [(p.index, p.asqn) for p in points]
    gaps = [b.index - a.index for a, b in pairwise(points)]
    assert all(RECORDS_PER_POINT <= gap < RECORDS_PER_POINT + 20 for gap in gaps)
    assert len(points) == COUNT // RECORDS_PER_POINT + 1


def test_a_seek_reads_only_the_part_after_a_point(
    tmp_path: Path, built: list[BuiltRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an index, fewer records are read than two points are apart."""
    check(tmp_path, built, 1, 1)
    reads = []
    original = seek.record_key

    def counted(payload: bytes, recording_id: int, position: int) -> tuple[int, int]:
        reads.append(position)
        return original(payload, recording_id, position)

    monkeypatch.setattr(seek, "record_key", counted)
    assert first(opened(tmp_path), from_index=COUNT) == by_index(built, COUNT)
    assert 0 < len(reads) < RECORDS_PER_POINT + 30


@pytest.mark.parametrize("damage", ["empty", "torn", "flipped", "foreign", "folder"])
def test_a_damaged_index_is_written_again(
    tmp_path: Path, built: list[BuiltRecord], damage: str
) -> None:
    """It is never an error."""
    check(tmp_path, built, 1, 1)
    path = seek_index_path(tmp_path, 0)
    data = bytearray(path.read_bytes())
    if damage == "empty":
        data.clear()
    elif damage == "torn":
        del data[-5:]
    elif damage == "flipped":
        data[64 + 40] ^= 1
    elif damage == "foreign":
        data = bytearray(encode_seek_index(1, STARTED, stored(tmp_path)))
    path.unlink()
    path.write_bytes(data) if damage != "folder" else path.mkdir()
    check(tmp_path, built, 2, 3)
    if damage != "folder":
        assert len(stored(tmp_path)) == COUNT // RECORDS_PER_POINT + 1


@pytest.mark.parametrize("kind", ["index", "asqn", "position", "swapped"])
def test_a_lying_index_is_not_believed(tmp_path: Path, built: list[BuiltRecord], kind: str) -> None:
    """A point is used only if the record at its position is the one that it names."""
    check(tmp_path, built, 1, 1)
    true = stored(tmp_path)
    lies = {
        "index": [SeekPoint(p.index - 3, p.asqn, p.position) for p in true],
        "asqn": [SeekPoint(p.index, p.asqn - 1, p.position) for p in true],
        "position": [SeekPoint(p.index, p.asqn, p.position + 32) for p in true],
        "swapped": [SeekPoint(a.index, a.asqn, b.position) for a, b in pairwise(true)],
    }
    store(tmp_path, lies[kind])
    check(tmp_path, built, 2, 10)
    assert stored(tmp_path) == true


def test_points_after_a_truncation_are_dropped(tmp_path: Path, built: list[BuiltRecord]) -> None:
    """What another journal has in the place of the old records is found."""
    check(tmp_path, built, 1, 1)
    cut = 2 * RECORDS_PER_POINT + 77
    with Catalog.open(tmp_path) as catalog:
        catalog.recording_stopped(0, built[cut].position, STARTED)
    left = built[:cut]
    recording = opened(tmp_path)
    assert first(recording, from_index=left[-1].index) == left[-1].position
    assert first(recording, from_index=left[-1].index + 1) is None
    assert first(recording, from_asqn=1 << 60) == by_asqn(left, 1 << 60)


def test_a_purged_recording_begins_at_its_first_record(
    tmp_path: Path, built: list[BuiltRecord]
) -> None:
    """Points of records that are gone are not used."""
    check(tmp_path, built, 1, 1)
    start = next(each.position for each in built if each.position >= 131_072)
    with Catalog.open(tmp_path) as catalog:
        catalog.set_start_position(0, start)
    (tmp_path / "0-0.rec").unlink()
    left = [each for each in built if each.position >= start]
    for target in (0, left[0].index - 1, left[0].index, left[5].index, left[-3].index):
        assert first(opened(tmp_path), from_index=target) == by_index(left, target)
        assert first(opened(tmp_path), from_asqn=target) == by_asqn(left, target)


def test_an_index_that_cannot_be_written_does_not_matter(
    tmp_path: Path, built: list[BuiltRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader may lack the permission."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("aerotape.catalog.seek_index.file.write_atomically", refuse)
    check(tmp_path, built, 3, 2)
    assert not seek_index_path(tmp_path, 0).exists()


def test_other_recordings_cannot_be_searched(tmp_path: Path) -> None:
    """The error names recording and position."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    with pytest.raises(CodecError, match=r"recording 0, position 0: .* not a record of a raft"):
        first(opened(tmp_path), from_index=1)


def test_invalid_targets_are_refused(tmp_path: Path, built: list[BuiltRecord]) -> None:
    """Negative numbers, and both at once."""
    with pytest.raises(ConfigurationError, match="from_index -1 is negative"):
        first(opened(tmp_path), from_index=-1)
    with pytest.raises(ConfigurationError, match="exclude each other"):
        first(opened(tmp_path), from_index=1, from_asqn=1)


def test_a_recording_without_asqns_is_read_from_its_start(tmp_path: Path) -> None:
    """A point is made of a record without asqn only if no other follows soon."""
    found = [(n, -1, encode_record(n, -1, initial(n))) for n in range(1, 5000)]
    built = record_into(tmp_path, found)
    assert first(opened(tmp_path), from_asqn=5) == 0
    assert first(opened(tmp_path), from_index=4999) == built[-1].position
    assert [point.index for point in stored(tmp_path)] == [1, 2049, 4097]


def test_a_copy_in_remote_storage_is_searched(tmp_path: Path, built: list[BuiltRecord]) -> None:
    """With the index if it was copied, which is not written there."""
    fsspec = pytest.importorskip("fsspec")
    check(tmp_path, built, 1, 1)
    for name, skipped in (("with", ""), ("without", ".seek-index")):
        memory = fsspec.filesystem("memory")
        for path in tmp_path.iterdir():
            if path.suffix != skipped:
                memory.pipe_file(f"/seek-{name}/{path.name}", path.read_bytes())
        remote = open_directory(f"memory://seek-{name}").recording(0)
        assert first(remote, from_index=4000) == by_index(built, 4000)
        assert first(remote, from_asqn=4000) == by_asqn(built, 4000)
        found = [path for path in memory.ls(f"/seek-{name}", detail=False) if "seek-index" in path]
        assert len(found) == (name == "with")
