"""`aerotape tool DIR export`, `import`, `diff`: recordings as files, directories compared."""

from __future__ import annotations

import hashlib
import shutil
from itertools import product
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.mark_files import in_use
from support.builders.segment_builder import SegmentBuilder, crc32
from support.daemon.command_line import aerotape, tool
from support.jvm.java import JavaArchive, JavaClient, archive_tool
from support.model.messages import digest

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.time_index.file import Provenance, time_index_path, write_time_index
from aerotape.catalog.time_index.points import TimePoint
from aerotape.replay.offline.directory import open_directory
from aerotape.times import TimeRange

CRC_32 = "io.aeron.archive.checksum.Crc32"


def make_stream(start_position: int = 65_536 + 96) -> SegmentBuilder:
    stream = SegmentBuilder(checksum=crc32, start_position=start_position)
    number = 0
    while stream.position < start_position + 2 * stream.segment_length:
        stream.message(number.to_bytes(4, "little") * (50 + 311 * (number % 5)))
        number += 1
    return stream


@pytest.fixture
def stream() -> SegmentBuilder:
    """Messages in three segments, the first and the last in part, with CRC-32."""
    return make_stream()


@pytest.fixture
def source(tmp_path: Path, stream: SegmentBuilder) -> Path:
    """A directory in which the stream is recording 1."""
    directory = tmp_path / "source"
    directory.mkdir()
    add_recording(directory, make_stream(0))
    add_recording(directory, stream)
    return directory


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A directory with recordings 0, 1 and 2, of which 1 was deleted and compacted away."""
    directory = tmp_path / "target"
    directory.mkdir()
    for _ in range(3):
        add_recording(directory, make_stream(0))
    with Catalog.open(directory, checksum="crc-32") as catalog:
        for entry in list(catalog.entries()):
            catalog.update_checksum(entry)
        catalog.change_state(1, RecordingState.DELETED)
    tool(directory, "compact", "--yes")
    return directory


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def payloads(directory: Path, recording_id: int) -> list[bytes]:
    recording = open_directory(directory).recording(recording_id)
    return [bytes(message.payload) for message in recording.messages(checksum="crc-32")]


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("options", "recording_id"), [([], 3), (["--keep-id"], 1), (["--id", "7"], 7)], ids=str
)
def test_a_recording_is_imported_into_another_directory(
    source: Path,
    target: Path,
    tmp_path: Path,
    stream: SegmentBuilder,
    options: list[str],
    recording_id: int,
) -> None:
    """The copy has the next id, its own, or any free one; ArchiveTool and diff find it equal."""
    file = tmp_path / "recording"
    export = ["tool", str(source), "export", "1", str(file), "-checksum", CRC_32]
    aerotape(*export, "--dry-run")
    assert not file.exists()
    aerotape(*export)
    command = ["tool", str(target), "import", str(file), *options, "--json"]
    before = content_of(target)
    assert aerotape(*command, "--dry-run").json["recording_id"] == recording_id
    assert content_of(target) == before
    assert aerotape(*command).json["recording_id"] == recording_id
    assert payloads(target, recording_id) == [message.payload for message in stream.messages]
    ids = sorted({0, 2, recording_id})
    with Catalog.open(target, read_only=True) as catalog:
        assert list(catalog.recording_ids()) == ids
        assert catalog.next_recording_id == max(3, recording_id + 1)
    verified = archive_tool(target, "verify", "-a", "-checksum", CRC_32, answers="n\n")
    for each in ids:
        assert f"(recordingId={each}) OK" in verified.stdout, verified.stdout
    assert {p.name for p in target.iterdir() if not p.name.endswith(".rec")} == {"archive.catalog"}
    again = tmp_path / "again"
    tool(target, "export", recording_id, again)
    if recording_id == 1:
        assert again.read_bytes() == file.read_bytes()
        tool(source, "diff", target, "1")


@pytest.mark.jvm
def test_the_java_archive_replays_an_imported_recording(
    source: Path, target: Path, tmp_path: Path, stream: SegmentBuilder, aeron_dir: Path
) -> None:
    """From its own directory, in which it recorded nothing itself."""
    tool(source, "export", "1", tmp_path / "file")
    tool(target, "import", tmp_path / "file", "--keep-id")
    expected = [message.payload for message in stream.messages]
    java = {"aeron.archive.replay.checksum": CRC_32}
    with (
        JavaArchive(target, aeron_dir, properties=java) as archive,
        JavaClient(aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        start, length = stream.start_position, stream.position - stream.start_position
        replay = client.call("replay", 1, start, length, "aeron:ipc?term-length=64k", 99)
        polled = client.poll(replay, len(expected) + 1)
    assert (polled["ended"], polled["digest"]) == (True, digest(expected))


@pytest.mark.parametrize(
    ("how", "where"),
    [
        *product(["cut short", "altered"], [3, 9, 13, 40, 500, 5000, -40, -1]),
        ("bytes after its end", 0),
    ],
)
def test_a_file_that_is_not_whole_is_refused(
    source: Path, target: Path, tmp_path: Path, where: int, how: str
) -> None:
    """Truncated or altered anywhere, in prefix, header, content or digest: nothing has changed."""
    file = tmp_path / "recording"
    tool(source, "export", "1", file)
    data = bytearray(file.read_bytes())
    if how == "altered":
        data[where] ^= 1
    elif how == "cut short":
        del data[where:]
    else:
        data += b"x"
    file.write_bytes(data)
    before = content_of(target)
    for options in ([], ["--dry-run"]):
        error = tool(target, "import", file, *options, expect=1).err
        assert "cannot be imported" in error
        assert how != "bytes after its end" or how in error
        assert len(error.splitlines()) == 1
        assert content_of(target) == before
        assert not (target / "aerotape-import").exists()


# ---- with the time index -------------------------------------------------------------------------


def put_index(source: Path, stream: SegmentBuilder) -> list[TimePoint]:
    """Write a time index for the recording, with a point after each message."""
    begin_ns = 1_600_000_000 * 10**9
    points = [TimePoint(begin_ns, stream.start_position, stream.session_id)]
    for message in stream.messages:
        time_ns = points[-1].time_ns + 10**9
        points.append(TimePoint(time_ns, message.end_position, stream.session_id))
    with Catalog.open(source, read_only=True) as catalog:
        provenance = Provenance.of(catalog.entry(1))
    write_time_index(time_index_path(source, 1), provenance, points)
    return points


@pytest.mark.parametrize("options", [[], ["--keep-id"]], ids=str)
def test_times_are_found_in_a_recording_that_was_imported(
    source: Path, target: Path, tmp_path: Path, stream: SegmentBuilder, options: list[str]
) -> None:
    points = put_index(source, stream)
    file = tmp_path / "recording"
    tool(source, "export", "1", file)
    tool(target, "import", file, *options)
    recording = open_directory(target).recording(1 if options else 3)
    index = recording.time_index
    assert (list(index.points), index.problem) == (points, "")
    times = TimeRange(points[7].time_ns, points[9].time_ns)
    assert index.positions(times) == open_directory(source).recording(1).time_index.positions(times)
    again = tmp_path / "again"
    recording_id = str(recording.recording_id)
    tool(target, "export", recording_id, again)
    if options:
        assert again.read_bytes() == file.read_bytes()


def test_a_file_without_a_time_index_is_of_the_first_version(
    source: Path, tmp_path: Path, stream: SegmentBuilder
) -> None:
    """Older programs can read it; a file with an index is of the second version, which they
    refuse."""
    versions = []
    for name in ("without", "with"):
        tool(source, "export", "1", tmp_path / name)
        versions.append((tmp_path / name).read_bytes()[8:12])
        put_index(source, stream)
    assert versions == [b"\1\0\0\0", b"\2\0\0\0"]


@pytest.mark.parametrize("how", ["cut short", "damaged", "too long"])
def test_a_file_with_a_damaged_time_index_is_refused(
    source: Path, target: Path, tmp_path: Path, stream: SegmentBuilder, how: str
) -> None:
    points = put_index(source, stream)
    file = tmp_path / "recording"
    tool(source, "export", "1", file)
    data = bytearray(file.read_bytes())
    length = b'"time_points_length": %d' % (32 * len(points))
    assert data.count(length) == 1
    if how == "cut short":
        del data[-200:-32]
    elif how == "too long":
        longer = b'"time_points_length": %d' % (1 << 40)
        data[12:16] = (int.from_bytes(data[12:16], "little") + len(longer) - len(length)).to_bytes(
            4, "little"
        )
        data = data.replace(length, longer)
    else:
        data[-32 - 100] ^= 1
        data[-32:] = hashlib.sha256(data[:-32]).digest()
    file.write_bytes(data)
    before = content_of(target)
    for options in ([], ["--dry-run"]):
        error = tool(target, "import", file, *options, expect=1).err
        assert "cannot be imported" in error
        assert ("time index" in error) == (how in ("damaged", "too long"))
        assert content_of(target) == before


def test_a_damaged_time_index_is_omitted_with_a_warning(
    source: Path, target: Path, tmp_path: Path, stream: SegmentBuilder
) -> None:
    put_index(source, stream)
    path = time_index_path(source, 1)
    path.write_bytes(path.read_bytes()[:200] + bytes(64) + path.read_bytes()[264:])
    file = tmp_path / "recording"
    assert "is damaged" in tool(source, "export", "1", file).err
    tool(target, "import", file)
    assert len(open_directory(target).recording(3).time_index.points) == 0


def test_an_id_that_is_taken_is_refused(source: Path, target: Path, tmp_path: Path) -> None:
    """By a recording of any state, or by a file that would become part of it."""
    file = tmp_path / "recording"
    tool(source, "export", "1", file)
    before = content_of(target)
    assert "there is a recording 2" in tool(target, "import", file, "--id", "2", expect=1).err
    (target / "1-131072.rec").write_bytes(b"mine")
    assert "belongs to no recording" in tool(target, "import", file, "--keep-id", expect=1).err
    (target / "1-131072.rec").unlink()
    assert content_of(target) == before


def test_files_of_a_lost_catalog_are_not_changed(source: Path, tmp_path: Path) -> None:
    """An import gets an id that is in no file name, and so does the next recording."""
    file = tmp_path / "recording"
    tool(source, "export", "1", file)
    directory = tmp_path / "lost"
    for name in ("4-1700000000000", "6-1700000000000"):
        (directory / "aerotape-quarantine" / name).mkdir(parents=True)
    # Ids are assigned in order: 5 is the first free one, 7 the next one.
    for name in (
        "0-0.rec",
        "1-65536.rec.del",
        "aerotape-2.time-index",
        "aerotape-3.suspect",
        "9223372036854775807-0.rec",
    ):
        (directory / name).write_bytes(b"of the lost catalog")
    with Catalog.open(directory, create=True):
        pass
    before = content_of(directory)
    for options in (["--dry-run"], []):
        assert tool(directory, "import", file, "--json", *options).json["recording_id"] == 5
    assert payloads(directory, 5) == payloads(source, 1)
    after = content_of(directory)
    catalog = str(directory / "archive.catalog")
    assert {path: after[path] for path in before if path != catalog} == {
        path: data for path, data in before.items() if path != catalog
    }
    tool(directory, "import", file)
    assert payloads(directory, 7) == payloads(source, 1)


def test_a_damaged_recording_is_not_exported(source: Path, tmp_path: Path) -> None:
    """The position is reported; and an export does not replace a file."""
    file = tmp_path / "recording"
    file.write_bytes(b"mine")
    assert "exists: name another file" in tool(source, "export", "1", file, expect=1).err
    assert file.read_bytes() == b"mine"
    file.unlink()
    path = source / "1-196608.rec"
    data = bytearray(path.read_bytes())
    data[8] ^= 0x20
    path.write_bytes(data)
    assert "damaged at position 196608" in tool(source, "export", "1", file, expect=1).err
    path.unlink()
    assert "there is no 1-196608.rec" in tool(source, "export", "1", file, expect=1).err
    assert [each.name for each in tmp_path.iterdir()] == ["source"]


def test_an_import_is_refused_while_an_archive_uses_the_directory(
    source: Path, target: Path, tmp_path: Path
) -> None:
    """An export is not refused: of a live recording it contains the current data."""
    file = tmp_path / "recording"
    with Catalog.open(source) as catalog:
        catalog.set_stop_position(1, -1)
    with in_use(source):
        tool(source, "export", "1", file)
    with in_use(target):
        before = content_of(target)
        assert "in use" in tool(target, "import", file, expect=1).err
        assert content_of(target) == before
    tool(target, "import", file)
    assert payloads(target, 3) == payloads(source, 1)


def test_differences_are_reported(source: Path, tmp_path: Path) -> None:
    """Descriptors, positions and bytes are compared; recordings in one directory are named."""
    other = shutil.copytree(source, tmp_path / "other")
    command = ["tool", str(source), "diff", str(other), "--json"]
    assert [row["same"] for row in aerotape(*command).json] == [True, True]
    path = other / "0-131072.rec"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    with Catalog.open(other) as catalog:
        position = catalog.stop_position(1)
        catalog.set_stop_position(1, position - 64)
    add_recording(other, make_stream(0))
    first, second, third = aerotape(*command, expect=1).json
    assert (first["position"], first["fields"]) == (131_072 + 1000, {})
    assert "0-131072.rec, offset 1000" in first["detail"]
    assert second["fields"] == {"stop_position": [position, position - 64]}
    assert (second["position"], second["same"]) == (-1, False)
    assert (third["recording_id"], third["only_in"]) == (2, 2)
    assert "no recording with id 9" in tool(source, "diff", other, "9", expect=1).err
    assert "checksum" not in first["detail"]
    text = tool(source, "diff", other, expect=1).out
    assert "recording 2: only in" in text
    tool(other, "checksum", "Crc32c", "1", "-a")
    text = tool(source, "diff", other, "1", expect=1).out
    assert "session id of a frame, which holds the frame's checksum" in text
    path.unlink()
    assert "not compared" in tool(source, "diff", other, "0", expect=1).out
