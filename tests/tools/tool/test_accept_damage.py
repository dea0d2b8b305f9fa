"""`aerotape tool DIR accept-damage`: the end of the mark of a repaired recording."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.mark_files import in_use, leave
from support.builders.segment_builder import SegmentBuilder
from support.daemon.command_line import tool
from support.damage.overwriting import overwrite
from support.jvm.java import archive_tool

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.tools._web.health import checks
from aerotape.tools._web.observed import ObservedArchive


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two recordings, of which 1 was damaged and repaired."""
    directory = tmp_path / "archive"
    directory.mkdir()
    for _ in range(2):
        add_recording(directory, fill(SegmentBuilder(), 30))
    leave(directory)
    overwrite(directory / "1-0.rec", 8, b"\x77")
    assert "`accept-damage 1` accepts what is lost" in tool(directory, "repair", "1", expect=3).out
    return directory


def suspect(directory: Path) -> tuple[set[int], bool]:
    """Return the recordings that a web service finds suspect, and whether its check fails."""
    snapshot = ObservedArchive(directory).snapshot()
    # The driver's files are not there.
    found = checks(replace(snapshot, problems=[]))
    failed = any("marked as suspect" in check.found for check in found)
    return set(snapshot.suspect), failed


@pytest.mark.jvm
def test_a_repaired_recording_can_be_accepted(directory: Path) -> None:
    """Until then verify exits with 3 and names the command; then it is OK, with the reason."""
    printed = tool(directory, "verify", "-a", expect=3).out
    assert "recording 1: OK, repaired, positions " in printed
    assert f"`aerotape tool {directory} accept-damage 1` accepts this; until then" in printed
    assert "`accept-damage` accepts damage that was repaired" in (
        tool(directory, "mark-valid", "1").out
    )
    assert suspect(directory) == ({1}, True)
    before = content_of_data(directory)
    dry_run = tool(directory, "accept-damage", "1", "--dry-run").out
    assert "recording 1: would accept: repaired: positions " in dry_run
    assert suspect(directory) == ({1}, True)
    printed = tool(directory, "accept-damage", "1").out
    assert "recording 1: accepted: repaired: positions " in printed
    assert "copies of removed data remain in " in printed
    assert content_of_data(directory) == before
    printed = tool(directory, "verify", "-a").out
    assert "recording 1: OK, repaired, positions " in printed
    assert "it is padding now (accepted " in printed
    assert suspect(directory) == (set(), False)
    assert tool(directory, "accept-damage", "1").out.startswith("recording 1 has no damage to acc")
    assert "(recordingId=1) OK" in archive_tool(directory, "verify", "-a").stdout


def content_of_data(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in directory.iterdir() if p.suffix in (".rec", ".catalog")}


def test_it_can_be_accepted_beside_a_running_archive(directory: Path) -> None:
    """To stop the archive would be a high price for the end of an alert."""
    with in_use(directory):
        tool(directory, "accept-damage", "1")
        tool(directory, "verify", "-a")


def test_more_damage_is_suspect_again(directory: Path) -> None:
    """What was accepted stays accepted."""
    tool(directory, "accept-damage", "1")
    overwrite(directory / "1-0.rec", 20_000, bytes(4000))
    tool(directory, "repair", "1", expect=3)
    [check] = tool(directory, "verify", "1", "-a", "--json", expect=3).json
    assert [note["accepted_timestamp_ms"] > 0 for note in check["notes"]] == [True, False]
    assert suspect(directory) == ({1}, True)


def test_copies_are_deleted_on_request(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a confirmation; without one nothing has changed."""
    [copies] = (directory / "aerotape-quarantine").iterdir()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    tool(directory, "accept-damage", "1", "--delete-copies", expect=1)
    assert copies.exists()
    assert suspect(directory) == ({1}, True)
    row = tool(directory, "accept-damage", "1", "--delete-copies", "--yes", "--json").json
    assert row["copies_deleted"] == [copies.name]
    assert not copies.exists()
    tool(directory, "verify", "1")


def test_an_unknown_recording_is_refused(directory: Path) -> None:
    """And one without a mark is not changed."""
    before = content_of_data(directory)
    assert "no recording with id 9" in tool(directory, "accept-damage", "9", expect=1).err
    assert tool(directory, "accept-damage", "0").out == "recording 0 has no damage to accept\n"
    assert content_of_data(directory) == before
    assert not (directory / "aerotape-0.suspect").exists()


def test_notes_of_a_later_version_are_read(directory: Path) -> None:
    """Members that this version does not know have no effect."""
    path = directory / "aerotape-1.suspect"
    mark = json.loads(path.read_text())
    mark["notes"][0]["colour"] = "blue"
    path.write_text(json.dumps(mark))
    tool(directory, "accept-damage", "1")
    assert "OK, repaired" in tool(directory, "verify", "1").out


def test_the_compaction_of_a_recording_removes_its_mark(directory: Path) -> None:
    """With its quarantine, as a purge does: nobody could accept it any more."""
    with Catalog.open(directory) as catalog:
        catalog.change_state(1, RecordingState.INVALID)
    tool(directory, "compact", "--yes")
    assert suspect(directory) == (set(), False)
    assert not list(directory.glob("aerotape-1.*"))
    assert not list(directory.glob("aerotape-quarantine/1-*"))
