"""Names of segment files and position arithmetic."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.damage.overwriting import overwrite

from aerotape import _native
from aerotape.catalog.descriptor import segment_base_position
from aerotape.catalog.segment_files import (
    index_segment_files,
    is_blank_from,
    list_segment_files,
    parse_segment_file_name,
    segment_file_name,
)
from aerotape.errors import StorageError
from aerotape.units import MAX_LONG

longs = st.integers(0, MAX_LONG)
# Exponents of term and segment lengths: 64 KiB to 1 GiB.
exponents = st.integers(16, 30)


@given(longs, longs)
def test_a_name_can_be_parsed(recording_id: int, base_position: int) -> None:
    """Every pair of numbers has one name, and parsing the name returns the pair."""
    name = segment_file_name(recording_id, base_position)
    assert parse_segment_file_name(name) == (recording_id, base_position)


@given(st.text(st.sampled_from("0123456789-.rec +_x\n")))
def test_only_canonical_names_are_accepted(name: str) -> None:
    """Every accepted name is exactly the name of its two numbers."""
    parsed = parse_segment_file_name(name)
    assert parsed is None or segment_file_name(*parsed) == name


@given(st.data(), exponents, exponents, st.integers(0, 1 << 45), st.integers(0, 1 << 45))
def test_the_segment_of_a_position_contains_it(
    data: st.DataObject, term_bits: int, segment_bits: int, start: int, length: int
) -> None:
    """Bases are a segment apart from the start's term on, and each contains its positions."""
    assume(segment_bits >= term_bits)
    term, segment = 1 << term_bits, 1 << segment_bits
    position = start + length
    base = segment_base_position(start, position, term, segment)
    first = start - start % term
    assert base <= position < base + segment
    assert base >= first
    assert (base - first) % segment == 0
    assert base % term == 0
    within = data.draw(st.integers(max(base, start), base + segment - 1))
    assert segment_base_position(start, within, term, segment) == base


def test_files_are_listed_by_number_not_by_name(tmp_path: Path) -> None:
    """1048576 comes after 131072, and recording 1 is not recording 11."""
    bases = [1 << 20, 0, 1 << 17]
    for base in bases:
        (tmp_path / segment_file_name(1, base)).touch()
    (tmp_path / segment_file_name(11, 0)).touch()
    (tmp_path / "junk.rec").touch()
    (tmp_path / "archive.catalog").touch()
    assert [s.base_position for s in list_segment_files(tmp_path, 1)] == sorted(bases)
    index, foreign = index_segment_files(tmp_path)
    assert {id_: [s.base_position for s in found] for id_, found in index.items()} == {
        1: sorted(bases),
        11: [0],
    }
    assert [path.name for path in foreign] == ["junk.rec"]


@pytest.mark.parametrize("offset", [0, 32, 4096, 65_504])
def test_a_blank_segment_was_never_written(tmp_path: Path, offset: int) -> None:
    """Bytes preceding the offset do not count, single ones after it do; a missing file is blank."""
    path = tmp_path / segment_file_name(1, 0)
    assert is_blank_from(path, offset)
    with path.open("wb") as file:
        file.write(b"x" * offset)
        file.truncate(1 << 16)
    assert is_blank_from(path, offset)
    for place in (offset, 65_535):
        overwrite(path, place, b"y")
        assert not is_blank_from(path, offset)
        with path.open("r+b") as file:
            file.truncate(offset)
            file.truncate(1 << 16)
        assert is_blank_from(path, offset)


def test_the_native_listing_agrees_with_the_names(tmp_path: Path) -> None:
    names = ["0-0.rec", "12-65536.rec", "12-0.rec", f"3-{MAX_LONG}.rec"]
    others = ["0-00.rec", "00-1.rec", "-1-0.rec", "1-.rec", "4-0.rec.del", f"3-{MAX_LONG + 1}.rec"]
    others += ["\u0661-0.rec", "archive.catalog", "0-0.rec "]
    for name in (*names, *others):
        (tmp_path / name).write_bytes(bytes(5_000))
        os.utime(tmp_path / name, ns=(5, 1_234_567_890_123_456_789))
    index, _ = index_segment_files(tmp_path)
    expected = [
        (
            recording_id,
            each.base_position,
            each.path.stat().st_blocks * 512,
            1_234_567_890_123_456_789,
        )
        for recording_id in sorted(index)
        for each in index[recording_id]
    ]
    found, left = _native.list_segments(tmp_path)
    assert found == expected
    assert len(found) == len(names)
    assert sorted(left) == sorted(others)
    with pytest.raises(StorageError, match="no-such"):
        _native.list_segments(tmp_path / "no-such")
