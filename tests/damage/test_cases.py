"""Single cases of damage that were handled incorrectly in the past."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
from support.builders.built_archive import add_entry, add_recording
from support.builders.segment_builder import SegmentBuilder
from support.damage.assertions import read, recordings
from support.damage.damaged_directory import BuiltDirectory, content, copy_directory
from support.damage.overwriting import overwrite
from support.damage.tool_commands import POLICY, run

from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.refresh import Outcome, refresh
from aerotape.catalog.recovery.suspect_marks import SuspectNote, add_notes
from aerotape.errors import SegmentError

_TERM = 65_536


@pytest.fixture
def directory(built: BuiltDirectory, tmp_path: Path) -> Path:
    """A copy without damage."""
    return copy_directory(built.path, tmp_path / "archive")


def put(directory: Path, recording_id: int, offset: int, data: bytes) -> None:
    """Overwrite bytes of an entry of the catalog; `offset` counts from its descriptor header."""
    with Catalog.open(directory, read_only=True) as catalog:
        begin = next(e.offset for e in catalog.entries() if e.recording_id == recording_id)
    overwrite(directory / layout.CATALOG_FILE_NAME, begin + offset, data)


def stop_at(directory: Path, recording_id: int, position: int) -> None:
    offset = layout.DESCRIPTOR_HEADER_LENGTH + layout.STOP_POSITION_OFFSET
    put(directory, recording_id, offset, struct.pack("<q", position))


def test_a_segment_of_another_stream_is_not_served(built: BuiltDirectory, directory: Path) -> None:
    """Recordings 0 and 2 differ only in their stream ids: term ids and offsets are the same."""
    (directory / "2-0.rec").replace(directory / "0-0.rec")
    served = read(recordings(directory)[0])
    assert served.messages == []
    assert "stream id 1003, expected 1001" in str(served.error)


def test_messages_preceding_an_unreadable_last_segment(
    built: BuiltDirectory, directory: Path
) -> None:
    """For a recording without a stop position, where only that file determines its end."""
    path = directory / f"2-{2 * _TERM}.rec"
    path.unlink()
    path.mkdir()
    served = read(recordings(directory)[2])
    assert served.messages == built.originals[2].messages_before(2 * _TERM)
    assert isinstance(served.error, SegmentError)
    assert (Path(served.error.path), served.error.position) == (path, 2 * _TERM)


def test_a_distant_segment_of_another_recording_is_not_the_end(
    built: BuiltDirectory, directory: Path
) -> None:
    """A live recording ends with its own frames; the file of the other recording is retained."""
    stray = directory / f"2-{20 * _TERM}.rec"
    os.link(directory / f"1-{_TERM}.rec", stray)
    assert recordings(directory)[2].recorded_position == built.originals[2].stream.position
    with Catalog.open(directory) as catalog:
        outcomes = {each.recording_id: each for each in refresh(catalog, directory, now_ms=9)}
    outcome = outcomes[2]
    assert outcome.stop_position == built.originals[2].stream.position
    assert outcome.outcome is Outcome.SUSPECT_TORN_TAIL
    [retained] = [finding.quarantine for finding in outcome.findings if finding.quarantine]
    assert retained.samefile(directory / f"1-{_TERM}.rec")


def test_statistics_with_a_very_high_stop_position(directory: Path) -> None:
    """There would be too many segments to check one by one."""
    stop_at(directory, 0, 1 << 46)
    done = run("tool", directory, "stats", "0", "--json")
    assert done.code == 3
    results = json.loads(done.out)
    assert results["gaps"][-1]["to_position"] == 1 << 46


def test_frames_after_many_missing_segments_are_found(
    built: BuiltDirectory, tmp_path: Path
) -> None:
    """They are counted, however many segment files are missing at lower positions."""
    stream = SegmentBuilder(segment_length=_TERM)
    stream.message(b"first")
    directory = tmp_path / "archive"
    directory.mkdir()
    for _ in range(40):
        stream.pad_term()
    stream.message(b"last")
    add_recording(directory, stream)
    for base in range(_TERM, 40 * _TERM, _TERM):
        (directory / f"0-{base}.rec").unlink()
    results = json.loads(run("tool", directory, "stats", "0", "--json").out)
    assert results["messages"] == 2
    assert [gap["to_position"] for gap in results["gaps"]] == [40 * _TERM]


@pytest.mark.parametrize("left", [None, b""])
def test_ids_of_a_lost_catalog_are_not_assigned_again(
    built: BuiltDirectory, directory: Path, left: bytes | None
) -> None:
    """A new recording with such an id could not be written, and its purge would delete the
    files."""
    (directory / layout.CATALOG_FILE_NAME).unlink()
    if left is not None:
        (directory / layout.CATALOG_FILE_NAME).write_bytes(left)
    (directory / f"{(1 << 63) - 1}-0.rec").touch()
    with Catalog.open(directory, create=True) as catalog:
        [outcome] = refresh(catalog, directory, now_ms=9)
        assert outcome.outcome is Outcome.FOREIGN_FILE
        assert add_entry(catalog, SegmentBuilder()) == max(built.originals) + 1


def test_an_invalid_state_is_damage(built: BuiltDirectory, directory: Path) -> None:
    """The recording is reported instead of being hidden, and not deleted as an invalid one."""
    put(directory, 0, layout.STATE_OFFSET, struct.pack("<i", 1 << 16 | 1))
    found = recordings(directory)
    assert "state 65537" in found[0].damage
    assert found[0].entry.state == RecordingState.VALID
    assert [each.damage for number, each in found.items() if number != 0] == [""] * 6
    before = content(directory)
    assert run("tool", directory, "compact", "--yes").code == 1
    assert content(directory) == before


# ---- commands that delete ------------------------------------------------------------------------


def orphans(directory: Path) -> tuple[int, list[str], dict[str, str]]:
    """Delete orphaned segments; return the exit code, the deleted files, and why others were
    not."""
    done = run("tool", directory, "delete-orphaned-segments", "--yes", "--json")
    results = json.loads(done.out)
    retained = {each["segment_file"]: each["reason"] for each in results["kept"]}
    for name in retained:
        assert f"retained {name}: " in done.err
        assert (directory / name).exists()
    return done.code, results["segment_files_deleted"], retained


def test_orphans_with_frames_of_another_recording_are_retained(directory: Path) -> None:
    """A file that was renamed by mistake; a file without frames and an empty one are deleted."""
    (directory / f"1-{3 * _TERM}.rec").rename(directory / f"4-{9 * _TERM}.rec")
    (directory / f"4-{8 * _TERM}.rec").write_bytes(bytes(_TERM))
    (directory / f"4-{7 * _TERM}.rec").write_bytes(b"left over")
    code, deleted, retained = orphans(directory)
    assert code == 3
    assert sorted(deleted) == [f"4-{7 * _TERM}.rec", f"4-{8 * _TERM}.rec"]
    assert list(retained) == [f"4-{9 * _TERM}.rec"]
    assert "stream id 1002" in retained[f"4-{9 * _TERM}.rec"]


@pytest.mark.parametrize("at", [1, 2, -1])
def test_segments_after_a_stop_position_followed_by_frames_are_retained(
    built: BuiltDirectory, directory: Path, at: int
) -> None:
    """The stop position may be wrong: within a segment, or at the beginning of the next one."""
    frames = sorted(built.originals[0].stream.frames)
    # The second of them is within a frame.
    stop = {1: frames[1], 2: frames[-1] - 2 * _TERM, -1: 2 * _TERM}[at]
    assert (stop in frames) == (at != 2)
    stop_at(directory, 0, stop)
    code, deleted, retained = orphans(directory)
    after = [f"0-{base}.rec" for base in (2 * _TERM, 4 * _TERM) if base > stop]
    assert (code, deleted) == (3, [])
    assert sorted(retained) == after
    assert all("continue after the stop position" in reason for reason in retained.values())


def test_detached_segments_are_deleted(directory: Path) -> None:
    """Although they contain the recording's own frames, because they were detached."""
    offset = layout.DESCRIPTOR_HEADER_LENGTH + layout.START_POSITION_OFFSET
    put(directory, 0, offset, struct.pack("<q", 2 * _TERM))
    assert orphans(directory) == (0, ["0-0.rec"], {})


