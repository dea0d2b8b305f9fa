"""One command for each control request, against the Java archive and against ours."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.daemon.recording import (
    Made,
    new_stream_id,
    recorded,
    start_recording,
    stop,
    wait_until,
)

import aerotape
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.tools.signals import changes

if TYPE_CHECKING:
    from .conftest import CommandLine

SEGMENT = 65536


@pytest.fixture
def client(cli: CommandLine) -> Iterator[aerotape.ArchiveClient]:
    """A client of the archive that the commands talk to."""
    with cli.archive.connect() as connected:
        yield connected


def text(done: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    """The record that a command has printed for people."""
    lines = [line.partition(":") for line in done.stdout.decode().splitlines()]
    return {name: value.strip() for name, _, value in lines}


def test_extend_and_position(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A recording is extended by a publication that starts at its stop position."""
    made = recorded(client, 5)
    before = cli.json("position", made.recording_id)
    parameters = before.pop("extension_parameters")
    assert before == {
        "recording_id": made.recording_id,
        "start_position": 0,
        "recording_position": -1,
        "stop_position": made.end,
        "max_recorded_position": made.end,
        "length_bytes": made.end,
        "segment_file_length": SEGMENT,
        "term_buffer_length": SEGMENT,
    }
    channel = f"aeron:ipc?{parameters}|session-id={made.session_id ^ 1}"
    answer = cli.json("extend", made.recording_id, channel, made.stream_id, "--auto-stop")
    assert (answer["recording_id"], answer["auto_stop"]) == (made.recording_id, True)
    with client.aeron.add_exclusive_publication(channel, made.stream_id) as publication:
        end = publication.send(b"more")
        wait_until(lambda: client.recording_position(made.recording_id) == end, "the extension")
        assert text(cli.run("position", made.recording_id))["recording_position"] == str(end)
    wait_until(lambda: client.stop_position(made.recording_id) == end, "the stop")
    assert "recording 9999" in cli.error("position", 9999)


