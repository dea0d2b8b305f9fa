"""The time index of recordings that our archive, the Java archive and ArchiveTool change.

Messages bear the times at which the test has published them and seen them recorded. Whatever is
done to a directory, and by whom, the index must not say anything else of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.builders.streams import record, signals_until
from support.builders.timed_directory import build
from support.builders.timed_stream import DENSE, TimedStream
from support.daemon.archives import KINDS
from support.daemon.daemon import AerotapeArchive, age_mark_file
from support.daemon.recording import wait_until
from support.jvm.java import JavaArchive, JavaClient, archive_tool

import aerotape
from aerotape.catalog.time_index.file import time_index_path
from aerotape.times import format_time
from aerotape.tools._cli.main import main

StartArchive = Callable[..., AerotapeArchive | JavaArchive]
CRC_32C = {"aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32c"}
SEGMENT = 65_536


@pytest.fixture
def stream(tmp_path: Path) -> TimedStream:
    return TimedStream(tmp_path / "archive")


@contextmanager
def served(
    start_archive: StartArchive, kind: str, properties: dict[str, str] | None = None
) -> Iterator[aerotape.ArchiveClient]:
    """A client of a running archive, which is stopped afterwards."""
    own = DENSE if kind == "aerotape" else {}
    with (
        start_archive(kind, properties={**own, **(properties or {})}) as archive,
        archive.connect() as client,
    ):
        yield client


def more_points(stream: TimedStream, count: int) -> Callable[[], bool]:
    """Return a condition: the index has this many more points, messages fill two segments."""
    wanted = count + (0 if stream.recording_id < 0 else stream.points())
    return lambda: stream.points() >= wanted and stream.sent[-1].position > 2 * SEGMENT


def two_parts(client: aerotape.ArchiveClient, stream: TimedStream) -> int:
    """Record messages twice; return a time between the two."""
    publication = stream.record(client, more_points(stream, 20), stop=False)
    middle_ns = time.time_ns()
    wanted = stream.points() + 20
    while stream.points() < wanted:
        stream.burst(client, publication)
    client.stop_recording("aeron:ipc?term-length=64k", stream.stream_id)
    return middle_ns


@pytest.mark.parametrize("properties", [{}, CRC_32C], ids=["plain", "crc-32c"])
def test_messages_since_a_time_are_found(
    start_archive: StartArchive, stream: TimedStream, properties: dict[str, str]
) -> None:
    with served(start_archive, "aerotape", properties) as client:
        middle_ns = two_parts(client, stream)
        stream.assert_bounds_hold()  # also while it is recorded
    stream.assert_bounds_hold()
    index = stream.look().time_index
    assert (index.source, index.problem) == ("recorded", "")
    assert index.points[0].position == 0
    assert index.points[-1].position == stream.look().recorded_position
    later = [each.position for each in stream.sent if each.begun_ns >= middle_ns]
    found = stream.positions_since(middle_ns)
    assert set(later) <= set(found)
    assert len(found) < len(stream.sent), "not everything"
    early = [message.position for message in stream.look().messages(to_time=middle_ns)]
    assert set(early) >= {each.position for each in stream.sent} - set(later)
    assert len(early) < len(stream.sent)


@pytest.mark.jvm
@pytest.mark.parametrize("properties", [{}, CRC_32C], ids=["plain", "crc-32c"])
def test_java_truncates_and_extends_and_then_our_archive_extends(
    start_archive: StartArchive, stream: TimedStream, properties: dict[str, str]
) -> None:
    with served(start_archive, "aerotape", properties) as client:
        stream.record(client, more_points(stream, 30))
    before = list(stream.look().time_index.points)
    content = time_index_path(stream.archive_dir, stream.recording_id).read_bytes()
    cut = stream.sent[len(stream.sent) * 2 // 3].position
    with served(start_archive, "java", properties) as client:
        client.truncate_recording(stream.recording_id, cut)
        stream.cut(cut)
        stream.record(client, lambda: stream.sent[-1].position > before[-1].position)
    path = time_index_path(stream.archive_dir, stream.recording_id)
    assert path.read_bytes() == content, "Java leaves it alone"
    stream.assert_bounds_hold()
    remaining = list(stream.look().time_index.points)
    assert remaining == before[: len(remaining)]
    assert all(point.position <= cut for point in remaining)
    assert remaining[-1].position > 0
    with served(start_archive, "aerotape", properties) as client:
        stream.record(client, more_points(stream, 10))
    stream.assert_bounds_hold()
    index = stream.look().time_index
    assert index.problem == ""
    assert list(index.points[: len(remaining)]) == remaining
    assert index.points[-1].position == stream.look().recorded_position


@pytest.mark.jvm
def test_java_extends_with_the_same_session_id_after_a_truncation(
    start_archive: StartArchive, stream: TimedStream
) -> None:
    """Only the modification times of the segment files show the change."""
    with served(start_archive, "aerotape") as client:
        stream.record(client, more_points(stream, 30))
    session_id = stream.look().descriptor.session_id
    before = list(stream.look().time_index.points)
    cut = next(each.position for each in stream.sent if each.position > SEGMENT + 5_000)
    with served(start_archive, "java") as client:
        client.truncate_recording(stream.recording_id, cut)
        stream.cut(cut)
        until = lambda: stream.sent[-1].position > before[-1].position  # noqa: E731
        stream.record(client, until, session_id=session_id)
    assert stream.look().descriptor.session_id == session_id
    stream.assert_bounds_hold()
    remaining = stream.look().time_index.points
    assert list(remaining) == [point for point in before if point.position <= SEGMENT]


def test_our_archive_truncates_extends_and_purges(
    start_archive: StartArchive, stream: TimedStream
) -> None:
    path = stream.archive_dir / "aerotape-0.time-index"
    with served(start_archive, "aerotape") as client:
        stream.record(client, more_points(stream, 30))
        cut = stream.sent[len(stream.sent) // 2].position
        # An extension is refused until the segment files are deleted.
        with client.signals(aerotape.RecordingSignal.DELETE) as deleted:
            client.truncate_recording(0, cut)
            next(deleted)
        stream.cut(cut)
        stream.assert_bounds_hold()
        assert stream.look().time_index.points[-1].position <= cut
        stream.record(client, more_points(stream, 10))
        stream.assert_bounds_hold()
        assert stream.look().time_index.problem == ""
        full = path.stat().st_size
        with client.signals(aerotape.RecordingSignal.DELETE) as deleted:
            client.purge_segments(0, SEGMENT)
            next(deleted)
        assert path.stat().st_size < full
        stream.assert_bounds_hold()
        with client.signals(aerotape.RecordingSignal.DELETE) as deleted:
            client.purge_recording(0)
            next(deleted)
        assert not path.exists()


@pytest.mark.jvm
def test_java_purges_and_our_archive_deletes_the_index(
    start_archive: StartArchive, stream: TimedStream
) -> None:
    path = stream.archive_dir / "aerotape-0.time-index"
    with served(start_archive, "aerotape") as client:
        stream.record(client, more_points(stream, 10))
    with served(start_archive, "java") as client:
        client.purge_segments(0, SEGMENT)
        stream.assert_bounds_hold()
        client.purge_recording(0)
        assert path.exists()
    with served(start_archive, "aerotape") as client:
        wait_until(lambda: not path.exists(), "the removal of the index")
        fresh = TimedStream(stream.archive_dir)
        fresh.record(client, more_points(fresh, 10))
        fresh.assert_bounds_hold()


@pytest.mark.jvm
def test_points_move_with_migrated_segments(start_archive: StartArchive, tmp_path: Path) -> None:
    with (
        start_archive("aerotape", properties=DENSE) as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        begun_ns = time.time_ns()
        first = record(client, 4, 2 * SEGMENT).recording_id
        middle_ns = time.time_ns()
        second = record(client, 4, SEGMENT + 1024, start_position=2 * SEGMENT).recording_id
        ended_ns = time.time_ns()
        client.call("migrateSegments", first, second)
        signals_until(client, first, "DELETE")
    archive_dir = tmp_path / "archive"
    index = aerotape.open_directory(archive_dir).recording(second).time_index
    assert (index.source, index.problem, index.start_position) == ("recorded", "", 0)
    assert index.points[-1].position == index.recorded_position == 3 * SEGMENT + 1024
    for position, low, high in ((0, begun_ns, middle_ns), (2 * SEGMENT, middle_ns, ended_ns)):
        bounds = index.time_at(position)
        assert bounds.not_before_ns is not None
        assert bounds.not_after_ns is not None
        assert low <= bounds.not_before_ns <= bounds.not_after_ns <= high
    assert not time_index_path(archive_dir, first).exists()


@pytest.mark.jvm
def test_archive_tool_ignores_the_index(start_archive: StartArchive, stream: TimedStream) -> None:
    with served(start_archive, "aerotape") as client:
        stream.record(client, more_points(stream, 10))
    path = time_index_path(stream.archive_dir, stream.recording_id)
    content = path.read_bytes()
    for command, answers in (
        (["describe"], ""),
        (["verify", "-a"], "y\n"),
        (["checksum", "io.aeron.archive.checksum.Crc32c", "-a"], ""),
        (["delete-orphaned-segments"], "y\n"),
        (["compact"], "y\n"),
        (["errors"], ""),
    ):
        done = archive_tool(stream.archive_dir, *command, answers=answers)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert "time-index" not in done.stdout + done.stderr, command
        assert "ERR" not in done.stdout, (command, done.stdout)
    assert path.read_bytes() == content
    stream.assert_bounds_hold()


def test_a_killed_archive_leaves_a_valid_index(
    start_archive: StartArchive, stream: TimedStream
) -> None:
    with start_archive("aerotape", properties=DENSE) as archive:
        assert isinstance(archive, AerotapeArchive)
        with archive.connect() as client:
            stream.record(client, more_points(stream, 20), stop=False)
            archive.kill()
    stream.assert_bounds_hold()
    survived = stream.points()
    assert survived >= 20
    age_mark_file(stream.archive_dir)
    with served(start_archive, "aerotape") as client:
        assert client.stop_position(0) > 0
        stream.assert_bounds_hold()
        assert stream.points() == survived
        stream.record(client, more_points(stream, 10))
    stream.assert_bounds_hold()
    assert stream.look().time_index.problem == ""


@pytest.mark.parametrize("damage", ["nonsense", "empty", "directory"])
def test_an_unusable_index_is_reported_and_recording_continues(
    start_archive: StartArchive, stream: TimedStream, damage: str
) -> None:
    with served(start_archive, "aerotape") as client:
        stream.record(client, more_points(stream, 10))
    path = time_index_path(stream.archive_dir, stream.recording_id)
    path.unlink()
    if damage == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"nonsense" * 20 if damage == "nonsense" else b"")
    with pytest.warns(RuntimeWarning, match=r"aerotape-0\.time-index"):
        stream.look().to_arrow(columns=["position"], from_time=1)
    with start_archive("aerotape", properties=DENSE) as archive:
        assert isinstance(archive, AerotapeArchive)
        with archive.connect() as client:
            stream.record(client, lambda: True)
        wait_until(lambda: str(path) in archive.log(), "the warning in the log")
        if damage == "directory":
            wait_until(lambda: "time index not written" in archive.log(), "the error")
    stream.assert_bounds_hold()
    positions = [message.position for message in stream.look().messages()]
    assert positions[: len(stream.sent)] == [each.position for each in stream.sent]


def test_the_index_can_be_turned_off(start_archive: StartArchive, stream: TimedStream) -> None:
    off = {"aerotape.time.index.interval": "0"}
    with served(start_archive, "aerotape", off) as client:
        stream.record(client, lambda: True)
    assert not time_index_path(stream.archive_dir, 0).exists()
    stream.assert_bounds_hold()
    assert stream.look().time_index.source == "none"


@pytest.mark.parametrize("kind", KINDS)
def test_the_replay_command_accepts_times(
    start_archive: StartArchive,
    stream: TimedStream,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    """Times work with local directories of either archive; of Java's only start and end are
    known."""
    properties = DENSE if kind == "aerotape" else {}
    with (
        start_archive(kind, properties=properties) as archive,
        archive.connect() as client,
    ):
        enough = more_points(stream, 20) if kind == "aerotape" else lambda: True
        publication = stream.record(client, enough, stop=False)
        middle_ns = time.time_ns()
        for _ in range(10):
            stream.burst(client, publication)

        def replay(*options: str, expect: int = 0) -> tuple[list[int], str]:
            capsys.readouterr()
            where = ["--aeron-dir", archive.aeron_dir, "--control-channel", archive.control_channel]
            arguments = ["replay", "0", "--print", "--json", *options, *map(str, where)]
            assert main(arguments) == expect
            out, err = capsys.readouterr()
            return [json.loads(line)["position"] for line in out.splitlines()], err

        directory = f"--archive-dir={archive.archive_dir}"
        start, end = f"--from-time={middle_ns}ns", f"--to-time={format_time(middle_ns)}"
        everything = [each.position for each in stream.sent]
        later = [each.position for each in stream.sent if each.begun_ns >= middle_ns]
        since, err = replay(start, directory, "--no-follow")
        assert since == [
            message.position for message in stream.look().messages(from_time=middle_ns)
        ]
        assert set(later) <= set(since)
        assert (len(since) < len(everything)) == (kind == "aerotape")
        assert ("has no time index" in err) == (kind == "java")
        # With an end time, the replay of a live recording ends.
        until, _ = replay(end, directory)
        assert until == [message.position for message in stream.look().messages(to_time=middle_ns)]
        some, _ = replay(end, directory, f"--position={everything[2]}", "--length=1920")
        assert some == everything[2:4]
        nothing, err = replay(
            f"--to-time={stream.sent[0].begun_ns - 10**10}ns", directory, expect=1
        )
        assert nothing == []
        assert "no data of recording 0" in err
        _, err = replay(start, expect=2)
        assert "require --archive-dir" in err
        other = build(tmp_path / "other").archive_dir
        _, err = replay(start, f"--archive-dir={other}", expect=2)
        assert "is not the directory of the connected archive" in err