def test_segments_below_an_invalid_start_position_are_retained(directory: Path) -> None:
    """Detaching moves the start to the beginning of a segment."""
    offset = layout.DESCRIPTOR_HEADER_LENGTH + layout.START_POSITION_OFFSET
    put(directory, 0, offset, struct.pack("<q", 4 * _TERM + 96))
    code, deleted, retained = orphans(directory)
    assert (code, deleted) == (3, [])
    assert sorted(retained) == ["0-0.rec", f"0-{2 * _TERM}.rec"]


def test_orphans_of_a_suspect_recording_are_retained(
    built: BuiltDirectory, directory: Path
) -> None:
    """Until the operator has checked it; those that are suspect without a reason are deleted."""
    (directory / f"4-{9 * _TERM}.rec").write_bytes(bytes(_TERM))
    add_notes(directory, 4, [SuspectNote("checksum mismatch", "somewhere", 0, 1)])
    assert orphans(directory)[1:] == (
        [],
        {f"4-{9 * _TERM}.rec": "its recording is marked as suspect"},
    )
    (directory / "aerotape-4.suspect").unlink()
    assert orphans(directory) == (0, [f"4-{9 * _TERM}.rec"], {})


@pytest.mark.parametrize("kind", ["whole", "short", "another's", "directory"])
def test_retention_does_not_delete_a_damaged_recording(
    built: BuiltDirectory, directory: Path, tmp_path: Path, kind: str
) -> None:
    """Also when the segment files that would be deleted are not the damaged ones."""
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    last = directory / f"0-{4 * _TERM}.rec"
    if kind == "short":
        os.truncate(last, 96)
    elif kind == "another's":
        last.write_bytes((directory / "2-0.rec").read_bytes())
    elif kind == "directory":
        last.unlink()
        last.mkdir()
    done = json.loads(run("retain", directory, policy, "--yes", "--json").out)
    gone = 0 in {each["recording_id"] for each in done["removals"]}
    assert gone == (kind == "whole")
    assert (directory / "0-0.rec").exists() != gone
    if not gone:
        [reason] = [each["in_use"] for each in done["kept"] if each["recording_id"] == 0]
        assert "damaged" in reason or "at position" in reason


