"""`aerotape tool DIR repair`: valid data stays readable, damaged data is copied to quarantine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.offline_directory import content
from support.builders.segment_builder import BuiltMessage, SegmentBuilder, crc32
from support.jvm.java import JavaArchive, JavaClient, archive_tool
from support.model.messages import digest

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.refresh import refresh
from aerotape.replay.offline.directory import open_directory
from aerotape.tools._cli.main import main

SEGMENT_LENGTH = 131_072


@pytest.fixture
def stream() -> SegmentBuilder:
    """Messages of one to five frames in four segments, the last one in part, with CRC-32."""
    stream = SegmentBuilder(checksum=crc32, start_position=96)
    number = 0
    while stream.position < 3 * stream.segment_length + 9000:
        stream.message(number.to_bytes(4, "little") * (50 + 311 * (number % 5)))
        number += 1
    return stream


@pytest.fixture
def archive(tmp_path: Path, stream: SegmentBuilder) -> Path:
    """A directory with this recording and a valid one at a lower and at a higher id."""
    directory = tmp_path / "archive"
    directory.mkdir()
    others = [SegmentBuilder(stream_id=stream_id, checksum=crc32) for stream_id in (5, 6)]
    for other in (others[0], stream, others[1]):
        if other is not stream:
            other.message(b"untouched" * 500)
        add_recording(directory, other)
    with Catalog.open(directory, checksum="crc-32") as catalog:
        for entry in list(catalog.entries()):
            catalog.update_checksum(entry)
    return directory


def overwrite(archive: Path, position: int, data: bytes) -> None:
    base = position - position % SEGMENT_LENGTH
    with (archive / f"1-{base}.rec").open("r+b") as file:
        file.seek(position - base)
        file.write(data)


def run(
    archive: Path, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 3
) -> dict[str, Any]:
    """Repair the recording, after a dry run that must report the same and change nothing."""
    before = content_of(archive)
    command = ["tool", str(archive), "repair", "1", *arguments, "--json"]
    assert main([*command, "--dry-run"]) == code
    (dry,) = json.loads(capsys.readouterr().out)
    assert content_of(archive) == before
    assert main(command) == code
    (done,) = json.loads(capsys.readouterr().out)
    varying = {"dry_run", "quarantine", "repaired"}
    assert {k: v for k, v in dry.items() if k not in varying} == {
        k: v for k, v in done.items() if k not in varying
    }
    assert main(command) == 0
    (again,) = json.loads(capsys.readouterr().out)
    assert (again["ok"], again["damages"]) == (True, [])
    result: dict[str, Any] = done
    return result


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def served(archive: Path, recording_id: int = 1) -> list[tuple[int, bytes]]:
    messages = open_directory(archive).recording(recording_id).messages(checksum="crc-32")
    return [(message.position, bytes(message.payload)) for message in messages]


def outside(stream: SegmentBuilder, begin: int, end: int) -> list[tuple[int, bytes]]:
    """Return the messages outside of a range of positions."""

    def is_whole(message: BuiltMessage) -> bool:
        return message.end_position <= begin or message.position >= end

    return [(m.position, m.payload) for m in stream.messages if is_whole(m)]


def is_sound(archive: Path) -> None:
    """ArchiveTool finds no damage, and the other recordings are unchanged."""
    verified = archive_tool(
        archive, "verify", "-a", "-checksum", "io.aeron.archive.checksum.Crc32", answers="n\n"
    )
    assert "(recordingId=1) OK" in verified.stdout, verified.stdout
    for recording_id in (0, 2):
        assert [payload for _, payload in served(archive, recording_id)] == [b"untouched" * 500]


def quarantined(archive: Path, result: dict[str, Any]) -> dict[str, bytes]:
    """Return the files in quarantine, by name; its note must have each name."""
    folder = Path(result["quarantine"])
    assert folder.parent == archive / "aerotape-quarantine"
    note = json.loads((folder / "note.json").read_text())
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "note.json"}
    assert {c["copy"] for c in note["copies"]} | set(note["segment_files"]) == set(files)
    assert note["damages"]
    assert note["timestamp_ms"] > 0
    return files


@pytest.mark.jvm
def test_a_bad_middle_becomes_padding(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """All frames around the damage keep their positions; the damaged data is in quarantine."""
    frames = sorted(stream.frames)
    begin, end = frames[100], frames[104]
    damaged = b"\xee" * (end - begin)
    overwrite(archive, begin, damaged)
    result = run(archive, capsys)
    assert result["filled"] == [{"position": begin, "length": end - begin}]
    assert result["stop_position"] == stream.position
    assert served(archive) == outside(stream, begin, end)
    assert list(quarantined(archive, result).values()) == [damaged]
    assert open_directory(archive).recording(1).suspect_notes
    is_sound(archive)


@pytest.mark.jvm
def test_a_frame_that_fails_its_checksum_becomes_padding(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only when checksums are verified, because the frame is valid otherwise."""
    position = sorted(stream.frames)[60]
    overwrite(archive, position + 40, b"\xee")
    assert main(["tool", str(archive), "repair"]) == 0
    capsys.readouterr()
    run(archive, capsys, "-checksum", "crc-32")
    assert served(archive) == outside(stream, position, position + 64)
    is_sound(archive)


