"""Damage to one catalog entry: it is reported, and all other recordings remain readable."""

from __future__ import annotations

import mmap
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders.built_archive import ENTRY, add_entry
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog import layout
from aerotape.catalog.file import entries
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import find_places
from aerotape.catalog.maintenance.verify import run_verification
from aerotape.catalog.recovery.refresh import Outcome, refresh
from aerotape.errors import CatalogError, UnknownRecordingError
from aerotape.replay.offline.directory import open_directory

COUNT = 5
HEADER = layout.DESCRIPTOR_HEADER_LENGTH
CHANNEL = "aeron:udp?endpoint=localhost:4000"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Five stopped recordings, each with one segment file of a few frames."""
    with Catalog.open(tmp_path, create=True) as catalog:
        for recording_id in range(COUNT):
            stream = SegmentBuilder(recording_id=recording_id)
            stream.message(bytes([recording_id]) * 500)
            stream.write(tmp_path)
            add_entry(
                catalog,
                stream,
                session_id=recording_id,
                stripped_channel=CHANNEL,
                original_channel=CHANNEL + "|alias=" + "x" * 50 * (recording_id % 3),
                source_identity="127.0.0.1:12345",
            )
            catalog.recording_stopped(recording_id, stream.position, 2)
    return tmp_path


def offset_of(archive: Path, recording_id: int) -> int:
    with Catalog.open(archive, read_only=True) as catalog:
        return catalog.entry(recording_id).offset


def overwrite(archive: Path, offset: int, data: bytes) -> None:
    with (archive / layout.CATALOG_FILE_NAME).open("r+b") as file:
        file.seek(offset)
        file.write(data)


DAMAGE = {
    "length beyond the file": (0, layout.INT.pack(1 << 30)),
    "length of less than a descriptor": (0, layout.INT.pack(16)),
    "negative length": (0, layout.INT.pack(-5)),
    "length of the end": (0, layout.INT.pack(0)),
    "length that cuts the strings": (0, layout.INT.pack(96)),
    "length that reaches over the next entries": (0, layout.INT.pack(608)),
    "id of another": (HEADER + layout.RECORDING_ID_OFFSET, layout.LONG.pack(0)),
    "negative id": (HEADER + layout.RECORDING_ID_OFFSET, layout.LONG.pack(-7)),
    "id beyond all": (HEADER + layout.RECORDING_ID_OFFSET, layout.LONG.pack(1 << 60)),
    "string beyond the entry": (HEADER + layout.DESCRIPTOR_BLOCK_LENGTH, layout.INT.pack(10_000)),
    "negative string length": (HEADER + layout.DESCRIPTOR_BLOCK_LENGTH, b"\xff\xff\xff\xff"),
    "header and block of garbage": (0, random.Random(7).randbytes(112)),
    "a sector of ones": (0, b"\xff" * 150),
    "impossible term length": (HEADER + layout.TERM_BUFFER_LENGTH_OFFSET, layout.INT.pack(77)),
}


@pytest.fixture(params=list(DAMAGE.values()), ids=list(DAMAGE))
def damage(request: pytest.FixtureRequest) -> tuple[int, bytes]:
    found: tuple[int, bytes] = request.param
    return found


def test_other_recordings_can_be_read_offline(archive: Path, damage: tuple[int, bytes]) -> None:
    """The damaged recording is listed as such and cannot be read; the others are unchanged."""
    overwrite(archive, offset_of(archive, 2) + damage[0], damage[1])
    directory = open_directory(archive)
    recordings = directory.recordings()
    assert [recording.recording_id for recording in recordings] == [0, 1, 2, 3, 4]
    assert [recording.recording_id for recording in recordings if recording.damage] == [2]
    for recording in recordings:
        if recording.recording_id != 2:
            assert recording.descriptor.session_id == recording.recording_id
            assert recording.recorded_position == 544
            assert len(recording.segment_files()) == 1
    for use in (lambda: recordings[2].recorded_position, recordings[2].segment_files):
        with pytest.raises(CatalogError, match="recording 2 has a damaged descriptor at offset"):
            use()
    checks = run_verification(directory).checks
    assert [check.recording_id for check in checks if check.ok] == [0, 1, 3, 4]
    (check,) = run_verification(directory, 2).checks
    assert "its descriptor is damaged" in check.problems[0].detail


def test_a_start_reports_it_and_continues(archive: Path, damage: tuple[int, bytes]) -> None:
    """Refresh reports one damaged descriptor and repairs the others; nothing is overwritten."""
    with Catalog.open(archive) as catalog:
        catalog.set_stop_position(3, -1)
    overwrite(archive, offset_of(archive, 2) + damage[0], damage[1])
    before = (archive / layout.CATALOG_FILE_NAME).read_bytes()
    with Catalog.open(archive) as catalog:
        outcomes = refresh(catalog, archive, now_ms=9)
        assert [(outcome.recording_id, outcome.outcome) for outcome in outcomes] == [
            (2, Outcome.DAMAGED_DESCRIPTOR),
            (3, Outcome.REPAIRED),
        ]
        assert catalog.stop_position(3) == 544
        added = catalog.add_recording(**ENTRY)
        assert added == COUNT
        descriptor = catalog.descriptor(added)
    after = (archive / layout.CATALOG_FILE_NAME).read_bytes()
    with Catalog.open(archive, read_only=True) as catalog:
        end = catalog.entry(added).offset
        assert catalog.descriptor(added) == descriptor
    changed = {at for at in range(end) if before[at] != after[at]}
    stopped = offset_of(archive, 3) + HEADER + layout.STOP_TIMESTAMP_OFFSET
    assert changed <= {*range(stopped, stopped + 8), *range(stopped + 16, stopped + 24), 8}


@pytest.mark.parametrize(
    ("offset", "value", "problem"),
    [
        (HEADER + 80, 10_000, "strippedChannel of 10000 bytes"),
        (layout.STATE_OFFSET, 77, "its state 77 is not a valid one"),
    ],
)
def test_lookups_skip_it(archive: Path, offset: int, value: int, problem: str) -> None:
    """find_last never returns it, its id is known, and changes to it are refused."""
    overwrite(archive, offset_of(archive, 2) + offset, layout.INT.pack(value))
    with Catalog.open(archive) as catalog:
        stream_id = catalog.descriptor(0).stream_id
        assert catalog.find_last(0, 2, stream_id, b"") == -1
        assert catalog.find_last(0, 1, stream_id, b"endpoint") == 1
        assert catalog.has_recording(2)
        assert list(catalog.descriptors(0, COUNT).ids) == [0, 1, 3, 4]
        before = catalog.entry(2)
        calls: list[Callable[[], object]] = [
            lambda: catalog.descriptor(2),
            lambda: catalog.wire_descriptor(2),
            lambda: catalog.stop_position(2),
            lambda: catalog.recording_stopped(2, 0, 0),
            lambda: catalog.set_start_position(2, 0),
        ]
        for call in calls:
            with pytest.raises(CatalogError, match=problem):
                call()
        assert catalog.entry(2) == before


@pytest.mark.parametrize("value", [1 << 30, 16, -1])
def test_the_last_entry_is_not_overwritten(archive: Path, value: int) -> None:
    """Where the length of the last entry is unknown, the next one is written after all its
    bytes."""
    offset = offset_of(archive, 4)
    overwrite(archive, offset, layout.INT.pack(value))
    before = (archive / layout.CATALOG_FILE_NAME).read_bytes()
    used = len(before.rstrip(b"\0"))
    with Catalog.open(archive) as catalog:
        assert catalog.entry(4).damage
        assert catalog.add_recording(**ENTRY) == 5
        assert catalog.entry(5).offset >= used
    after = (archive / layout.CATALOG_FILE_NAME).read_bytes()
    assert after[32:used] == before[32:used]
    with Catalog.open(archive, read_only=True) as catalog:
        assert list(catalog.recording_ids()) == [0, 1, 2, 3, 4, 5]
        assert catalog.descriptor(5).session_id == ENTRY["session_id"]


def test_two_consecutive_damaged_ids(archive: Path) -> None:
    """Exactly two ids are missing between the neighbours, so both are known."""
    for recording_id in (1, 2):
        begin = offset_of(archive, recording_id) + HEADER + layout.RECORDING_ID_OFFSET
        overwrite(archive, begin, layout.LONG.pack(-9))
    recordings = open_directory(archive).recordings()
    assert [each.recording_id for each in recordings] == list(range(COUNT))
    assert [each.recording_id for each in recordings if each.damage] == [1, 2]


def test_an_entry_with_an_unknown_id(archive: Path) -> None:
    """When the id cannot be derived, the entry is reported by its offset, and no id finds it."""
    begin = offset_of(archive, 2)
    for recording_id, value in ((2, -9), (3, 13), (4, 14)):
        offset = offset_of(archive, recording_id) if recording_id > 2 else begin
        overwrite(archive, offset + HEADER + layout.RECORDING_ID_OFFSET, layout.LONG.pack(value))
        overwrite(archive, layout.NEXT_RECORDING_ID_OFFSET, layout.LONG.pack(15))
    with Catalog.open(archive) as catalog:
        assert list(catalog.recording_ids()) == [0, 1, 13, 14]
        with pytest.raises(UnknownRecordingError):
            catalog.descriptor(2)
        named = [o for o in refresh(catalog, archive, now_ms=1) if o.recording_id == -1]
    assert named[0].outcome is Outcome.DAMAGED_DESCRIPTOR
    assert f"offset {begin}" in str(named[0])
    (unknown,) = [r for r in open_directory(archive).recordings() if r.recording_id == -1]
    with pytest.raises(CatalogError, match=f"offset {begin}"):
        unknown.check()


@pytest.mark.parametrize("seed", range(200))
def test_random_damage_to_one_entry(archive: Path, seed: int) -> None:
    """Whatever bytes of one entry are overwritten, the other entries retain id, values and
    strings."""
    rng = random.Random(seed)
    with Catalog.open(archive, read_only=True) as catalog:
        entries = list(catalog.entries())
    victim = rng.choice(entries)
    length = rng.choice([1, 2, 4, 8, 64, HEADER + victim.length])
    begin = rng.randrange(HEADER + victim.length - length + 1)
    data = rng.choice([rng.randbytes(length), bytes(length), b"\xff" * length])
    overwrite(archive, victim.offset + begin, data)
    with Catalog.open(archive, read_only=True) as catalog:
        found = {entry.offset: entry for entry in catalog.entries()}
    for entry in entries:
        if entry is not victim:
            assert found.get(entry.offset) == entry, f"seed {seed}: {found.get(entry.offset)}"


@pytest.mark.parametrize("seed", range(200))
def test_native_and_python_walk_agree(
    archive: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On entries damaged in several places: the native part stops where an entry is not sound."""
    rng = random.Random(seed)
    content = bytearray((archive / "archive.catalog").read_bytes()[: offset_of(archive, COUNT - 1)])
    for _ in range(rng.randrange(4)):
        at = layout.CATALOG_HEADER_LENGTH + rng.randrange(len(content) - 64)
        content[at : at + 4] = rng.choice((rng.randbytes(4), bytes(4), b"\xff" * 4, b"\x60\0\0\0"))
    data = mmap.mmap(-1, 1 << 16)
    data[: len(content)] = content
    growing = rng.random() < 0.5
    found = [find_places(data, layout.DEFAULT_ALIGNMENT, growing=growing)]
    monkeypatch.setattr(entries, "sound_entries", lambda _, offset, __: ((b"",) * 4, offset))
    found.append(find_places(data, layout.DEFAULT_ALIGNMENT, growing=growing))
    assert list(found[0]) == list(found[1])
    assert found[0].end_offset == found[1].end_offset
    assert found[0] or growing


