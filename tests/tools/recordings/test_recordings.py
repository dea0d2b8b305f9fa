"""Commands for recordings, run as a user runs them."""

from __future__ import annotations

import json
import os
import pty
from datetime import UTC, datetime
from pathlib import Path

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
from aerotape.formatting import bytes_text

SEGMENT = 65536


def test_record_and_stop(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """A recording that `record` starts continues until `stop` with the channel or the printed
    id."""
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
        "recorded_bytes": second.end,
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
    assert ids("--live") == [live.recording_id]
    assert ids("--live", "--count", 1) == [live.recording_id]
    assert ids("--live", "--stream-id", first.stream_id) == []
    assert ids("--alias", "prices") == []
    (only,) = cli.json("list", "--id", second.recording_id)
    assert only == rows[1]
    table = cli.run("list", "--from", first.recording_id).stdout.decode().splitlines()
    assert table[0].split() == [
        "id", "started", "stopped", "start", "position", "bytes", "stream", "session", "channel",
        "source",
    ]  # fmt: skip
    stopped = f"{datetime.fromtimestamp(descriptor.stop_timestamp_ms / 1000, UTC):%H:%M:%SZ}"
    assert f"  {stopped}  " in table[2]
    assert f"  {bytes_text(second.end)}  " in table[2]
    assert "  live  " in table[3]
    assert "there is no recording 9999" in cli.error("list", "--id", 9999)
    stop(client, live)


def test_list_by_alias(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """The alias of the channel as a whole, not a part of it."""
    prices = recorded(client, 1, "aeron:ipc?alias=prices")
    more = recorded(client, 1, "aeron:ipc?alias=prices-2|linger=0")
    for alias, made in (("prices", prices), ("prices-2", more)):
        rows = cli.json("list", "--from", prices.recording_id, "--alias", alias)
        assert [row["recording_id"] for row in rows] == [made.recording_id]
    assert "--id" in cli.error("list", "--id", 0, "--live", code=2)


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
        assert cli.record("position", made.recording_id)["recording_position"] == str(end)
    wait_until(lambda: client.stop_position(made.recording_id) == end, "the stop")
    assert "recording 9999" in cli.error("position", 9999)


def test_truncate_and_purge(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Both require a confirmation: without a terminal, --yes."""
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
    # No data would be lost: no question, and the archive's own error.
    assert "INVALID_POSITION" in cli.error("truncate", made.recording_id, position + 32)
    assert "--yes" in cli.error("purge", made.recording_id, code=2)
    purged = cli.record("purge", made.recording_id, "-y")
    assert purged == {"recording_id": str(made.recording_id), "segment_files_deleted": "1"}
    assert client.list_recording(made.recording_id) is None
    assert "UNKNOWN_RECORDING" in cli.error("purge", made.recording_id, "-y")
    # There is no question for a request that cannot succeed.
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
    """On a terminal the question describes the change; only yes confirms it."""
    made = recorded(client, 1)
    master, slave = pty.openpty()
    process = cli.start("purge", made.recording_id, stdin=slave)
    os.close(slave)
    os.write(master, answer.encode())
    _, errors = process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == code
    assert f"delete recording {made.recording_id} with all its segment files".encode() in errors
    assert (b"nothing was done" in errors) is (code == 1)
    assert (client.list_recording(made.recording_id) is None) is (code == 0)


def test_segments(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """Detach, attach, delete and purge move the start position and print the files."""
    made = recorded(client, 200)
    recording = made.recording_id
    assert cli.json("segments", "detach", recording, 3 * SEGMENT) == {
        "recording_id": recording,
        "start_position": 3 * SEGMENT,
    }
    attached = cli.record("segments", "-v", "attach", recording)
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
    """Active subscriptions are listed by channel, stream and number."""
    streams = [new_stream_id() for _ in range(3)]
    channel = "aeron:udp?endpoint=localhost:20779"
    ids = [client.start_recording(channel, each, "remote") for each in streams]
    rows = cli.json("subscriptions", "--channel", "20779")
    # The Java archive lists them in the order of a hash map.
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
    """The descriptor has the new channel, by which the recording can be found."""
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