@pytest.mark.jvm
def test_a_bad_end_is_cut_off(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recording ends after its last valid frame; the rest is in quarantine and zeroed."""
    frames = sorted(stream.frames)
    begin = next(frame for frame in frames if frame > 2 * SEGMENT_LENGTH + 20_000)
    last = archive / f"1-{3 * SEGMENT_LENGTH}.rec"
    middle = archive / f"1-{2 * SEGMENT_LENGTH}.rec"
    last_data = last.read_bytes()
    overwrite(archive, begin, bytes(3 * SEGMENT_LENGTH - begin))
    overwrite(archive, begin + 40, b"left")
    overwrite(archive, 3 * SEGMENT_LENGTH, b"\xee" * SEGMENT_LENGTH)
    result = run(archive, capsys)
    assert result["stop_position"] == begin
    assert served(archive) == outside(stream, begin, stream.position)
    files = quarantined(archive, result)
    assert files[last.name] == b"\xee" * SEGMENT_LENGTH != last_data
    assert not last.exists()
    assert any(data[40:44] == b"left" for data in files.values())
    assert not any(middle.read_bytes()[begin - 2 * SEGMENT_LENGTH :])
    is_sound(archive)


@pytest.mark.jvm
def test_with_cut_the_recording_ends_before_the_first_damage(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """The valid data after it is preserved, byte for byte."""
    begin = next(frame for frame in sorted(stream.frames) if frame > SEGMENT_LENGTH + 999)
    overwrite(archive, begin + 8, b"\xee")
    before = {p.name: p.read_bytes() for p in archive.glob("1-*.rec")}
    result = run(archive, capsys, "--cut")
    assert (result["stop_position"], result["filled"]) == (begin, [])
    files = quarantined(archive, result)
    for number in (2, 3):
        name = f"1-{number * SEGMENT_LENGTH}.rec"
        assert files.pop(name) == before[name]
    [(name, data)] = files.items()
    assert name.startswith(f"1-{SEGMENT_LENGTH}.rec.{begin - SEGMENT_LENGTH}-")
    assert data == before[f"1-{SEGMENT_LENGTH}.rec"][begin - SEGMENT_LENGTH :].rstrip(b"\0")
    is_sound(archive)


@pytest.mark.jvm
@pytest.mark.parametrize("number", [1, 2])
def test_a_missing_segment_is_replaced_by_padding(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """In frames that a replay can send, none of them across the end of a term."""
    base = number * SEGMENT_LENGTH
    (archive / f"1-{base}.rec").unlink()
    result = run(archive, capsys)
    assert result["filled"] == [{"position": base, "length": SEGMENT_LENGTH}]
    assert served(archive) == outside(stream, base, base + SEGMENT_LENGTH)
    is_sound(archive)


@pytest.mark.jvm
def test_a_truncated_segment_is_filled(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has its full length again, and the frames of the next one follow."""
    path = archive / f"1-{SEGMENT_LENGTH}.rec"
    begin = next(frame for frame in sorted(stream.frames) if frame > SEGMENT_LENGTH + 50_000)
    with path.open("r+b") as file:
        file.truncate(begin - SEGMENT_LENGTH + 100)
    run(archive, capsys)
    assert served(archive) == outside(stream, begin, 2 * SEGMENT_LENGTH)
    assert path.stat().st_size == SEGMENT_LENGTH
    is_sound(archive)


@pytest.mark.jvm
@pytest.mark.parametrize("cause", ["the last file is gone", "truncated by the Java archive"])
def test_a_recording_that_ends_with_a_segment_has_an_empty_next_file(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str], cause: str
) -> None:
    """As recorders leave it: verify checks for it, and accepts the recording."""
    end = 3 * SEGMENT_LENGTH
    last = archive / f"1-{end}.rec"
    last.unlink()
    if cause.startswith("truncated"):
        with Catalog.open(archive, checksum="crc-32") as catalog:
            catalog.set_stop_position(1, end)
        result = run(archive, capsys, code=0)
        assert (result["repaired"], result["quarantine"]) == (True, None)
    else:
        result = run(archive, capsys)
        assert result["damages"][0]["position"] == end
    assert (result["stop_position"], result["segment_files_made"]) == (end, [last.name])
    assert last.read_bytes() == bytes(SEGMENT_LENGTH)
    assert served(archive) == outside(stream, end, stream.position)
    assert main(["tool", str(archive), "verify", "-a", "-checksum", "crc-32", "--json"]) in (0, 3)
    assert [row["marked"] for row in json.loads(capsys.readouterr().out)] == [None] * 3
    is_sound(archive)


