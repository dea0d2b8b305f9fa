"""The refresh of recordings without a stop position after a crash: outcomes and bytes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry
from support.builders.crashed_recording import NOW_MS, SEGMENT_LENGTH, Crashed
from support.builders.segment_builder import SegmentBuilder, crc32
from support.damage.holes import PAGE_LENGTH, punch
from support.damage.overwriting import overwrite

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.quarantine import FOLDER_NAME, clear_marks
from aerotape.catalog.recovery.refresh import Outcome, refresh
from aerotape.catalog.recovery.suspect_marks import suspect_ids
from aerotape.replay.offline.directory import open_directory

BLANK = bytes(SEGMENT_LENGTH)


def straddling_last_frame(stream: SegmentBuilder) -> int:
    """Append frames until the last one crosses a page boundary; return its position."""
    stream.message(b"a" * 4000)
    position = stream.frame(b"b" * 1300)
    while position // 4096 == (stream.position - 1) // 4096:
        position = stream.frame(b"b" * 1300)
    return position


def test_a_recording_with_its_stop_position_is_clean_and_unchanged(crashed: Crashed) -> None:
    """A recording that was stopped is reported clean; no byte of it changes."""
    crashed.stream.message(b"x" * 100)
    crashed.write()
    crashed.catalog.recording_stopped(0, crashed.stream.position, 77)
    before = crashed.files()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.findings, outcome.suspect) == (Outcome.CLEAN, (), False)
    assert crashed.catalog.descriptor(0).stop_timestamp_ms == 77
    assert crashed.files() == before


def test_whole_frames_determine_the_stop_position_and_time(crashed: Crashed) -> None:
    """Stop position and timestamp are set from the last frame; the segment is not changed."""
    for _ in range(100):
        crashed.stream.message(b"x" * 3000)
    crashed.stream.pad_term()
    crashed.stream.frame(b"y" * 10)
    crashed.write()
    before = crashed.files()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.repaired, outcome.suspect) == (Outcome.REPAIRED, True, False)
    assert outcome.stop_position == crashed.stream.position
    descriptor = crashed.catalog.descriptor(0)
    assert descriptor.stop_position == crashed.stream.position > SEGMENT_LENGTH
    assert descriptor.stop_timestamp_ms == NOW_MS
    assert crashed.files() == before
    assert crashed.refresh().outcome is Outcome.CLEAN


def test_a_recording_that_begins_within_a_term_is_read_from_its_start(tmp_path: Path) -> None:
    """The first segment contains zeros up to the start position, and they are skipped."""
    made = Crashed(tmp_path, start_position=98_304)
    made.stream.message(b"x" * 5000)
    made.stream.write(tmp_path)
    assert [p.name for p in tmp_path.glob("*.rec")] == ["0-65536.rec"]
    assert made.refresh().stop_position == made.stream.position == 98_304 + 5152
    made.catalog.close()


def test_padding_as_the_last_frame_is_whole(crashed: Crashed) -> None:
    """The body of a padding frame is never written, and its zeros do not mean a torn frame."""
    crashed.stream.message(b"x" * 100)
    crashed.stream.pad_term()
    crashed.write()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.REPAIRED, 65_536)


def test_a_torn_frame_without_checksum_is_removed_and_reported(crashed: Crashed) -> None:
    """A last frame that is empty after a page boundary goes to quarantine; the tail is zeroed."""
    torn = straddling_last_frame(crashed.stream)
    crashed.write()
    boundary = (torn // 4096 + 1) * 4096
    overwrite(crashed.segment(), boundary, bytes(crashed.stream.position - boundary))
    before = crashed.segment().read_bytes()
    outcome = crashed.refresh()
    assert outcome.outcome is Outcome.SUSPECT_TORN_TAIL
    assert (outcome.stop_position, outcome.suspect) == (torn, True)
    assert crashed.segment().read_bytes() == before[:torn] + bytes(SEGMENT_LENGTH - torn)
    (finding,) = outcome.findings
    assert finding.quarantine is not None
    assert finding.quarantine.read_bytes() == before[torn:boundary]
    assert "may be torn" in str(outcome)


def test_a_straddling_frame_with_data_in_every_sector_is_whole(crashed: Crashed) -> None:
    """Crossing a page boundary is not damage."""
    straddling_last_frame(crashed.stream)
    crashed.write()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.REPAIRED, crashed.stream.position)


def test_a_sector_of_zeros_after_the_boundary_is_not_proof(crashed: Crashed) -> None:
    """Storage writes sectors: one empty sector after the boundary makes the frame doubtful."""
    torn = straddling_last_frame(crashed.stream)
    crashed.stream.frame(b"c" * 1300)
    crashed.stream.frame(b"c" * 1300)
    torn = straddling_last_frame(crashed.stream)
    while crashed.stream.position - (torn // 4096 + 1) * 4096 <= 600:
        torn = straddling_last_frame(crashed.stream)
    crashed.write()
    boundary = (torn // 4096 + 1) * 4096
    overwrite(crashed.segment(), boundary, bytes(512))
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.SUSPECT_TORN_TAIL, torn)


def test_a_checksum_proves_a_straddling_frame_of_zeros_whole(summed: Crashed) -> None:
    """With a checksum configured, the checksum decides, whatever the payload is."""
    summed.stream.message(b"a" * 4000)
    summed.stream.frame(bytes(1300))
    summed.write()
    outcome = summed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.REPAIRED, summed.stream.position)


def test_frames_with_bad_checksums_at_the_end_are_removed(summed: Crashed) -> None:
    """The last frames that fail are removed, within a page or across pages, and put in
    quarantine."""
    for _ in range(3):
        summed.stream.frame(b"a" * 64)
    end = summed.stream.frame(b"a" * 64)
    summed.stream.frame(b"a" * 64)
    summed.write()
    overwrite(summed.segment(), end + 40, b"?")
    overwrite(summed.segment(), end + 96 + 40, b"?")
    before = summed.segment().read_bytes()
    outcome = summed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.SUSPECT_TORN_TAIL, end)
    assert summed.segment().read_bytes() == before[:end] + bytes(SEGMENT_LENGTH - end)
    quarantine = outcome.findings[0].quarantine
    assert quarantine is not None
    assert quarantine.read_bytes() == before[end : end + 192].rstrip(b"\0")


def test_damage_before_the_end_is_reported_and_not_removed(summed: Crashed) -> None:
    """A failing frame followed by good ones stays, and so do they."""
    positions = [summed.stream.frame(b"a" * 64) for _ in range(5)]
    summed.write()
    overwrite(summed.segment(), positions[2] + 40, b"?")
    before = summed.segment().read_bytes()
    outcome = summed.refresh()
    assert outcome.outcome is Outcome.CHECKSUM_MISMATCH
    assert outcome.findings[0].position == positions[2]
    assert (outcome.stop_position, outcome.suspect) == (summed.stream.position, True)
    assert summed.segment().read_bytes() == before


def test_a_recording_without_checksums_is_not_emptied(crashed: Crashed) -> None:
    """Frames that hold their session id are judged by headers; the recording is not suspect."""
    for _ in range(5):
        crashed.stream.frame(b"a" * 64)
    crashed.write()
    crashed.checksum = "crc-32"
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (
        Outcome.REPAIRED,
        crashed.stream.position,
    )


def many_frames(stream: SegmentBuilder) -> list[int]:
    """Append frames, including padding over several pages; return where messages begin."""
    stream.mtu_length = 8192
    for _ in range(9):
        stream.message(b"\x5a" * 6000)
    stream.pad_term()
    for _ in range(5):
        stream.message(b"\x5a" * 6000)
    return [message.position for message in stream.messages]


def test_frames_in_a_hole_followed_by_good_ones_are_reported(crashed: Crashed) -> None:
    """A frame that lacks a page after a power cut is reported; padding has no body."""
    positions = many_frames(crashed.stream)
    crashed.write()
    punch(crashed.segment(), positions[9] - 100)
    lacking = next(each for each in positions[9:] if each % PAGE_LENGTH + 6032 > 2 * PAGE_LENGTH)
    punch(crashed.segment(), lacking - lacking % PAGE_LENGTH + PAGE_LENGTH)
    outcome = crashed.refresh()
    [finding] = outcome.findings
    assert finding.outcome is Outcome.TORN_FRAMES and outcome.suspect
    assert finding.position == lacking
    assert outcome.stop_position == crashed.stream.position


def test_frames_in_a_hole_at_the_end_go_to_quarantine(crashed: Crashed) -> None:
    """Frames that lack a page, with no good frame after them, are not recorded."""
    positions = many_frames(crashed.stream)
    crashed.write()
    for position in positions[-2:]:
        punch(crashed.segment(), position + PAGE_LENGTH)
    outcome = crashed.refresh()
    lacking = (positions[-2] // PAGE_LENGTH + 1) * PAGE_LENGTH
    assert outcome.stop_position == max(each for each in positions if each < lacking)
    assert outcome.outcome is Outcome.SUSPECT_TORN_TAIL


def test_a_hole_between_whole_frames_is_not_damage(crashed: Crashed) -> None:
    """Padding of which the recorder wrote only the header."""
    positions = many_frames(crashed.stream)
    crashed.write()
    punch(crashed.segment(), positions[9] - 100)
    outcome = crashed.refresh()
    assert outcome.outcome is Outcome.REPAIRED and not outcome.findings
    assert outcome.stop_position == crashed.stream.position


def test_ids_of_files_without_an_entry_are_not_assigned(crashed: Crashed) -> None:
    """A power cut removed entries but not the files: new recordings must not get these ids."""
    (crashed.path / f"{crashed.recording_id + 1}-0.rec").write_bytes(bytes(64))
    (crashed.path / f"aerotape-{crashed.recording_id + 3}.suspect").write_text("{}")
    (crashed.path / f"{1 << 62}-0.rec").write_bytes(bytes(64))
    refresh(crashed.catalog, crashed.path, now_ms=NOW_MS)
    added = [add_entry(crashed.catalog, crashed.stream) for _ in range(2)]
    assert added == [crashed.recording_id + 2, crashed.recording_id + 4]
    crashed.catalog.close()
    with Catalog.open(crashed.path) as catalog:
        assert list(catalog.recording_ids()) == [crashed.recording_id, *added]


def test_a_recording_without_segment_files_is_empty(crashed: Crashed) -> None:
    """Without any file the recording is empty, and the outcome says why."""
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.MISSING_SEGMENTS, 0)
    assert outcome.suspect


def test_a_missing_segment_is_reported_with_its_base_position(crashed: Crashed) -> None:
    """A gap does not change the end, and is reported."""
    while crashed.stream.position < 2 * SEGMENT_LENGTH + 1000:
        crashed.stream.frame(b"x" * 1000)
        if crashed.stream.position % 65_536 > 64_000:
            crashed.stream.pad_term()
    crashed.write()
    crashed.segment(SEGMENT_LENGTH).unlink()
    outcome = crashed.refresh()
    assert outcome.outcome is Outcome.MISSING_SEGMENTS
    assert (outcome.stop_position, outcome.suspect) == (crashed.stream.position, True)
    assert outcome.findings[0].position == SEGMENT_LENGTH
    again = crashed.refresh()
    assert (again.outcome, again.repaired) == (Outcome.MISSING_SEGMENTS, False)


def test_an_empty_segment_after_one_that_is_not_full_is_moved_away(crashed: Crashed) -> None:
    """The recording ends in the earlier file; the later one must not block an extension."""
    crashed.stream.frame(b"x" * 100)
    crashed.write()
    crashed.segment(SEGMENT_LENGTH).write_bytes(bytes(SEGMENT_LENGTH))
    first = crashed.segment().read_bytes()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (
        Outcome.SUSPECT_TORN_TAIL,
        crashed.stream.position,
    )
    assert not crashed.segment(SEGMENT_LENGTH).exists()
    assert crashed.segment().read_bytes() == first
    moved = [finding.quarantine for finding in outcome.findings if finding.quarantine]
    assert [path.stat().st_size for path in moved] == [SEGMENT_LENGTH]


def test_a_segment_truncated_within_a_frame_retains_its_whole_frames(crashed: Crashed) -> None:
    """A file shorter than the catalog's length is reported; the truncated frame is removed."""
    crashed.stream.frame(b"x" * 100)
    cut = crashed.stream.frame(b"y" * 1000)
    crashed.write()
    before = crashed.segment().read_bytes()
    os.truncate(crashed.segment(), cut + 500)
    outcome = crashed.refresh()
    assert {finding.outcome for finding in outcome.findings} == {
        Outcome.SUSPECT_TORN_TAIL,
        Outcome.SHORT_SEGMENT,
    }
    assert (outcome.stop_position, outcome.suspect) == (cut, True)
    assert crashed.segment().read_bytes() == before[:cut] + bytes(500)