def test_an_imported_recording_that_ends_with_a_segment_has_the_next_one(
    built: BuiltDirectory, tmp_path: Path
) -> None:
    """As a recorder leaves it; without that file, verify would hide the recording."""
    directory = copy_directory(built.path, tmp_path / "archive")
    assert run("tool", directory, "export", "5", tmp_path / "file").code == 0
    assert run("tool", directory, "import", tmp_path / "file").code == 0
    stop = built.originals[5].stream.position
    assert (directory / f"7-{stop}.rec").read_bytes() == bytes(2 * _TERM)
    assert run("tool", directory, "verify", "7", "-a").code == 0
    assert recordings(directory)[7].entry.state == RecordingState.VALID


def test_compact_retains_segments_of_another_recording(
    built: BuiltDirectory, directory: Path
) -> None:
    """A segment of a valid recording with the name of a recording that is no longer valid."""
    assert run("tool", directory, "mark-invalid", "3").code == 0
    mistaken = directory / "3-0.rec"
    content = (directory / "0-0.rec").read_bytes()
    (directory / "0-0.rec").rename(mistaken)
    bare = directory / "3-old.rec"
    bare.write_bytes(content)
    done = run("tool", directory, "compact", "--yes", "--json")
    assert done.code == 3
    results = json.loads(done.out)
    assert 3 in results["recordings_removed"]
    assert {each["segment_file"] for each in results["kept"]} == {mistaken.name, bare.name}
    assert mistaken.read_bytes() == bare.read_bytes() == content
    mistaken.rename(directory / "0-0.rec")
    assert read(recordings(directory)[0]).messages == built.originals[0].messages


def test_orphaned_segments_without_a_position_are_checked(directory: Path) -> None:
    """A file that begins with a frame may be the only remaining one; another one is useless."""
    (directory / "0-0.rec").rename(directory / "0-0.bak.rec")
    (directory / "0-rubbish.rec").write_bytes(b"no frame " * 100)
    results = run("tool", directory, "delete-orphaned-segments", "0", "--yes", "--json")
    done = json.loads(results.out)
    assert done["segment_files_deleted"] == ["0-rubbish.rec"]
    assert [each["segment_file"] for each in done["kept"]] == ["0-0.bak.rec"]
