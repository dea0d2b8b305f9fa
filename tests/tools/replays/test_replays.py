"""Commands for replays and replications, run as a user runs them."""

from __future__ import annotations

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from support.daemon.command_line import CommandLine
from support.daemon.recording import (
    Made,
    new_stream_id,
    recorded,
    start_recording,
    stop,
    wait_until,
)

import aerotape


def test_replay_counts(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Without a destination, a replay is counted: messages, bytes, first and last position."""
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
    """Payloads are written to a file or standard output, with or without preceding lengths."""
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
    nowhere = tmp_path / "x" / "y"
    assert f"{nowhere}: No such file" in cli.error("replay", made.recording_id, "--out", nowhere)
    full = cli.error("replay", made.recording_id, "--out", "/dev/full")
    assert "/dev/full: No space" in full


def test_replay_printed(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Messages are printed a line each; the JSON form has all of their header and payload."""
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


def test_a_range_without_a_whole_message(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A replay that ends within its first message says so, instead of printing nothing."""
    made = start_recording(client)
    made.send([bytes(4_000)])
    wait_until(lambda: client.recording_position(made.recording_id) == made.end, "the recording")
    stop(client, made)
    printed = cli.run("replay", made.recording_id, "--print", "--length", 1_408)
    assert printed.stdout == b""
    assert b"no whole message between positions 0 and 1408" in printed.stderr


def test_replay_to_a_channel(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """With --to the archive itself replays into a channel, also after the command has ended."""
    made = recorded(client, 30)
    stream_id = new_stream_id()
    with client.aeron.add_subscription("aeron:ipc", stream_id) as subscription:
        sent = cli.json("replay", made.recording_id, "--to", "aeron:ipc", "--stream-id", stream_id)
        messages = list(itertools.islice(subscription, 30))
    assert [each.payload for each in messages] == [payload for payload, _, _ in made.sent]
    assert messages[0].session_id & 0xFFFFFFFF == sent["replay_session_id"] & 0xFFFFFFFF


def test_replay_follows(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A live recording is printed as it grows, until Ctrl-C, without a traceback."""
    made = start_recording(client, count=2)
    assert cli.json("replay", made.recording_id, "--no-follow")["messages"] == 2
    follower = cli.start("replay", made.recording_id, "--print", "--json")
    assert follower.stdout is not None
    _read(follower.stdout.fileno(), 2)
    made.send([b"more"])
    assert json.loads(_read(follower.stdout.fileno(), 1)[0])["payload"] == b"more".hex()
    follower.send_signal(signal.SIGINT)
    _, error = follower.communicate(timeout=20)
    assert (follower.returncode, error) == (130, b"")
    stop(client, made)


def _read(descriptor: int, lines: int) -> list[bytes]:
    """Read whole lines as they arrive, without waiting for a full buffer."""
    data = b""
    while data.count(b"\n") < lines:
        data += os.read(descriptor, 65536)
    return data.splitlines()


def test_aborted_replay(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A replay that the archive cannot finish is a failure with one line."""
    made: Made = recorded(client, 100)
    (cli.archive.archive_dir / f"{made.recording_id}-65536.rec").unlink()
    line = cli.error("replay", made.recording_id)
    assert line.startswith("aerotape replay: the replay of recording")
    assert "segment" in line


def test_stop_replay(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A replay is stopped by its id, by its recording, or with all others."""
    live = start_recording(client, count=3)
    for way in ("id", "recording", "all"):
        replay = client.replay(live.recording_id)
        assert [next(replay).payload for _ in range(3)] == [sent[0] for sent in live.sent]
        given: dict[str, list[Any]] = {
            "id": [replay.replay_session_id],
            "recording": ["--recording", live.recording_id],
            "all": ["--all"],
        }
        cli.run("stop-replay", *given[way])
        with pytest.raises(aerotape.errors.ReplayError):
            next(replay)
    stop(client, live)
    if cli.archive.kind == "aerotape":
        assert "no replay 9999" in cli.error("stop-replay", 9999)
        assert "no replay 9999" in cli.error("stop-replay", 9999, "--json")
    else:  # the Java archive reports success
        cli.run("stop-replay", 9999)


def test_bounded_replay(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A replay does not go beyond the counter that bounds it."""
    made = recorded(client, 20)
    limit = made.sent[9][1]
    counter = client.aeron.native.add_counter(1001, b"", "limit of a replay")
    counter.set(limit)
    process = cli.start(
        *("replay", made.recording_id, "--print", "--json"),
        *("--limit-counter", counter.id, "--file-io-max-length", 4096),
        text=True,
    )
    try:
        assert process.stdout is not None
        rows = [json.loads(process.stdout.readline()) for _ in range(10)]
        assert [bytes.fromhex(row["payload"]) for row in rows] == [s[0] for s in made.sent[:10]]
        assert rows[-1]["end_position"] == limit
        counter.set(made.end)
        rest, _ = process.communicate(timeout=60)
        assert len(rest.splitlines()) == 10
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
        counter.close()


def test_replicate(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A recording is copied; --follow ends with the copy and prints its recording."""
    made = recorded(client, 50)
    source = (made.recording_id, cli.archive.control_channel)
    answer = cli.json("replicate", *source, "--follow")
    copy = answer["dst_recording_id"]
    assert answer["position"] == made.end
    assert answer["signals"][0] == "replicate"
    assert answer["signals"][-1] == "replicate_end"
    payloads = [message.payload for message in client.replay(copy)]
    assert payloads == [payload for payload, _, _ in made.sent]
    half = made.sent[19][1]
    part = cli.json("replicate", *source, "--stop-position", half, "--session-id", 77, "--follow")
    descriptor = client.list_recording(part["dst_recording_id"])
    assert descriptor is not None
    assert (part["position"], descriptor.stop_position, descriptor.session_id) == (half, half, 77)
    rest = cli.json("replicate", *source, "--extend", part["dst_recording_id"], "--follow")
    assert "extend" in rest["signals"]
    assert client.stop_position(part["dst_recording_id"]) == made.end
    assert "9999" in cli.error("replicate", 0, cli.archive.control_channel, "--extend", 9999)
    for options in ["--follow"], []:
        failed = cli.run("replicate", 9999, cli.archive.control_channel, *options, expect=1)
        assert b"aerotape replicate: the archive reports an error" in failed.stderr
        assert failed.stdout == b""
    # There is no more data to copy.
    whole = cli.json("replicate", *source, "--extend", copy)
    assert set(whole) == {"replication_id", "src_recording_id", "src_control_channel"}


def test_stop_replication(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Without --follow the command only starts it; the printed id stops the replication."""
    live = start_recording(client, count=3)
    row = cli.record("replicate", live.recording_id, cli.archive.control_channel)
    assert cli.json("stop-replication", row["replication_id"])["stopped"] == "replication"
    assert "UNKNOWN_REPLICATION" in cli.error("stop-replication", row["replication_id"])
    stop(client, live)