def test_a_segment_truncated_between_frames_is_reported(crashed: Crashed) -> None:
    """There is no data after the end: the file is not changed, and the recording is suspect."""
    crashed.stream.frame(b"x" * 100)
    crashed.write()
    os.truncate(crashed.segment(), 160)
    before = crashed.files()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.SHORT_SEGMENT, 160)
    assert outcome.suspect
    assert crashed.segment().read_bytes() == before["0-0.rec"]


def test_a_segment_that_is_too_long_is_read_up_to_its_length(crashed: Crashed) -> None:
    """Bytes after the segment length are ignored and not changed."""
    crashed.fill_first_segment()
    crashed.write()
    with crashed.segment().open("ab") as file:
        file.write(b"\x40\0\0\0" * 64)
    before = crashed.files()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.LONG_SEGMENT, SEGMENT_LENGTH)
    assert not outcome.suspect
    assert crashed.files() == {**before, crashed.segment(SEGMENT_LENGTH).name: BLANK}


def test_foreign_files_are_reported_and_not_changed(crashed: Crashed) -> None:
    """Names that prevent the Java archive from starting, and segments without an entry, are
    ignored."""
    crashed.stream.frame(b"x" * 100)
    crashed.write()
    names = ["0--5.rec", "0-abc.rec", "0-00.rec", "notes.rec", "readme.txt", "9-0.rec", "x-1.rec"]
    for name in [*names, "0-96.rec"]:
        (crashed.path / name).write_bytes(b"foreign")
    outcomes = refresh(crashed.catalog, crashed.path, now_ms=NOW_MS)
    assert [outcome.recording_id for outcome in outcomes] == [0, -1]
    assert outcomes[0].stop_position == crashed.stream.position
    assert [f.path.name for f in outcomes[0].findings if f.path] == ["0-96.rec"]
    assert sorted(f.path.name for f in outcomes[1].findings if f.path) == sorted(
        set(names) - {"readme.txt"}
    )
    assert not any(outcome.suspect for outcome in outcomes)
    assert all((crashed.path / name).read_bytes() == b"foreign" for name in names)


