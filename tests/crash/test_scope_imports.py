"""Power cuts while recordings of another archive are imported, at every change of a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.builders.scoped_store import build, do_import, payloads
from support.power_cut.power_cut import Run, build_shim, directories_after, recorded

from aerotape.catalog.scopes.placing import TEMPORARY_FOLDER_NAME
from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.crash

IMPORT = """
import ctypes, json, sys
from pathlib import Path
from aerotape.catalog.scopes.importing import import_archive
from aerotape.replay.offline.directory import open_directory
from support.power_cut.places import say_places

say_places()
for each in import_archive(Path(sys.argv[1]), open_directory(sys.argv[2]), 7):
    ctypes.CDLL(None).power_cut_note(json.dumps(each.recording_id).encode())
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive directory with two recordings."""
    return build(tmp_path_factory.mktemp("source") / "source", archive_id=6, count=2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Run:
    """The changes of an import into a store that has imported nothing so far."""
    scratch = tmp_path_factory.mktemp("run")
    root = scratch / "root"
    root.mkdir()
    store = build(root / "store", archive_id=5)
    command = [sys.executable, "-c", IMPORT, str(store), str(source)]
    run = recorded(build_shim(scratch), root, scratch / "log", command, 60)
    run.check_complete()
    return run


def check(run: Run, source: Path, scratch: Path, seed: int, mixtures: int) -> set[int]:
    """Check all states after power cuts; return the numbers of recordings that were found.

    A recording is there completely or not at all, and if it was reported it is there.
    """
    expected = [payloads(each) for each in open_directory(source).recordings()]
    own = None
    numbers = set()
    cuts = list(run.power_cuts(seed, mixtures, step=2))
    promised = [[json.loads(note) for note in cut.notes] for cut in cuts] + [[0, 1]]
    left = directories_after(run, "store", scratch, cuts)
    for ids, store in zip(promised, left, strict=True):
        directory = open_directory(store)
        mine = payloads(directory.recording(0))
        assert own in (None, mine)
        own = mine
        found = directory.scope(7).recordings()
        assert set(ids) <= {each.recording_id for each in found}
        for each in found:
            assert payloads(each) == expected[each.recording_id]
            assert open_directory(each.archive_dir).own_scope_id() == 7
        numbers.add(len(found))
    return numbers


def test_power_cuts_during_an_import(run: Run, source: Path, tmp_path: Path, seeds: range) -> None:
    """After a power cut the store has whole recordings, all that were reported, and its own."""
    assert check(run, source, tmp_path, seeds.start, len(seeds)) == {0, 1, 2}


def test_a_missing_force_to_storage_is_detected(run: Run, source: Path, tmp_path: Path) -> None:
    """The check fails if the files or the names of an import are not forced to storage."""
    places = run.places_of_forcing()
    ours = [place for place in places if place.startswith(("importing.py", "placing.py"))]
    assert len(ours) == 3  # segment files, mark file, directories
    unnoticed = []
    for number, place in enumerate(ours):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        try:
            check(run.without(place), source, scratch, 1, 1)
        except Exception:  # of whatever kind: the state is not a good one
            continue
        unnoticed.append(place)
    assert unnoticed == []


def test_an_import_after_a_power_cut(run: Run, source: Path, tmp_path: Path) -> None:
    """The next import adds what is missing, wherever the power was cut."""
    cuts = list(run.power_cuts(1, 1, step=9))
    for store in directories_after(run, "store", tmp_path, cuts):
        assert all(each.result != "left out" for each in do_import(store, source, 7))
        assert len(open_directory(store).scope(7).recordings()) == 2
        assert not (store / TEMPORARY_FOLDER_NAME).exists()
