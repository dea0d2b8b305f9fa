"""`aerotape cat`: the messages of a recording, from files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.builders import orders, timed_directory
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder, crc32
from support.daemon.command_line import CommandLine, aerotape
from support.daemon.recording import recorded, start_recording, stop

import aerotape as package
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.layout import RecordingState


def built(directory: Path, count: int = 10, **options: object) -> SegmentBuilder:
    """Write an archive directory with one recording of messages of 64 bytes each."""
    directory.mkdir()
    builder = SegmentBuilder(**options)  # type: ignore[arg-type]
    for number in range(count):
        builder.message(b"%d" % number)
    add_recording(directory, builder)
    return builder


def test_what_an_archive_has_recorded(cli: CommandLine, client: package.ArchiveClient) -> None:
    """All messages of the archive, Java's too, with their headers, as a replay prints them."""
    made = recorded(client, 30)
    rows = lines(cli.run("cat", cli.archive.archive_dir, made.recording_id, "--json"))
    assert [
        (bytes.fromhex(row["payload"]), row["end_position"], row["reserved_value"]) for row in rows
    ] == made.sent
    replayed = lines(cli.run("replay", made.recording_id, "--print", "--json"))
    for row in (*rows, *replayed):
        row["flags"] &= 0x80  # the client has those of the first frame alone
    assert rows == replayed