def test_a_lost_header_is_not_taken_for_a_new_catalog(archive: Path) -> None:
    """Zeros in place of the header, followed by entries, are refused, and no byte changes."""
    overwrite(archive, 0, bytes(layout.CATALOG_HEADER_LENGTH))
    before = (archive / layout.CATALOG_FILE_NAME).read_bytes()
    with pytest.raises(CatalogError, match="lost its header"):
        Catalog.open(archive, create=True, capacity_bytes=1 << 22)
    assert (archive / layout.CATALOG_FILE_NAME).read_bytes() == before


def test_a_truncated_header_is_not_changed(tmp_path: Path) -> None:
    """A file that was truncated within its header is refused, not initialized again."""
    path = tmp_path / layout.CATALOG_FILE_NAME
    path.write_bytes(layout.CATALOG_HEADER.pack(layout.SEMANTIC_VERSION, 32, 3, 64)[:14])
    with pytest.raises(CatalogError, match="14 bytes long"):
        Catalog.open(tmp_path, create=True)
    assert path.stat().st_size == 14


@pytest.mark.parametrize("missing", [1, 4, 16])
def test_a_length_that_truncates_the_last_string_is_reported(archive: Path, missing: int) -> None:
    """The entry ends where its alignment requires, but it does not contain all its strings."""
    offset = offset_of(archive, 2)
    with Catalog.open(archive, read_only=True) as catalog:
        used = len(catalog.descriptor(2).encode())
        assert layout.align(HEADER + used - missing, 64) == layout.align(HEADER + used, 64)
    overwrite(archive, offset, layout.INT.pack(used - missing))
    with Catalog.open(archive) as catalog:
        assert "sourceIdentity" in catalog.entry(2).damage
        assert sorted(catalog.readable_descriptors()[0]) == [0, 1, 3, 4]
        found = {each.recording_id: each.outcome for each in refresh(catalog, archive, now_ms=3)}
    assert found == {2: Outcome.DAMAGED_DESCRIPTOR}
