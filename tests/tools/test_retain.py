"""`aerotape retain`: on an unused directory, and with running archives."""

from __future__ import annotations

import errno
import io
import json
import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.builders.held_recordings import SEGMENT_LENGTH, add_recording, segment, segments
from support.builders.mark_files import in_use
from support.builders.offline_directory import content
from support.builders.streams import TERM_LENGTH, record, segment_files
from support.daemon import command_line
from support.daemon.command_line import CommandLine
from support.daemon.recording import start_recording, stop, wait_until
from support.damage.tool_commands import Done
from support.entity.topics import new_topic, numbers
from support.jvm.java import JavaArchive, JavaClient, archive_tool

import aerotape
from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.entity import Event
from aerotape.entity.topic import recordings_of
from aerotape.replay.offline.directory import open_directory

WEEK = '[[rule]]\nname = "week"\nmax_age = "7d"\n'


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Recordings that a week deletes in part, completely or not, and one that is in use."""
    made = tmp_path / "archive"
    now_ns = time.time_ns()
    add_recording(made, [9, 8, 1], now_ns=now_ns)
    add_recording(made, [9, 8], now_ns=now_ns)
    add_recording(made, [1, 0.5], now_ns=now_ns)
    add_recording(made, [9, 9], now_ns=now_ns, stopped=False)
    return made


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "week.toml"
    path.write_text(WEEK)
    return path


def retain(directory: Path, policy: Path, *options: str, expect: int = 0) -> Done:
    return command_line.aerotape("retain", directory, policy, *options, expect=expect)


def all_segments(directory: Path) -> list[list[int]]:
    return [segments(directory, number) for number in range(4)]


def test_a_dry_run_shows_and_changes_nothing(directory: Path, policy: Path) -> None:
    before = content(directory)
    printed = retain(directory, policy, "--dry-run", "--json").json
    assert printed["dry_run"] is True
    reasons = ["older than 7d (rule week)"]
    assert [
        (row["recording_id"], row["new_start_position"], row["segment_files"], row["reasons"])
        for row in printed["removals"]
    ] == [(0, 2 * SEGMENT_LENGTH, 2, reasons), (1, None, 2, reasons)]
    [kept] = printed["kept"]
    assert kept["recording_id"] == 3
    assert "no stop position" in kept["in_use"]
    assert content(directory) == before
    assert (
        "would delete from recording 0: what is before position 262144"
        in retain(directory, policy, "--dry-run").out
    )


@pytest.mark.jvm
def test_files_are_deleted_and_either_archive_accepts_the_directory(
    directory: Path, policy: Path
) -> None:
    with open_directory(directory).open_catalog() as catalog:
        kept = catalog.entry(2).body
    assert "deleted from recording 1: all of it" in retain(directory, policy, "--yes").out
    assert all_segments(directory) == [[2], [], [0, 1], [0, 1]]
    rest = open_directory(directory).recording(0)
    assert rest.start_position == 2 * SEGMENT_LENGTH
    assert next(rest.messages()).position == 2 * SEGMENT_LENGTH
    with open_directory(directory).open_catalog() as catalog:
        assert catalog.entry(2).body == kept
        assert list(catalog.purged_ids()) == [1]
    assert retain(directory, policy, "--yes").out.splitlines()[-1] == "nothing to delete"
    verified = archive_tool(directory, "verify", "0", "-a")
    assert "(recordingId=0) OK" in verified.stdout, verified.stdout + verified.stderr


def test_without_a_confirmation_nothing_is_deleted(
    directory: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(directory)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert (
        "confirmation required to delete 4 segment files of 2 recordings"
        in retain(directory, policy, expect=2).err
    )
    assert content(directory) == before


def test_changes_during_the_question_are_skipped(
    directory: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object) -> None:
        os.utime(segment(directory, 0, 1))

    monkeypatch.setattr("aerotape.tools.retain.confirm", answer)
    captured = retain(directory, policy)
    assert "skipped because they have changed: recordings 0" in captured.err
    assert all_segments(directory) == [[0, 1, 2], [], [0, 1], [0, 1]]


def test_an_archive_that_starts_during_the_question_is_noticed(
    directory: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(directory)
    with ExitStack() as started:

        def answer(*_: object) -> None:
            started.enter_context(in_use(directory))

        monkeypatch.setattr("aerotape.tools.retain.confirm", answer)
        assert "is in use" in retain(directory, policy, expect=1).err
    changed = {name for name, data in content(directory).items() if before.get(name) != data}
    assert changed == {"archive-mark.dat"}


def test_the_catalog_is_on_storage_before_files_are_deleted(
    directory: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, sync, unlink = [], os.fdatasync, Path.unlink

    def forced(descriptor: int) -> None:
        done.append("sync")
        sync(descriptor)

    def deleted(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".rec":
            done.append("unlink")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(os, "fdatasync", forced)
    monkeypatch.setattr(Path, "unlink", deleted)
    retain(directory, policy, "--yes")
    first, *rest = done
    assert first == "sync"
    assert rest.count("unlink") == 4


@pytest.mark.parametrize("broken", range(4))
def test_a_crash_at_any_file_leaves_a_valid_directory(
    directory: Path, policy: Path, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    """Recordings in the catalog are whole; the next run, or start, deletes the remaining files."""
    unlink, count = Path.unlink, 0

    class Killed(BaseException):
        pass

    def dying(path: Path, missing_ok: bool = False) -> None:
        nonlocal count
        if path.suffix == ".rec":
            count += 1
            if count > broken:
                raise Killed
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", dying)
    with pytest.raises(Killed):
        retain(directory, policy, "--yes")
    monkeypatch.setattr(Path, "unlink", unlink)
    found = open_directory(directory)
    for recording in found.recordings():
        if not recording.descriptor.is_active:
            messages = list(recording.messages())
            assert messages[0].position == recording.start_position
            assert messages[-1].end_position == recording.descriptor.stop_position
    retain(directory, policy, "--yes")
    assert [each.recording_id for each in open_directory(directory).recordings()] == [0, 2, 3]
    assert open_directory(directory).recording(0).start_position == 2 * SEGMENT_LENGTH


def test_a_file_that_cannot_be_deleted_is_reported_and_the_rest_is_deleted(
    directory: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = segment(directory, 0, 0)
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == stuck:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    captured = retain(directory, policy, "--yes", expect=1)
    assert f"cannot delete {stuck}" in captured.err
    assert segments(directory, 1) == []


def test_a_file_with_other_content_is_retained_and_reported(directory: Path, policy: Path) -> None:
    """It has the name of a file of a recording that is deleted."""
    mistaken = segment(directory, 1, 40)
    segment(directory, 2, 1).rename(mistaken)
    before = mistaken.read_bytes()
    printed = retain(directory, policy, "--yes", expect=1)
    assert f"left {mistaken}: its first frame has" in printed.out + printed.err
    assert mistaken.read_bytes() == before
    assert all_segments(directory) == [[2], [40], [0], [0, 1]]


def test_checksums_in_a_catalog_stay_valid(directory: Path, policy: Path) -> None:
    with Catalog.open(directory, checksum="crc-32c") as catalog:
        for recording_id in catalog.recording_ids():
            catalog.update_checksum(catalog.entry(recording_id))
    retain(directory, policy, "--yes")
    with Catalog.open(directory, read_only=True) as catalog:
        for recording_id in catalog.recording_ids():
            entry = catalog.entry(recording_id)
            assert entry.checksum == catalog.compute_checksum(recording_id, "crc-32c")
        assert catalog.start_position(0) == 2 * SEGMENT_LENGTH


# ---- with a running archive, the Java one and ours -----------------------------------------------


def age(cli: CommandLine, recording_id: int, *, keep_last: bool = False) -> list[Path]:
    """Set old modification times of segment files; return the files."""
    paths = sorted(
        cli.archive.archive_dir.glob(f"{recording_id}-*.rec"),
        key=lambda path: int(path.stem.partition("-")[2]),
    )
    for path in paths[: -1 if keep_last else None]:
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return paths


def environment(cli: CommandLine) -> dict[str, str]:
    """As in a shell without settings: the mark file has the connection."""
    return {
        name: value
        for name, value in cli.environment.items()
        if name not in ("AERON_DIR", "AERON_ARCHIVE_CONTROL_CHANNEL")
    }


def test_a_running_archive_deletes(
    cli: CommandLine, client: aerotape.ArchiveClient, policy: Path
) -> None:
    """A live recording loses its oldest segments, a replayed one stays, a stopped one is
    deleted."""
    live = start_recording(client, count=100)
    stopped = start_recording(client, count=60)
    stop(client, stopped)
    replayed = start_recording(client, count=100)
    stop(client, replayed)
    paths = {made.recording_id: age(cli, made.recording_id) for made in (live, stopped, replayed)}
    assert all(len(each) > 2 for each in paths.values())
    before = content(cli.archive.archive_dir)
    dry = cli.run(
        "retain", cli.archive.archive_dir, policy, "--dry-run", "--json", env=environment(cli)
    )
    planned = {row["recording_id"]: row for row in json.loads(dry.stdout)["removals"]}
    assert set(planned) == set(paths)
    after = content(cli.archive.archive_dir)
    for name in before:
        # Mark file and time index have timestamps.
        assert name.startswith(("archive-mark", "aerotape-")) or before[name] == after[name]
    with client.replay(replayed.recording_id) as replay:
        messages = iter(replay)
        assert next(messages).position == 0
        done = cli.run(
            "retain",
            cli.archive.archive_dir,
            policy,
            "--yes",
            "--json",
            expect=1,
            env=environment(cli),
        )
        rows = {row["recording_id"]: row for row in json.loads(done.stdout)["removals"]}
        assert "replay" in rows[replayed.recording_id]["problem"].lower()
        assert rows[stopped.recording_id]["problem"] == ""
        rest = list(messages)
        assert rest[-1].end_position == replayed.end
    wait_until(lambda: not any(p.exists() for p in paths[stopped.recording_id]), "the deletion")
    wait_until(
        lambda: (
            [p.exists() for p in paths[live.recording_id]]
            == [False] * (len(paths[live.recording_id]) - 1) + [True]
        ),
        "the deletion",
    )
    assert client.list_recording(stopped.recording_id) is None
    start = client.start_position(live.recording_id)
    assert start == live.end & -65536
    live.send([b"continues"])
    wait_until(lambda: client.recording_position(live.recording_id) == live.end, "the recording")
    stop(client, live)


def test_a_topic_is_held_in_a_running_archive(
    cli: CommandLine, client: aerotape.ArchiveClient, policy: Path
) -> None:
    """Nothing of it is requested to be deleted, while it is written and when it has stopped."""
    topic = new_topic()
    with client.entities(topic) as journal:
        for number in range(1, 101):
            journal.append("k", [Event(number, b"x" * 2_000, "binary")])
        [recording] = recordings_of(topic, client.list_recordings()).values()
        for is_open in (True, False):
            paths = age(cli, recording.recording_id)
            assert len(paths) > 2
            done = cli.run(
                "retain", cli.archive.archive_dir, policy, "--yes", env=environment(cli)
            ).stdout.decode()
            assert (
                f"bytes of recording {recording.recording_id} stay: older than 7d (rule week): it"
                f" is partition 0 of topic {topic}: purge it with `aerotape entity retention`"
            ) in done
            assert all(path.exists() for path in paths)
            if is_open:
                journal.close()
    with client.entities(topic) as journal:
        assert numbers(journal.read("k")) == list(range(1, 101))


def test_another_archive_is_refused(cli: CommandLine, directory: Path, policy: Path) -> None:
    """Options for the archive of another directory are refused."""
    with in_use(directory, archive_id=4711, local_control_stream_id=10):
        before = all_segments(directory)
        printed = cli.error("retain", directory, policy, "--yes", code=2)
        assert "has id 4711" in printed
        assert all_segments(directory) == before


@pytest.mark.jvm
def test_a_directory_of_the_java_archive_is_served_by_it_afterwards(
    tmp_path: Path, policy: Path
) -> None:
    """The remaining data is replayed exactly, and new ids continue."""
    archive_dir = tmp_path / "archive"
    with (
        JavaArchive(archive_dir, tmp_path / "aeron") as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        partly = record(client, 8001, 3 * TERM_LENGTH + 1024)
        wholly = record(client, 8002, TERM_LENGTH)
    bases = segment_files(archive_dir, partly.recording_id)
    for path in archive_dir.glob("*.rec"):
        if path.name != f"{partly.recording_id}-{bases[-1]}.rec":
            os.utime(path, (1_000_000_000, 1_000_000_000))
    left = (archive_dir / f"{partly.recording_id}-{bases[-1]}.rec").read_bytes()
    retain(archive_dir, policy, "--yes")
    assert segment_files(archive_dir, partly.recording_id) == bases[-1:]
    assert segment_files(archive_dir, wholly.recording_id) == []
    with (
        JavaArchive(archive_dir, tmp_path / "aeron") as archive,
        JavaClient(archive.aeron_dir) as client,
    ):
        client.connect(archive.control_channel)
        [row] = client.call("listRecordings", 0, 10)
        assert (row["recordingId"], row["startPosition"], row["stopPosition"]) == (
            partly.recording_id,
            bases[-1],
            partly.position,
        )
        with (
            archive.connect() as own,
            own.replay(partly.recording_id) as replay,
        ):
            [message] = list(replay)
        assert message.payload == left[32:1024]
        assert record(client, 8003, 1024).recording_id == wholly.recording_id + 1