def test_bytes_after_an_unwritten_frame_go_to_quarantine(crashed: Crashed) -> None:
    """A hole ends the recording; data after it could later be taken for recorded data."""
    crashed.stream.frame(b"x" * 100)
    hole = crashed.stream.frame(b"y" * 100)
    crashed.stream.frame(b"z" * 100)
    crashed.write()
    overwrite(crashed.segment(), hole, bytes(160))
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.SUSPECT_TORN_TAIL, hole)
    assert not any(crashed.segment().read_bytes()[hole:])
    quarantine = outcome.findings[0].quarantine
    assert quarantine is not None
    assert quarantine.read_bytes().endswith(b"z" * 100)


def test_a_frame_of_another_stream_ends_the_recording(crashed: Crashed) -> None:
    """A header with the wrong place or stream is not part of the recording."""
    crashed.stream.frame(b"x" * 100)
    foreign = crashed.stream.frame(b"y" * 100)
    crashed.write()
    overwrite(crashed.segment(), foreign + 16, b"\x01\0\0\0")
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.stop_position) == (Outcome.SUSPECT_TORN_TAIL, foreign)
    assert "stream id 1, expected 1001" in str(outcome)


def test_an_unreadable_segment_leaves_the_recording_unchanged(crashed: Crashed) -> None:
    """With a directory in place of the segment: reported, no stop position is set, no exception."""
    crashed.segment().mkdir()
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.suspect) == (Outcome.UNREADABLE, True)
    assert crashed.catalog.stop_position(0) == -1


