"""Raft journals after a power cut, while they are written and truncated."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.journals import raft_bytes as built
from support.power_cut.power_cut import EVERYTHING, Cut, Run, build_shim, recorded

from aerotape.codecs.raft_journal.directory import RaftJournal
from aerotape.errors import JournalError, StorageError

pytestmark = pytest.mark.crash


def check(cut: Cut, folder: Path) -> None:
    """Check that a journal has what is on storage, and nothing that was deleted from it.

    Only records that were not flushed may be damaged. While records are deleted, all or those that
    remain are there.
    """
    texts: dict[int, str] = {}
    flushed = last = 0
    for words in map(json.loads, cut.notes):
        match words:
            case ["append", index, text]:
                texts[index] = text
                last = index
            case ["flushed", index]:
                flushed = index
            case ["cut", index]:
                flushed = min(flushed, index)
            case ["done", index]:
                last = index
    cut.write(folder)
    found: list[str] = []
    damage: JournalError | None = None
    if not list(folder.rglob("*.log")):
        assert flushed == 0
        return
    try:
        for record in RaftJournal.open(folder / "journal").records():
            found.append(record.data.decode())
    except JournalError as error:
        damage = error
    assert flushed <= len(found) <= last, (cut, damage)
    assert found == [texts[index] for index in range(1, len(found) + 1)], (cut, damage)
    is_appending = cut.notes and json.loads(cut.notes[-1])[0] == "append"
    assert damage is None or (is_appending and cut.kind != EVERYTHING), (cut, damage)


@pytest.fixture(params=built.FORMATS)
def run(tmp_path: Path, seeds: range, request: pytest.FixtureRequest) -> Run:
    """A journal that is written, with all changes that were made."""
    root = tmp_path / "run"
    root.mkdir()
    command = [sys.executable, "-m", "support.power_cut.journal_run", str(root / "journal")]
    command += [request.param, str(seeds.start)]
    done = recorded(build_shim(tmp_path), root, tmp_path / "log", command, 120)
    done.check_complete()
    return done


def failures(run: Run, seed: int, tmp_path: Path) -> list[str]:
    """Return what is wrong after power cuts."""
    found = []
    for number, cut in enumerate(run.power_cuts(seed, 3)):
        try:
            check(cut, tmp_path / f"left-{number}")
        except (AssertionError, StorageError) as error:
            found.append(str(error)[:300])
    return found


def test_a_power_cut_at_each_change(run: Run, seeds: range, tmp_path: Path) -> None:
    """What was flushed is there, what was deleted is not; only later records may be damaged."""
    assert failures(run, seeds.start, tmp_path) == []