@pytest.mark.jvm
def test_segments_missing_at_the_beginning_move_the_start(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if they had been purged."""
    (archive / "1-0.rec").unlink()
    result = run(archive, capsys)
    assert result["start_position"] == SEGMENT_LENGTH
    assert served(archive) == outside(stream, 0, SEGMENT_LENGTH)
    is_sound(archive)


@pytest.mark.jvm
def test_a_recording_without_stop_position_gets_one(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damage in earlier segments, which a start does not check, does not move it."""
    with Catalog.open(archive, checksum="crc-32") as catalog:
        catalog.set_stop_position(1, -1)
    begin = sorted(stream.frames)[30]
    overwrite(archive, begin, bytes(64))
    overwrite(archive, stream.position, b"torn")
    result = run(archive, capsys)
    assert result["stop_position"] == stream.position
    assert served(archive) == outside(stream, begin, begin + 64)
    assert b"torn" in quarantined(archive, result).values()
    is_sound(archive)


def test_a_valid_hidden_recording_is_restored_only_by_its_id(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tool", str(archive), "mark-invalid", "1"]) == 0
    capsys.readouterr()
    before = content_of(archive)
    assert main(["tool", str(archive), "repair"]) == 0
    assert "recording 1: INVALID but not damaged: use mark-valid" in capsys.readouterr().out
    assert main(["tool", str(archive), "repair", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)[1]
    assert (row["state"], row["stays_hidden"], row["repaired"]) == ("INVALID", True, False)
    assert content_of(archive) == before
    assert main(["tool", str(archive), "repair", "1"]) == 0
    assert len(served(archive)) > 0


def test_a_recording_without_valid_data_is_not_changed(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All files missing, or no frame of this stream. It may have a checksum of the other kind."""
    before = content_of(archive)
    assert main(["tool", str(archive), "repair", "1", "-checksum", "crc-32c"]) == 0
    assert capsys.readouterr().out == "recording 1: OK\n"
    assert content_of(archive) == before
    with Catalog.open(archive) as catalog:
        offset = catalog.entry(1).offset + 32 + 76
    data = bytearray((archive / "archive.catalog").read_bytes())
    data[offset : offset + 4] = (77).to_bytes(4, "little")
    (archive / "archive.catalog").write_bytes(data)
    before = content_of(archive)
    assert main(["tool", str(archive), "repair", "1"]) == 3
    assert "none of its frames is good" in capsys.readouterr().out
    assert content_of(archive) == before
    for path in archive.glob("1-*.rec"):
        path.unlink()
    assert main(["tool", str(archive), "repair", "1"]) == 3
    assert "no segment files" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bit", "started"), [(16, False), (17, False), (45, False), (16, True), (45, True)]
)
def test_a_damaged_start_position_does_not_make_a_recording_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bit: int, started: bool
) -> None:
    """One bit of it is wrong, and it has no stop position unless an archive has started since.

    An empty recording after a detached segment then looks the same for one of the bits.
    """
    stream = SegmentBuilder()
    stream.message(b"good" * 500)
    wrong = 1 << bit
    add_recording(tmp_path, stream, live=True)
    with Catalog.open(tmp_path) as catalog:
        catalog.set_start_position(0, wrong)
    if started:
        with Catalog.open(tmp_path) as catalog:
            [outcome] = refresh(catalog, tmp_path, now_ms=1)
        [finding] = outcome.findings[:1] if bit == 45 else outcome.findings[1:]
        assert "is its start position right?" in finding.detail and finding.suspect
    before = content(tmp_path)
    told = (
        f"no segment file of a recording that starts at position {wrong} can be one of the 1 that "
        "are there, the last of which is 0-0.rec: is its start position right?"
    )
    for command in (["verify", "--dry-run"], ["repair", "--dry-run"], ["repair"]):
        assert main(["tool", str(tmp_path), *command]) == 3
        assert told in capsys.readouterr().out
    assert main(["tool", str(tmp_path), "repair", "--json"]) == 3
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["ok"], row["repaired"], row["refused"]) == (False, False, told)
    assert content(tmp_path) == before


@pytest.mark.jvm
def test_the_java_archive_replays_a_repaired_recording(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str], aeron_dir: Path
) -> None:
    """Over a gap within a term and one of a whole segment, with verified checksums."""
    frames = sorted(stream.frames)
    begin, end = frames[10], frames[12]
    overwrite(archive, begin, bytes(end - begin))
    (archive / f"1-{2 * SEGMENT_LENGTH}.rec").unlink()
    run(archive, capsys)
    expected = [payload for _, payload in served(archive)]
    assert len(expected) > 50
    java = {"aeron.archive.replay.checksum": "io.aeron.archive.checksum.Crc32"}
    with (
        JavaArchive(archive, aeron_dir, properties=java) as java_archive,
        JavaClient(aeron_dir) as client,
    ):
        client.connect(java_archive.control_channel)
        length = stream.position - stream.start_position
        replay = client.call("replay", 1, 96, length, "aeron:ipc?term-length=64k", 99)
        polled = client.poll(replay, len(expected) + 1)
    assert (polled["ended"], polled["count"]) == (True, len(expected))
    assert polled["digest"] == digest(expected)


def test_states_of_other_recordings_are_unchanged(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deleted recordings are ignored; a directory without damage has exit code 0."""
    with Catalog.open(archive) as catalog:
        catalog.change_state(0, RecordingState.DELETED)
    assert main(["tool", str(archive), "repair"]) == 0
    assert capsys.readouterr().out == "recording 1: OK\nrecording 2: OK\n"
    assert main(["tool", str(archive), "repair", "9"]) == 1


def test_data_that_verify_put_after_the_end_is_preserved(
    archive: Path, stream: SegmentBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends a recording where a page is lost, as ArchiveTool does: an extension would overwrite
    the valid frames after it, without a copy."""
    base = 3 * SEGMENT_LENGTH
    [gap, *behind] = [m for m in stream.messages if m.position >= base + 1000]
    overwrite(archive, gap.position, bytes(gap.end_position - gap.position))
    main(["tool", str(archive), "verify", "1", "-a"])
    with Catalog.open(archive, read_only=True) as catalog:
        assert catalog.stop_position(1) == gap.position
    capsys.readouterr()
    done = run(archive, capsys)
    assert done["stop_position"] == gap.position
    [copy] = (archive / "aerotape-quarantine").glob(f"1-*/1-{base}.rec.*")
    for message in behind:
        assert stream.frames[message.position] in copy.read_bytes()
    path = archive / f"1-{base}.rec"
    assert not any(path.read_bytes()[gap.position - base :])