def test_impossible_values_in_a_descriptor_do_not_affect_others(crashed: Crashed) -> None:
    """A term length of zero is reported; the next recording is still repaired."""
    add_entry(crashed.catalog, crashed.stream, segment_file_length=0, term_buffer_length=0)
    second = add_entry(crashed.catalog, crashed.stream)
    stream = SegmentBuilder(recording_id=second)
    stream.frame(b"x" * 10)
    stream.write(crashed.path)
    outcomes = refresh(crashed.catalog, crashed.path, now_ms=NOW_MS)
    assert [outcome.outcome for outcome in outcomes] == [
        Outcome.MISSING_SEGMENTS,
        Outcome.DAMAGED_DESCRIPTOR,
        Outcome.REPAIRED,
    ]
    assert outcomes[2].stop_position == 64


def test_a_suspect_mark_is_persistent_and_visible(crashed: Crashed) -> None:
    """The mark persists after the start that created it, is shown offline, and can be cleared."""
    crashed.stream.frame(b"x" * 100)
    torn = crashed.stream.frame(b"y" * 100)
    crashed.write()
    overwrite(crashed.segment(), torn, b"\xff\xff\xff\xff")
    crashed.refresh()
    again = crashed.refresh()
    assert (again.outcome, again.suspect) == (Outcome.CLEAN, True)
    (note,) = open_directory(crashed.path).recording(0).suspect_notes
    assert (note.outcome, note.position, note.timestamp_ms) == (
        "suspect torn tail",
        torn,
        NOW_MS,
    )
    assert (crashed.path / note.quarantine).is_file()
    clear_marks(crashed.path, 0)
    assert not crashed.refresh().suspect
    left = {path.name for path in crashed.path.iterdir() if path.name.startswith("aerotape-")}
    assert left <= {FOLDER_NAME}
    assert not list((crashed.path / FOLDER_NAME).iterdir())