def test_truncate_and_purge(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Both ask first: without a terminal nothing is done unless --yes says so."""
    made = recorded(client, 100)
    position = made.sent[9][1]
    unasked = cli.error("truncate", made.recording_id, position, code=2)
    assert "--yes" in unasked
    assert f"{made.end - position} bytes" in unasked
    assert client.stop_position(made.recording_id) == made.end
    assert cli.json("truncate", made.recording_id, position, "--yes") == {
        "recording_id": made.recording_id,
        "stop_position": position,
        "bytes_removed": made.end - position,
        "segment_files_deleted": made.end // SEGMENT - position // SEGMENT,
    }
    assert "position" in cli.error("truncate", made.recording_id, 8, "--yes")
    # Nothing would be lost: no question, and the archive's own answer.
    assert "INVALID_POSITION" in cli.error("truncate", made.recording_id, position + 32)
    assert "--yes" in cli.error("purge", made.recording_id, code=2)
    purged = text(cli.run("purge", made.recording_id, "-y"))
    assert purged == {"recording_id": str(made.recording_id), "segment_files_deleted": "1"}
    assert client.list_recording(made.recording_id) is None
    assert "UNKNOWN_RECORDING" in cli.error("purge", made.recording_id, "-y")
    # What cannot be done is not asked about.
    assert "UNKNOWN_RECORDING" in cli.error("purge", made.recording_id)
    live = start_recording(client, count=1)
    assert "is live: stop it first" in cli.error("truncate", live.recording_id, 0, "-y")
    assert "is live: stop it first" in cli.error("purge", live.recording_id)
    assert "ACTIVE_RECORDING" in cli.error("purge", live.recording_id, "-y")
    stop(client, live)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("no\n", 1), ("\n", 1)])
def test_asks_on_a_terminal(
    cli: CommandLine, client: aerotape.ArchiveClient, answer: str, code: int
) -> None:
    """On a terminal the question names the deed; only yes does it."""
    made = recorded(client, 1)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        cli.command("purge", made.recording_id),
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=cli.environment,
    )
    os.close(slave)
    os.write(master, answer.encode())
    _, errors = process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == code
    assert f"delete recording {made.recording_id} with all its segment files".encode() in errors
    assert (b"nothing was done" in errors) is (code == 1)
    assert (client.list_recording(made.recording_id) is None) is (code == 0)


def test_segments(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Detach, attach, delete and purge move the start and print the files."""
    made = recorded(client, 200)
    recording = made.recording_id
    assert cli.json("segments", "detach", recording, 3 * SEGMENT) == {
        "recording_id": recording,
        "start_position": 3 * SEGMENT,
    }
    attached = text(cli.run("segments", "-v", "attach", recording))
    assert (attached["start_position"], attached["segment_files_attached"]) == ("0", "3")
    detached = json.loads(cli.run("segments", "--json", "detach", recording, SEGMENT).stdout)
    assert detached["start_position"] == SEGMENT
    assert "--yes" in cli.error("segments", "delete", recording, code=2)
    assert cli.json("segments", "delete", recording, "--yes")["segment_files_deleted"] == 1
    assert "--yes" in cli.error("segments", "purge", recording, 2 * SEGMENT, code=2)
    wait_until(lambda: not _file(cli, made, 0).exists(), "the deletion")
    purged = cli.json("segments", "purge", recording, 2 * SEGMENT, "-y")
    assert (purged["start_position"], purged["segment_files_deleted"]) == (2 * SEGMENT, 1)
    wait_until(lambda: not _file(cli, made, SEGMENT).exists(), "the second deletion")
    other = recorded(client, 1)
    refused = cli.error("segments", "migrate", recording, other.recording_id)
    assert f"migrate the segments of recording {recording}" in refused
    cli.error("segments", "detach", recording, 64)
    assert "UNKNOWN_RECORDING" in cli.error("segments", "delete", 9999)
    assert "UNKNOWN_RECORDING" in cli.error("segments", "purge", 9999, SEGMENT)


def _file(cli: CommandLine, made: Made, position: int) -> Path:
    return cli.archive.archive_dir / f"{made.recording_id}-{position}.rec"


def test_subscriptions(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """What is being recorded is listed, by channel, stream and number."""
    streams = [new_stream_id() for _ in range(3)]
    channel = "aeron:udp?endpoint=localhost:20779"
    ids = [client.start_recording(channel, each, "remote") for each in streams]
    rows = cli.json("subscriptions", "--channel", "20779")
    # The Java archive's order is that of a hash map.
    assert sorted(row["subscription_id"] for row in rows) == sorted(ids)
    assert {row["channel"] for row in rows} == {channel}
    (row,) = cli.json("subscriptions", "--stream-id", streams[1])
    assert row["subscription_id"] == ids[1]
    assert len(cli.json("subscriptions", "--channel", "20779", "--count", 2)) == 2
    table = cli.run("subscriptions", "--stream-id", streams[0]).stdout.decode()
    assert table.split()[:3] == ["subscription_id", "stream_id", "channel"]
    for each in ids:
        client.stop_recording_subscription(each)
    assert cli.json("subscriptions", "--channel", "20779") == []


def test_update_channel_and_find(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """The descriptor names the new channel, by which the recording is found again."""
    made = recorded(client, 1)
    channel = "aeron:udp?endpoint=localhost:20780|mtu=1408"
    answer = cli.json("update-channel", made.recording_id, channel)
    assert answer == {
        "recording_id": made.recording_id,
        "stripped_channel": "aeron:udp?endpoint=localhost:20780",
        "original_channel": channel,
    }
    sought = ("localhost:20780", made.stream_id, made.session_id)
    assert cli.json("find", *sought) == {"recording_id": made.recording_id}
    assert "no recording of" in cli.error("find", *sought, "--from", made.recording_id + 1)
    assert "recording 9999" in cli.error("update-channel", 9999, channel)


def test_ping(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """The archive id and the round-trip times."""
    answer = cli.json("ping", "--count", 3)
    assert (answer["archive_id"], answer["round_trips"]) == (client.archive_id, 3)
    assert answer["protocol_version"] == client.archive_version
    assert 0 < answer["min_us"] <= answer["median_us"] <= answer["max_us"]
    assert "--count" in cli.error("ping", "--count", 0, code=2)


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
        with pytest.raises(aerotape.ReplayError):
            next(replay)
    stop(client, live)
    if cli.archive.kind == "aerotape":
        assert "no replay 9999" in cli.error("stop-replay", 9999)
        assert "no replay 9999" in cli.error("stop-replay", 9999, "--json")
    else:  # the Java archive reports success
        cli.run("stop-replay", 9999)
    assert "give either" in cli.error("stop-replay", code=2)
    assert "give either" in cli.error("stop-replay", 1, "--all", code=2)


def test_bounded_replay(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A replay does not go beyond the counter that bounds it."""
    made = recorded(client, 20)
    limit = made.sent[9][1]
    counter = client.aeron.native.add_counter(1001, b"", "limit of a replay")
    counter.set(limit)
    process = subprocess.Popen(
        cli.command(
            *("replay", made.recording_id, "--print", "--json"),
            *("--limit-counter", counter.id, "--file-io-max-length", 4096),
        ),
        stdout=subprocess.PIPE,
        env=cli.environment,
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
    assert (part["position"], client.stop_position(part["dst_recording_id"])) == (half, half)
    rest = cli.json("replicate", *source, "--extend", part["dst_recording_id"], "--follow")
    assert "extend" in rest["signals"]
    assert client.stop_position(part["dst_recording_id"]) == made.end
    assert "9999" in cli.error("replicate", 0, cli.archive.control_channel, "--extend", 9999)
    for options in ["--follow"], []:
        failed = cli.run("replicate", 9999, cli.archive.control_channel, *options, expect=1)
        assert b"aerotape replicate: the archive reports an error" in failed.stderr
        assert failed.stdout == b""
    # There is nothing more to copy.
    whole = cli.json("replicate", *source, "--extend", copy)
    assert set(whole) == {"replication_id", "src_recording_id", "src_control_channel"}


def test_stop_replication(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Without --follow the command only begins; the printed id stops the replication."""
    live = start_recording(client, count=3)
    row = text(cli.run("replicate", live.recording_id, cli.archive.control_channel))
    assert cli.json("stop-replication", row["replication_id"])["stopped"] == "replication"
    assert "UNKNOWN_REPLICATION" in cli.error("stop-replication", row["replication_id"])
    stop(client, live)


def test_signals(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Starts and stops of others' recordings are printed as they happen."""
    stream_id = new_stream_id()
    watcher = subprocess.Popen(
        cli.command("signals", "--json", "--interval", "20ms", "--stream-id", stream_id),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=cli.environment,
        text=True,
    )
    try:
        assert watcher.stdout is not None and watcher.stderr is not None
        assert "watching" in watcher.stderr.readline()
        subscription_id = client.start_recording("aeron:ipc", stream_id)
        with client.aeron.add_publication("aeron:ipc", stream_id) as publication:
            end = publication.send(b"hello")
            started = json.loads(watcher.stdout.readline())
            assert (started["signal"], started["position"]) == ("start", 0)
            assert started["stream_id"] == stream_id
            wait_until(
                lambda: client.recording_position(started["recording_id"]) == end, "the recording"
            )
            client.stop_recording_subscription(subscription_id)
        stopped = json.loads(watcher.stdout.readline())
        assert stopped["signal"] == "stop"
        assert (stopped["recording_id"], stopped["position"]) == (started["recording_id"], end)
        client.purge_recording(started["recording_id"])
        assert json.loads(watcher.stdout.readline())["signal"] == "delete"
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(20) == 130
    finally:
        watcher.kill()
        watcher.communicate()


def _descriptor(recording_id: int, stop_position: int) -> RecordingDescriptor:
    return RecordingDescriptor(
        recording_id=recording_id,
        start_timestamp_ms=1,
        stop_timestamp_ms=1,
        start_position=64,
        stop_position=stop_position,
        initial_term_id=0,
        segment_file_length=SEGMENT,
        term_buffer_length=SEGMENT,
        mtu_length=1408,
        session_id=5,
        stream_id=6,
        stripped_channel="aeron:ipc",
        original_channel="aeron:ipc",
        source_identity="aeron:ipc",
    )


def test_what_happened_between_two_looks() -> None:
    """Every difference between two listings is reported, in the order of recording ids."""

    def told(known: dict[int, int], now: dict[int, int]) -> list[tuple[str, int, int]]:
        before = {each: _descriptor(each, end) for each, end in known.items()}
        after = {each: _descriptor(each, end) for each, end in now.items()}
        return [(e.signal, e.recording_id, e.position) for e in changes(before, after)]

    assert told({}, {}) == []
    assert told({1: -1}, {1: -1}) == []
    assert told({}, {3: -1}) == [("start", 3, 64)]
    assert told({}, {3: 128}) == [("start", 3, 64), ("stop", 3, 128)]
    assert told({3: -1}, {3: 128}) == [("stop", 3, 128)]
    assert told({3: 128}, {3: -1}) == [("extend", 3, 128)]
    assert told({3: 128}, {3: 256}) == [("extend", 3, 128), ("stop", 3, 256)]
    assert told({3: 128}, {3: 64}) == []
    assert told({2: 128, 4: -1}, {5: -1}) == [
        ("delete", 2, -1),
        ("delete", 4, -1),
        ("start", 5, 64),
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["extend", -1, "aeron:ipc", 1], "RECORDING_ID"),
        (["extend", 0, "bogus", 1], "CHANNEL"),
        (["truncate", 0, -64, "-y"], "POSITION"),
        (["truncate", 0], "POSITION"),
        (["purge", "x", "-y"], "RECORDING_ID"),
        (["segments"], "ACTION"),
        (["segments", "burn", 0], "burn"),
        (["segments", "migrate", 0], "TARGET_ID"),
        (["segments", "detach", 0, -1], "POSITION"),
        (["subscriptions", "--channel", "\u00f6"], "ASCII"),
        (["update-channel", 0, "aeron:tcp"], "CHANNEL"),
        (["position", -1], "RECORDING_ID"),
        (["find", "x", 1 << 31, 0], "STREAM_ID"),
        (["replicate", 0, "bogus"], "SOURCE_CHANNEL"),
        (["replicate", 0, "aeron:ipc", "--file-io-max-length", 0], "--file-io-max-length"),
        (
            ["replicate", 0, "aeron:ipc", "--live-destination", "aeron:ipc", "--session-id", 1],
            "--session-id",
        ),
        (["stop-replication", "x"], "REPLICATION_ID"),
        (["signals", "--interval", "soon"], "--interval"),
        (["replay", 0, "--limit-counter", -1], "--limit-counter"),
    ],
)
def test_arguments_that_cannot_be(
    tmp_path: Path, cli: CommandLine, arguments: list[object], complaint: str
) -> None:
    """What no archive could take is a usage error that names the argument, before any connect."""
    environment = {**cli.environment, "AERON_DIR": str(tmp_path / "no-driver")}
    assert complaint in cli.error(*arguments, code=2, env=environment)
