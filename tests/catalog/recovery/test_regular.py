"""Recordings that a start finds regular natively: the same outcomes as when each is looked at."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from support.builders.built_archive import ENTRY

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh
from aerotape.catalog.recovery.suspect_marks import mark_file_name
from aerotape.catalog.recovery.trailing_segment import make_next_segments

TERM, SEGMENT = 1 << 16, 1 << 17
RECORDINGS = 30


def write(directory: Path, rng: random.Random) -> None:
    """Write recordings that are regular, and ones that are so in all but one respect."""
    directory.mkdir()
    with Catalog.open(directory, create=True) as catalog:
        for recording_id in range(RECORDINGS):
            start = rng.choice((0, 0, 32, TERM, TERM + 96, 5 * SEGMENT))
            stop = start + rng.choice((0, 32, TERM, SEGMENT - start % SEGMENT, 2 * SEGMENT, 992))
            fields = {"start_position": start, "stop_position": stop, "stop_timestamp_ms": 9}
            match rng.randrange(12):
                case 0:
                    fields["stop_position"] = rng.choice((-1, stop + 1, start - 32, 1 << 62))
                case 1:
                    fields["start_position"] = rng.choice((-1, -32, start + 1))
                case 2:
                    fields["segment_file_length"] = rng.choice((0, TERM // 2, TERM + 1))
            catalog.add_recording(**ENTRY | fields)
            first = start & -TERM
            bases = list(range(first, stop + 1, SEGMENT)) if rng.random() < 0.9 else []
            match rng.randrange(8):
                case 0 if bases:
                    bases.remove(rng.choice(bases))
                case 1:
                    bases.append(rng.choice((first - SEGMENT, first + TERM, stop + 3 * SEGMENT)))
                case 2 if bases:
                    bases.pop()
            for base in bases:
                if base >= 0:
                    _make(directory, recording_id, base, rng)
    for name in rng.sample(("99-0.rec", "x.rec", "0-00.rec", "1-0.rec.del", "-1-0.rec"), 2):
        (directory / name).touch()
    for recording_id in rng.sample(range(RECORDINGS + 2), 4):
        (directory / mark_file_name(recording_id)).write_text('{"notes": []}')


def _make(directory: Path, recording_id: int, base: int, rng: random.Random) -> None:
    zero = "0" if rng.random() < 0.03 else ""
    path = directory / f"{recording_id}-{zero}{base}.rec"
    match rng.randrange(25):
        case 0:
            path.mkdir()
        case 1:
            path.symlink_to(directory / "elsewhere")
        case _:
            with path.open("wb") as file:
                file.truncate(rng.choice((SEGMENT,) * 20 + (0, 32, SEGMENT + 32)))


def files(directory: Path) -> dict[str, int]:
    """Return the lengths of files, and that of the catalog by its content."""
    found = {path.name: path.lstat().st_size for path in directory.iterdir() if path.is_file()}
    return found | {"catalog": hash((directory / "archive.catalog").read_bytes())}


def all_are(catalog: Catalog, directory: Path) -> tuple[list[int], list[str]]:
    return list(catalog.recording_ids()), [path.name for path in directory.iterdir()]


@pytest.mark.parametrize("seed", range(40))
def test_outcomes_and_files_are_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a start, and of the stop after it."""
    write(tmp_path / "a", random.Random(seed))
    shutil.copytree(tmp_path / "a", tmp_path / "b", symlinks=True)
    found = []
    irregular = []
    for name in ("a", "b"):
        directory = tmp_path / name
        with Catalog.open(directory) as catalog:
            irregular.append(len(catalog.irregular_recordings(directory)[0]))
            outcomes = refresh(catalog, directory, now_ms=5)
            make_next_segments(catalog, directory)
        said = [(str(each).replace(str(directory), "DIR"), each.marked) for each in outcomes]
        found.append((said, files(directory)))
        monkeypatch.setattr(Catalog, "irregular_recordings", all_are)
    assert 0 < irregular[0] < irregular[1] == RECORDINGS
    assert found[0] == found[1]
