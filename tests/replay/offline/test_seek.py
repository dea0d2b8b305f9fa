"""Seeking in recordings of raft journals, against a scan of all records."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.journals.raft_bytes import initial
from support.journals.raft_recording import BuiltRecord, record_into, records

from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.raft.record import encode_record
from aerotape.errors import CodecError
from aerotape.replay.offline import seek
from aerotape.replay.offline.directory import Recording, open_directory

COUNT = 5_420
TERM = 65_536
STARTED = 1_700_000_000_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[BuiltRecord]]:
    """A recording of a journal whose first index is 100."""
    directory = tmp_path_factory.mktemp("source")
    return directory, record_into(directory, records(COUNT, first_index=100))


@pytest.fixture
def built(source: tuple[Path, list[BuiltRecord]], tmp_path: Path) -> list[BuiltRecord]:
    """The records of recording 0 in `tmp_path`."""
    for path in source[0].iterdir():
        (tmp_path / path.name).hardlink_to(path)
    # The tests change it.
    catalog = tmp_path / "archive.catalog"
    data = catalog.read_bytes()
    catalog.unlink()
    catalog.write_bytes(data)
    return source[1]


def opened(directory: Path) -> Recording:
    return open_directory(directory).recording(0)


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
    """By index and by asqn, within the recording and outside."""
    for seed in seeds:
        check(tmp_path, built, seed)


def test_a_seek_reads_one_term_and_the_first_records_of_others(
    tmp_path: Path, built: list[BuiltRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records of other terms are not decoded."""
    reads = []
    original = seek.record_key

    def counted(payload: bytes, recording_id: int, position: int) -> tuple[int, int]:
        reads.append(position)
        return original(payload, recording_id, position)

    monkeypatch.setattr(seek, "record_key", counted)
    terms = Counter(each.position // TERM for each in built)
    for index in (100, COUNT // 2, COUNT):
        reads.clear()
        assert first(opened(tmp_path), from_index=index) == by_index(built, index)
        assert 0 < len(reads) <= max(terms.values()) + len(terms).bit_length() + 1


def test_records_after_a_truncation_are_not_found(tmp_path: Path, built: list[BuiltRecord]) -> None:
    """The search ends at the stop position."""
    cut = 2 * 1024 + 77
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
    """Records that are gone are not searched."""
    start = next(each.position for each in built if each.position >= 131_072)
    with Catalog.open(tmp_path) as catalog:
        catalog.set_start_position(0, start)
    (tmp_path / "0-0.rec").unlink()
    left = [each for each in built if each.position >= start]
    for target in (0, left[0].index - 1, left[0].index, left[5].index, left[-3].index):
        assert first(opened(tmp_path), from_index=target) == by_index(left, target)
        assert first(opened(tmp_path), from_asqn=target) == by_asqn(left, target)


def test_other_recordings_cannot_be_searched(tmp_path: Path) -> None:
    """The error names recording and position."""
    add_recording(tmp_path, fill(SegmentBuilder(), 3))
    with pytest.raises(CodecError, match=r"recording 0, position 0: .* not a record of a raft"):
        first(opened(tmp_path), from_index=1)


def test_a_recording_without_asqns_is_read_from_its_start(tmp_path: Path) -> None:
    """No record precedes the target."""
    found = [(n, -1, encode_record(n, -1, initial(n))) for n in range(1, 5000)]
    built = record_into(tmp_path, found)
    assert first(opened(tmp_path), from_asqn=5) == 0
    assert first(opened(tmp_path), from_index=4999) == built[-1].position


def test_a_copy_in_remote_storage_is_searched(tmp_path: Path, built: list[BuiltRecord]) -> None:
    """Without a file in addition to those of the archive."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in tmp_path.iterdir():
        memory.pipe_file(f"/seek/{path.name}", path.read_bytes())
    remote = open_directory("memory://seek").recording(0)
    assert first(remote, from_index=4000) == by_index(built, 4000)
    assert first(remote, from_asqn=4000) == by_asqn(built, 4000)
    assert len(memory.ls("/seek", detail=False)) == len(list(tmp_path.iterdir()))
