"""The commands of `aerotape journal` agree about whether a journal is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.daemon.command_line import aerotape
from support.journals import damaged_journals as damaged
from support.journals import raft_bytes as built

from aerotape.replay.offline.directory import open_directory

EACH_FORMAT = pytest.mark.parametrize("name", built.FORMATS)


def run(journal: Path, archive: Path, code: int) -> list[int]:
    """Run each command and check its exit code; return the indices that `list` printed."""
    for command in ("verify", "list"):
        done = aerotape("journal", command, journal, "--json", expect=code)
        assert "Traceback" not in done.err
    found = [json.loads(line)["index"] for line in done.out.splitlines()]
    done = aerotape("journal", "import", journal, "--to", archive, "--json", expect=code)
    assert "Traceback" not in done.err
    if found:
        assert json.loads(done.out)["records"] == len(found)
    else:
        assert "nothing was imported" in done.err
        assert open_directory(archive).recordings() == []
    # A record that is not there: because the journal ends, or because it is damaged.
    done = aerotape("journal", "show", journal, 999, expect=code or 1)
    assert "Traceback" not in done.err and "has no segment yet" not in done.err
    for index in found[:1] + found[-1:]:
        aerotape("journal", "show", journal, index, "--json")
    return found


@EACH_FORMAT
def test_a_sound_journal(tmp_path: Path, name: str) -> None:
    """All of it is listed and imported, also beside files that were created for later."""
    paths = damaged.write(tmp_path / "journal", name)
    paths[-1].with_name(f"{built.NAME}-99.log").write_bytes(bytes(damaged.SEGMENT_SIZE))
    found = run(tmp_path / "journal", tmp_path / "archive", 0)
    assert found == list(range(1, damaged.COUNT + 1))


@EACH_FORMAT
@pytest.mark.parametrize("what", damaged.DAMAGES)
def test_a_damaged_journal(tmp_path: Path, name: str, what: str) -> None:
    """Each command reports damage with exit code 3, after the records that can be read."""
    damaged.DAMAGES[what](damaged.write(tmp_path / "journal", name))
    found = run(tmp_path / "journal", tmp_path / "archive", 3)
    assert found == list(range(1, len(found) + 1))
    if "first" in what:
        assert found == []
    # Damage after which all records can be read hides none of them.
    if what in ("the last segment renamed", "a file that is too long", "metadata"):
        assert len(found) == damaged.COUNT


def test_a_last_index_that_the_records_do_not_reach(tmp_path: Path) -> None:
    """All records can be read, and are; the exit code is that of damage."""
    damaged.with_last_index(damaged.write(tmp_path / "journal", "8.3"))
    found = run(tmp_path / "journal", tmp_path / "archive", 3)
    assert len(found) == damaged.COUNT
