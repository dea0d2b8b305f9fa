"""The commands record, stop, list and replay."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.recording import Made, new_stream_id, recorded, start_recording, stop, wait_until

import aerotape

if TYPE_CHECKING:
    from .conftest import CommandLine


@pytest.fixture
def client(cli: CommandLine) -> Iterator[aerotape.ArchiveClient]:
    """A client of the archive that the commands talk to, to make recordings with."""
    with cli.archive.connect() as connected:
        yield connected


def test_record_and_stop(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """What `record` starts records until `stop`, given the channel or the printed id."""
    stream_id = new_stream_id()
    started = cli.json("record", "aeron:ipc", stream_id)
    assert started["stream_id"] == stream_id
    with client.aeron.add_publication("aeron:ipc", stream_id) as publication:
        end = publication.send(b"recorded")
        wait_until(
            lambda: any(client.list_recordings_for_uri("", stream_id)), "the recording's start"
        )
        (found,) = client.list_recordings_for_uri("", stream_id)
        wait_until(lambda: client.max_recorded_position(found.recording_id) == end, "recording")
        cli.run("stop", "aeron:ipc", stream_id)
        wait_until(lambda: client.stop_position(found.recording_id) == end, "the stop")
    assert "UNKNOWN_SUBSCRIPTION" in cli.error("stop", "aeron:ipc", stream_id)
    again = cli.json("record", "aeron:ipc", stream_id)
    stopped = cli.json("stop", "--subscription", again["subscription_id"])
    assert stopped == {"stopped": "subscription", "subscription_id": again["subscription_id"]}


def test_stop_a_recording(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A live recording is stopped by its id; one that is not live is a failure."""
    made = start_recording(client, count=1)
    cli.run("stop", "--recording", made.recording_id)
    wait_until(lambda: client.stop_position(made.recording_id) == made.end, "the stop")
    assert "not live" in cli.error("stop", "--recording", made.recording_id)
    assert "UNKNOWN_RECORDING" in cli.error("stop", "--recording", 9999)
    client.try_stop_recording_subscription(made.subscription_id)
    made.publication.close()


def test_stop_wants_one_way(cli: CommandLine) -> None:
    """No way, two ways or half a way to name what is to be stopped are usage errors."""
    for args in (
        (),
        ("aeron:ipc",),
        ("aeron:ipc", 1, "--recording", 2),
        ("--recording", 1, "--subscription", 2),
    ):
        assert "either CHANNEL STREAM_ID" in cli.error("stop", *args, code=2)


