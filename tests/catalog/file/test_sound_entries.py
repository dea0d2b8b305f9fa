"""Reading all entries of a catalog quickly tells the same as reading them one by one."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

from aerotape.catalog.descriptor import RecordingExtent, are_possible, describe_problem
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry, entry_damage
from aerotape.catalog.file.sound_entries import SoundEntry
from aerotape.catalog.layout import RecordingState

TERM_LENGTH = 64 * 1024
ENTRIES = 8
ODD_TEXTS = ("", " blank ", "%s%d", "a\x1b[2Jb", "aeron:ipc")


def catalog_bytes(folder: Path) -> bytes:
    """A catalog with recordings of all states."""
    with Catalog.open(folder, create=True, capacity_bytes=4096) as catalog:
        for number in range(ENTRIES):
            catalog.add_recording(
                start_position=32 * number,
                stop_position=-1 if number % 2 else 4096,
                start_timestamp_ms=number - 1,
                initial_term_id=-number,
                segment_file_length=2 * TERM_LENGTH,
                term_buffer_length=TERM_LENGTH,
                mtu_length=1408,
                session_id=-number,
                stream_id=number,
                stripped_channel=ODD_TEXTS[number % 5],
                original_channel=ODD_TEXTS[(number + 1) % 5],
                source_identity=ODD_TEXTS[(number + 2) % 5],
            )
        catalog.change_state(1, RecordingState.INVALID)
        catalog.change_state(2, RecordingState.DELETED)
    return (folder / "archive.catalog").read_bytes()


def check_listing(content: bytes) -> int:
    """Hold the two ways of reading a catalog to each other; return how many entries are sound."""
    sound = 0
    with Catalog.of_bytes(Path("catalog"), content) as catalog:
        for entry, listed in zip(catalog.entries(), catalog.listed_entries(), strict=True):
            if isinstance(listed, CatalogEntry):
                assert listed == entry
                continue
            sound += 1
            assert isinstance(listed, SoundEntry)
            assert entry_damage(entry) == ""
            for name in listed._fields:
                owner = entry if name in {"state", "checksum", "recording_id"} else entry.descriptor
                assert getattr(listed, name) == getattr(owner, name), name
    return sound


def test_sound_entries_are_read_in_one_step_and_tell_all(tmp_path: Path) -> None:
    """All fields of all states; none of them takes the long way."""
    assert check_listing(catalog_bytes(tmp_path)) == ENTRIES


def test_damaged_entries_are_told_as_ever(tmp_path: Path) -> None:
    """Wherever bytes are wrong: no entry is taken for sound in which anything is not."""
    content, rng = catalog_bytes(tmp_path), random.Random(5)
    sound = 0
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(rng.choice([1, 1, 3])):
            damaged[rng.randrange(32, 2048)] ^= 1 << rng.randrange(8)
        sound += check_listing(bytes(damaged))
    assert 200 * ENTRIES < sound < 400 * ENTRIES


def test_possible_figures_are_those_without_a_problem() -> None:
    """The quick answer is that of the long one, at every boundary."""
    last = TERM_LENGTH << 31
    positions = (-33, -32, -2, -1, 0, 1, 31, 32, 64, last - 32, last - 1, last, last + 32)
    lengths = (-TERM_LENGTH, 0, TERM_LENGTH - 1, TERM_LENGTH, 2 * TERM_LENGTH, 1 << 30)
    for start, stop, segment, term in product(positions, positions, lengths, lengths):
        extent = RecordingExtent(start, stop, segment, term)
        assert are_possible(start, stop, segment, term) == (not describe_problem(extent)), extent