def lines(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """Return the rows that a command has printed."""
    return list(map(json.loads, done.stdout.splitlines()))


def test_a_range(tmp_path: Path) -> None:
    """--from-position and --to-position select where messages begin, --limit their number."""
    built(tmp_path / "a")

    def printed(*options: object) -> list[str]:
        return aerotape("cat", tmp_path / "a", 0, *options).out.split()

    assert printed() == list("0123456789")
    assert printed("--from-position", 128, "--to-position", 256) == ["2", "3"]
    assert printed("--from-position", 65, "--to-position", 193) == ["2", "3"]
    assert printed("--from-position", 128, "--limit", 1) == ["2"]
    assert printed("--limit", 0) == []
    assert printed("--to-position", 128, "--follow") == ["0", "1"]  # it has stopped
    done = aerotape("cat", tmp_path / "a", 0, "--from-position", 2, "--to-position", 1, expect=2)
    assert "--from-position 2 is after --to-position 1" in done.err


def test_the_newest(tmp_path: Path) -> None:
    """--last is of the selected range, whose messages it counts before --limit and --template."""
    built(tmp_path / "a")

    def printed(*options: object) -> list[str]:
        return aerotape("cat", tmp_path / "a", 0, *options).out.split()

    assert printed("--last", 3) == ["7", "8", "9"]
    assert printed("--last", 30) == list("0123456789")
    assert printed("--last", 0) == []
    assert printed("--last", 0, "--follow") == []  # it has stopped
    assert printed("--last", 3, "--limit", 1) == ["7"]
    assert printed("--last", 3, "--to-position", 320) == ["2", "3", "4"]
    assert printed("--last", 3, "--from-position", 512, "--follow") == ["8", "9"]


def test_the_first(tmp_path: Path) -> None:
    """--first is of the selected range; following a recording ends with it."""
    built(tmp_path / "a")

    def printed(*options: object) -> list[str]:
        return aerotape("cat", tmp_path / "a", 0, *options).out.split()

    assert printed("--first", 3) == ["0", "1", "2"]
    assert printed("--first", 30) == list("0123456789")
    assert printed("--first", 3, "--from-position", 128) == ["2", "3", "4"]
    assert printed("--first", 3, "--limit", 1) == ["0"]
    (tmp_path / "b").mkdir()
    builder = SegmentBuilder()
    for number in range(5):
        builder.message(b"%d" % number)
    add_recording(tmp_path / "b", builder, live=True)
    assert aerotape("cat", tmp_path / "b", 0, "--first", 3, "--follow").out.split() == list("012")
    done = aerotape("cat", tmp_path / "a", 0, "--first", 1, "--last", 1, expect=2)
    assert "--first and --last exclude each other" in done.err


def test_times(tmp_path: Path) -> None:
    """Absolute and relative ones, also with a sign; --since is --from-time."""
    made = timed_directory.build(tmp_path / "a")

    def printed(*options: object) -> list[int]:
        done = aerotape("cat", tmp_path / "a", 0, *options, "--json")
        return [json.loads(line)["position"] for line in done.out.splitlines()]

    every = [message.position for message in made.stream.messages]
    middle = f"{made.points[20].time_ns}ns"
    later, earlier = printed("--from-time", middle), printed("--to-time", middle)
    assert later == every[-len(later) :] != every
    assert earlier == every[: len(earlier)] != every
    assert set(every) == {*earlier, *later}
    assert printed("--since", middle) == later
    assert printed("--since", middle, "--last", 2) == every[-2:]
    for relative in ("10m", "-10m", "-600s"):
        assert printed("--from-time", "2020-01-01T00:00Z", "--to-time", relative) == every
        assert printed("--since", relative) == []
    done = aerotape("cat", tmp_path / "a", 0, "--since", "soon", expect=2)
    assert "'soon' is not a valid time" in done.err


def test_nothing_is_selected(tmp_path: Path) -> None:
    """It is said, with what there would be; the exit code is 0. What was asked for is not said."""
    (tmp_path / "archive").mkdir()
    builder = SegmentBuilder()
    for _ in range(10):
        builder.message(orders.foreign())
    add_recording(tmp_path / "archive", builder)
    (tmp_path / "orders.xml").write_text(orders.SCHEMA)

    def said(*options: object) -> str:
        done = aerotape("cat", tmp_path / "archive", 0, *options)
        assert not done.out
        return done.err

    for options in (("--since", "2090-01-01T00:00Z"), ("--from-position", 1 << 40, "--last", 5)):
        assert "no message of recording 0 is selected; it has positions 0 to " in said(*options)
    assert "recorded from 2023-11-14 22:13:20Z to 2023-11-14 22:13:21Z" in said("--to-position", 0)
    schema = ("--schema", tmp_path / "orders.xml")
    assert "none of 10 messages is a message of the schema" in said(*schema)
    assert "none of 3 messages is a Cancel" in said(*schema, "--template", "Cancel", "--last", 3)
    assert not said("--last", 0)
    assert not said("--limit", 0)


def test_damage_ends_the_output_with_code_3(tmp_path: Path) -> None:
    """After the messages that precede it, which are complete."""
    builder = built(tmp_path / "a", count=3000)
    path = builder.segment_path(tmp_path / "a", 0)
    data = bytearray(path.read_bytes())
    data[64 * 1000 : 64 * 1000 + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    done = aerotape("cat", tmp_path / "a", 0, expect=3)
    assert done.out.split() == [str(number) for number in range(1000)]
    [line] = done.err.splitlines()
    assert line.startswith("aerotape cat: ") and path.name in line


def test_a_missing_file_ends_the_output_with_code_3(tmp_path: Path) -> None:
    """After the messages of the files that precede it."""
    builder = built(tmp_path / "a", count=3000)
    builder.segment_path(tmp_path / "a", builder.segment_length).unlink()
    done = aerotape("cat", tmp_path / "a", 0, expect=3)
    assert len(done.out.split()) == builder.segment_length // 64
    assert len(done.err.splitlines()) == 1


def test_a_wrong_checksum_is_found(tmp_path: Path) -> None:
    """If --checksum is given."""
    builder = built(tmp_path / "a", checksum=crc32)
    assert len(aerotape("cat", tmp_path / "a", 0, "--checksum", "crc-32").out.split()) == 10
    path = builder.segment_path(tmp_path / "a", 0)
    data = bytearray(path.read_bytes())
    data[64 * 4 + 32] ^= 1
    path.write_bytes(data)
    done = aerotape("cat", tmp_path / "a", 0, "--checksum", "crc-32", expect=3)
    assert done.out.split() == list("0123")


def test_a_copy_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its URL is in place of the directory."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("moto")
    from support.spark import object_store

    built(tmp_path / "a", count=3000)
    with object_store.serve() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        url = store.upload(tmp_path / "a", "cat")
        remote = aerotape("cat", url, 0, "--from-position", 64, "--json").out
        assert aerotape("cat", f"{url}/none", 0, expect=1).err.count("\n") == 1
    assert remote == aerotape("cat", tmp_path / "a", 0, "--from-position", 64, "--json").out


def test_no_recording_and_no_directory(tmp_path: Path) -> None:
    """One line, and exit code 1."""
    built(tmp_path / "a")
    assert "no recording with id 5" in aerotape("cat", tmp_path / "a", 5, expect=1).err
    assert aerotape("cat", tmp_path / "b", 0, expect=1).err.count("\n") == 1
    assert not (tmp_path / "b").exists()


def test_follow_until_the_recording_stops(cli: CommandLine, client: package.ArchiveClient) -> None:
    """Messages are printed as they are recorded; then the command ends by itself."""
    made = start_recording(client, count=3)
    follower = cli.start(
        "cat", cli.archive.archive_dir, made.recording_id, "--follow", "--format", "length"
    )
    try:
        assert follower.stdout is not None
        for _ in range(3):
            made.send([os.urandom(5000), b"", b"short"])
            await_messages(follower.stdout.fileno(), made.sent)
            made.sent.clear()
        stop(client, made)
        rest, error = follower.communicate(timeout=30)
    finally:
        follower.kill()
    assert (follower.returncode, rest, error) == (0, b"", b"")


def await_messages(descriptor: int, sent: list[tuple[bytes, int, int]]) -> None:
    """Read exactly these messages, as they arrive."""
    expected = b"".join(len(p).to_bytes(4, "little") + p for p, _, _ in sent)
    data = b""
    while len(data) < len(expected):
        data += os.read(descriptor, len(expected) - len(data))
    assert data == expected


def test_following_ends_at_the_end_position_or_ctrl_c(
    cli: CommandLine, client: package.ArchiveClient
) -> None:
    """Without the recording's stop, and without a traceback."""
    made = start_recording(client, count=3)
    begin = made.sent[0][1]
    directory, recording_id = cli.archive.archive_dir, made.recording_id
    options = ["--follow", "--from-position", begin, "--to-position", begin + 1, "--format", "hex"]
    wanted = made.sent[1][0].hex().encode() + b"\n"
    assert cli.run("cat", directory, recording_id, *options).stdout == wanted

    follower = cli.start("cat", directory, recording_id, "--follow", "--format", "hex")
    assert follower.stdout is not None
    assert follower.stdout.readline()
    follower.send_signal(signal.SIGINT)
    _, error = follower.communicate(timeout=20)
    assert (follower.returncode, error) == (130, b"")
    stop(client, made)


@pytest.mark.parametrize("options", [[], ["--follow"], ["--follow", "--format", "raw"]])
def test_a_closed_pipe_ends_it(tmp_path: Path, options: list[str]) -> None:
    """Also while it waits for messages of a recording that never stops."""
    directory = tmp_path / "a"
    directory.mkdir()
    builder = SegmentBuilder()
    for _ in range(2000 if not options else 1):
        builder.message(bytes(500))
    add_recording(directory, builder, live=True)
    command = [sys.executable, "-m", "aerotape", "cat", str(directory), "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        assert reader.stdout is not None and reader.stderr is not None
        assert reader.stdout.read(100)
        reader.stdout.close()
        assert reader.wait(20) == 141
        assert reader.stderr.read() == b""


def test_nothing_is_written(tmp_path: Path) -> None:
    """Files stay as they are, those of the catalog too."""
    built(tmp_path / "a")
    before = {path: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    aerotape("cat", tmp_path / "a", 0, "--follow")
    assert {path: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before


def test_a_recording_that_is_purged_while_it_is_followed(tmp_path: Path) -> None:
    """The command fails with one line after the messages that it has printed."""
    directory = tmp_path / "a"
    directory.mkdir()
    builder = SegmentBuilder()
    builder.message(b"first")
    add_recording(directory, builder, live=True)
    command = [sys.executable, "-m", "aerotape", "cat", str(directory), "0", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None and follower.stderr is not None
        assert follower.stdout.readline() == b"first\n"
        with Catalog.open(directory) as catalog:
            catalog.change_state(0, RecordingState.DELETED)
        assert follower.wait(20) == 1
        assert follower.stderr.read().count(b"\n") == 1


def test_waiting_for_a_message_takes_no_processor(tmp_path: Path) -> None:
    """Until the recording has grown."""
    directory = tmp_path / "a"
    directory.mkdir()
    builder = SegmentBuilder()
    builder.message(b"first")
    add_recording(directory, builder, live=True)
    command = [sys.executable, "-m", "aerotape", "cat", str(directory), "0", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"first\n"
        used = _processor_time(follower.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            follower.wait(1)
        assert _processor_time(follower.pid) - used < 50  # of 100
        follower.kill()


def _processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