def test_list(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Recordings are listed by id, range, count, channel, stream; live ones with a position."""
    first, second = recorded(client, 1), recorded(client, 2)
    live = start_recording(client, count=3)
    rows = cli.json("list", "--from", first.recording_id)
    assert [row["recording_id"] for row in rows] == [
        each.recording_id for each in (first, second, live)
    ]
    descriptor = client.list_recording(second.recording_id)
    assert descriptor is not None
    assert rows[1] == {
        "is_active": False,
        "recorded_position": second.end,
        **{name: getattr(descriptor, name) for name in descriptor.__slots__},
    }
    assert rows[2]["is_active"] is True
    assert (rows[2]["stop_position"], rows[2]["recorded_position"]) == (-1, live.end)

    def ids(*args: object) -> list[int]:
        listed = cli.json("list", "--from", first.recording_id, *args)
        return [row["recording_id"] for row in listed]

    assert ids("--count", 2) == [first.recording_id, second.recording_id]
    assert ids("--to", second.recording_id) == [first.recording_id, second.recording_id]
    assert ids("--stream-id", second.stream_id) == [second.recording_id]
    assert ids("--channel", "ipc", "--stream-id", live.stream_id) == [live.recording_id]
    assert ids("--channel", "endpoint") == []
    (only,) = cli.json("list", "--id", second.recording_id)
    assert only == rows[1]
    table = cli.run("list", "--from", first.recording_id).stdout.decode().splitlines()
    assert table[0].split() == [
        "id", "state", "started", "start", "position", "stream", "session", "channel", "source",
    ]  # fmt: skip
    assert [line.split()[1] for line in table[1:]] == ["stopped", "stopped", "live"]
    assert "there is no recording 9999" in cli.error("list", "--id", 9999)
    stop(client, live)


def test_replay_counts(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Without a place to go to, a replay is counted: messages, bytes, first and last position."""
    made = recorded(client, 20)
    assert cli.json("replay", made.recording_id) == {
        "recording_id": made.recording_id,
        "messages": 20,
        "bytes": sum(len(payload) for payload, _, _ in made.sent),
        "start_position": 0,
        "end_position": made.end,
    }
    start, end = made.sent[4][1], made.sent[9][1]
    part = cli.json("replay", made.recording_id, "--position", start, "--length", end - start)
    assert (part["messages"], part["start_position"], part["end_position"]) == (5, start, end)


def test_replay_to_a_file(cli: CommandLine, client: aerotape.ArchiveClient, tmp_path: Path) -> None:
    """Payloads go to a file or standard output, one after the other or behind their lengths."""
    made = recorded(client, 20)
    payloads = [payload for payload, _, _ in made.sent]
    out = tmp_path / "payloads"
    assert cli.json("replay", made.recording_id, "--out", out)["messages"] == 20
    assert out.read_bytes() == b"".join(payloads)
    refused = cli.error("replay", made.recording_id, "--out", out, "--framing", "length")
    assert f"{out} exists already" in refused and "--force" in refused
    assert out.read_bytes() == b"".join(payloads)
    cli.run("replay", made.recording_id, "--out", out, "--force", "--framing", "length")
    assert out.read_bytes() == b"".join(len(p).to_bytes(4, "little") + p for p in payloads)
    assert cli.run("replay", made.recording_id, "--out", "-").stdout == b"".join(payloads)
    assert "UNKNOWN_RECORDING" in cli.error("replay", 9999, "--out", out)
    assert out.stat().st_size > 0
    assert "--force is for --out" in cli.error("replay", made.recording_id, "--force", code=2)
    assert "No such file" in cli.error("replay", made.recording_id, "--out", tmp_path / "x" / "y")


def test_replay_printed(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Messages are printed a line each, for machines with all of their header and payload."""
    made = start_recording(client)
    made.send([b"readable", bytes(range(200))])
    wait_until(lambda: client.recording_position(made.recording_id) == made.end, "the recording")
    stop(client, made)
    lines = cli.run("replay", made.recording_id, "--print", "--json").stdout.splitlines()
    first, second = map(json.loads, lines)
    assert (first["position"], first["end_position"], first["length"]) == (0, 64, 8)
    assert bytes.fromhex(first["payload"]) == b"readable"
    assert second["position"] == 64
    for row in (first, second):
        assert (row["session_id"], row["stream_id"]) == (made.session_id, made.stream_id)
    assert bytes.fromhex(second["payload"]) == bytes(range(200))
    assert [row["reserved_value"] for row in (first, second)] == [made.sent[0][2], made.sent[1][2]]
    table = cli.run("replay", made.recording_id, "--print").stdout.decode().splitlines()
    assert table[0].split() == ["0", "8", "readable"]
    assert table[1].split()[:2] == ["64", "200"]
    assert table[1].split()[2].startswith("000102")


def test_replay_to_a_channel(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """With --to the archive itself replays into a channel, after the command has ended."""
    made = recorded(client, 30)
    stream_id = new_stream_id()
    with client.aeron.add_subscription("aeron:ipc", stream_id) as subscription:
        sent = cli.json("replay", made.recording_id, "--to", "aeron:ipc", "--stream-id", stream_id)
        messages = list(itertools.islice(subscription, 30))
    assert [each.payload for each in messages] == [payload for payload, _, _ in made.sent]
    assert messages[0].session_id & 0xFFFFFFFF == sent["replay_session_id"] & 0xFFFFFFFF
    assert "belong together" in cli.error("replay", 0, "--to", "aeron:ipc", code=2)


def test_replay_follows(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A live recording is printed as it grows, until Ctrl-C, which is no traceback."""
    made = start_recording(client, count=2)
    assert cli.json("replay", made.recording_id, "--no-follow")["messages"] == 2
    follower = subprocess.Popen(
        [sys.executable, "-m", "aerotape", "replay", str(made.recording_id), "--print", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=cli.environment,
    )
    assert follower.stdout is not None
    _read(follower.stdout.fileno(), 2)
    made.send([b"more"])
    assert json.loads(_read(follower.stdout.fileno(), 1)[0])["payload"] == b"more".hex()
    follower.send_signal(signal.SIGINT)
    _, error = follower.communicate(timeout=20)
    assert (follower.returncode, error) == (130, b"")
    stop(client, made)


def _read(descriptor: int, lines: int) -> list[bytes]:
    """Read whole lines as they come, without waiting for a buffer to fill."""
    data = b""
    while data.count(b"\n") < lines:
        data += os.read(descriptor, 65536)
    return data.splitlines()


def test_aborted_replay(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A replay that the archive cannot finish is a failure in one line."""
    made: Made = recorded(client, 100)
    (cli.archive.archive_dir / f"{made.recording_id}-65536.rec").unlink()
    line = cli.error("replay", made.recording_id)
    assert line.startswith("aerotape replay: the replay of recording")
    assert "segment" in line


def test_where_the_archive_is(cli: CommandLine) -> None:
    """An option wins over -D, that over the environment; each alone finds the archive."""
    bare = {name: value for name, value in cli.environment.items() if not name.startswith("AERON_")}
    aeron_dir, channel = cli.archive.aeron_dir, cli.archive.control_channel
    by_options = ("--aeron-dir", aeron_dir, "--control-channel", channel)
    by_properties = (f"-Daeron.dir={aeron_dir}", f"-Daeron.archive.control.channel={channel}")
    wrong = ("-Daeron.dir=/nowhere", "-Daeron.archive.control.channel=aeron:udp?endpoint=a:1")
    cli.run("list", *by_options, env=bare)
    cli.run("list", *by_properties, env=bare)
    cli.run("list", *wrong, *by_options)
    # Without a control channel it is IPC, by which a local archive is found too.
    cli.run("list", "--aeron-dir", aeron_dir, env=bare)
    assert "response channel" in cli.error("list", *wrong, code=2)
    assert "/nowhere" in cli.error("list", wrong[0], "--timeout", "1s")


def test_bad_settings(cli: CommandLine, tmp_path: Path) -> None:
    """Values that cannot be used are usage errors; an archive that is not there is a failure."""
    assert "soon" in cli.error("list", "--timeout", "soon", code=2)
    assert "must be more" in cli.error("list", "--timeout", "0", code=2)
    assert "control.stream.id" in cli.error("list", "-Daeron.archive.control.stream.id=x", code=2)
    assert "expected -Daeron" in cli.error("list", "-Dnonsense", code=2)
    assert "'not-a-number'" in cli.error("record", "aeron:ipc", "not-a-number", code=2)
    absent = cli.error("list", "--control-stream-id", 4711, "--timeout", "300ms")
    assert "stream 4711" in absent
    nowhere = cli.error("list", "--aeron-dir", tmp_path / "none", "--timeout", "1")
    assert str(tmp_path) in nowhere


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["record", "bogus", 1], "aeron:"),
        (["record", "aeron:ipc?alias=\u00f6", 1], "ASCII"),
        (["record", "aeron:ipc", 1 << 31], "STREAM_ID"),
        (["stop", "--recording", 1 << 63], "--recording"),
        (["list", "--count", -1], "--count"),
        (["list", "--id", 0, "--stream-id", 1], "--id"),
        (["list", "--control-channel", "bogus"], "--control-channel"),
        (["replay", 0, "--position", 1 << 63], "--position"),
        (["replay", 0, "--framing", "length"], "--framing"),
    ],
)
def test_arguments_that_cannot_be(
    tmp_path: Path, cli: CommandLine, arguments: list[object], complaint: str
) -> None:
    """What no archive could take is a usage error that names the argument, before any connect."""
    environment = {**cli.environment, "AERON_DIR": str(tmp_path / "no-driver")}
    assert complaint in cli.error(*arguments, code=2, env=environment)


def test_output_that_cannot_be_written(
    cli: CommandLine, client: aerotape.ArchiveClient, tmp_path: Path
) -> None:
    """A file that cannot be opened or has no room is named in the one line of the failure."""
    made = recorded(client, count=1)
    nowhere = tmp_path / "none" / "out"
    assert f"{nowhere}: No such" in cli.error("replay", made.recording_id, "--out", nowhere)
    full = cli.error("replay", made.recording_id, "--out", "/dev/full")
    assert "/dev/full: No space" in full