def test_an_unreadable_mark_marks_the_recording(crashed: Crashed) -> None:
    """A damaged sidecar must not make a suspect recording look valid."""
    crashed.catalog.recording_stopped(0, 0, 5)
    (crashed.path / "aerotape-0.suspect").write_text('{"notes": [{"what": 1}]}')
    assert crashed.refresh().suspect
    assert "cannot be read" in open_directory(crashed.path).recording(0).suspect_notes[0].detail


@pytest.mark.parametrize(
    "wrong",
    [
        *({"position": [1]}, {"position": 1.5}, {"position": True}, {"position": 1 << 70}),
        *({"detail": 7}, {"accepted_timestamp_ms": "now"}, {"timestamp_ms": None}),
    ],
)
def test_a_note_of_other_types(crashed: Crashed, wrong: dict[str, Any]) -> None:
    """It marks the recording as an unreadable one does, after the notes that precede it."""
    note = {"outcome": "torn", "detail": "first", "position": 0, "timestamp_ms": 1}
    accepted = {**note, "accepted_timestamp_ms": 1}
    content = json.dumps({"notes": [accepted, {**note, **wrong}]})
    (crashed.path / "aerotape-0.suspect").write_text(content)
    first, second = open_directory(crashed.path).recording(0).suspect_notes
    assert (first.detail, first.is_accepted) == ("first", True)
    assert second.outcome == "unreadable mark" and f"{next(iter(wrong))} is" in second.detail
    assert suspect_ids(crashed.path) == {0}


def test_the_descriptor_checksum_follows_the_repair(summed: Crashed) -> None:
    """With a checksum configured, the repaired descriptor has the right one."""
    summed.stream.frame(b"a" * 64)
    summed.write()
    summed.refresh()
    assert summed.catalog.entry(0).checksum == summed.catalog.compute_checksum(0) != 0
    assert summed.catalog.entry(0).checksum == crc32(summed.catalog.entry(0).body)


def test_an_absurd_stop_position_is_checked_quickly(crashed: Crashed) -> None:
    """The highest possible end position is reported as quickly as any other; a higher one is
    invalid."""
    crashed.stream.frame(b"x" * 100)
    crashed.write()
    crashed.catalog.recording_stopped(0, 1 << 47, 5)
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.suspect) == (Outcome.MISSING_SEGMENTS, True)
    assert f"{(1 << 47) // SEGMENT_LENGTH - 1} segment files are missing" in str(outcome)
    crashed.catalog.recording_stopped(0, (1 << 47) + 32, 5)
    outcome = crashed.refresh()
    assert (outcome.outcome, outcome.suspect) == (Outcome.DAMAGED_DESCRIPTOR, True)


def test_many_recordings_are_repaired(tmp_path: Path) -> None:
    """Threads search for the ends of many recordings."""
    with Catalog.open(tmp_path, create=True) as catalog:
        for recording_id in range(8):
            stream = SegmentBuilder(recording_id=recording_id)
            for _ in range(10 * recording_id):
                stream.message(bytes([recording_id]) * 700)
            changes = {"stop_position": stream.position} if recording_id == 1 else {}
            if recording_id == 2:  # whose end must not be searched for
                changes["segment_file_length"] = 0
            add_entry(catalog, stream, **changes)
            if recording_id == 3:
                (tmp_path / "3-0.rec").mkdir()
            elif recording_id != 4:
                stream.write(tmp_path)
        found = refresh(catalog, tmp_path, now_ms=NOW_MS)
        stops = [catalog.stop_position(recording_id) for recording_id in range(5, 8)]
    assert [each.recording_id for each in found] == [0, *range(2, 8)]
    assert [each.outcome for each in found][1:] == [
        Outcome.DAMAGED_DESCRIPTOR,
        Outcome.UNREADABLE,
        Outcome.MISSING_SEGMENTS,
        *[Outcome.REPAIRED] * 3,
    ]
    assert stops == sorted(set(stops)) == [each.stop_position for each in found[4:]]
