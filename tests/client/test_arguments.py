"""Arguments that no archive accepts are refused by name before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.daemon.archives import ServedArchive

import aerotape
from aerotape.errors import ClosedError, ConfigurationError

Ask = Callable[[Any], object]

REFUSED: list[tuple[Ask, str]] = [
    (lambda c: c.start_position(-1), "recording_id must be from 0"),
    (lambda c: c.stop_position("3"), "recording_id must be an integer, not '3'"),
    (lambda c: c.max_recorded_position(1 << 63), "recording_id"),
    (lambda c: list(c.list_recordings(-1)), "from_recording_id"),
    (lambda c: list(c.list_recordings(0, -1)), "count"),
    (lambda c: list(c.list_recordings_for_uri("é", 1)), "channel_fragment must be ASCII"),
    (lambda c: list(c.list_recordings_for_uri("", 1 << 31)), "stream_id"),
    (lambda c: list(c.list_recording_subscriptions(from_index=-1)), "from_index"),
    (lambda c: list(c.list_recording_subscriptions(3)), "channel_fragment must be text"),
    (lambda c: c.find_last_matching_recording(-1, "", 1, 1), "min_recording_id"),
    (lambda c: c.start_recording("not-aeron", 1), "channel: Aeron URIs must start with 'aeron:'"),
    (lambda c: c.start_recording("aeron:ipc?alias=é", 1), "channel must be ASCII"),
    (lambda c: c.start_recording(b"aeron:ipc", 1), "channel must be text"),
    (lambda c: c.start_recording("aeron:ipc", 1.5), "stream_id must be an integer"),
    (lambda c: c.start_recording("aeron:ipc", 1, "remotely"), "source location"),
    (lambda c: c.start_recording("aeron:ipc", 1, None), "source location"),
    (lambda c: c.extend_recording(0, "bogus", 1), "channel"),
    (lambda c: c.stop_recording("aeron:ipc", None), "stream_id"),
    (lambda c: c.stop_recording_subscription("1"), "subscription_id"),
    (lambda c: c.truncate_recording(0, -1), "position"),
    (lambda c: c.purge_recording(None), "recording_id"),
    (lambda c: c.detach_segments(0, -64), "new_start_position"),
    (lambda c: c.migrate_segments(0, -1), "dst_recording_id"),
    (lambda c: c.start_replay(0, "aeron:ipc", 1, position=-2), "position"),
    (lambda c: c.start_replay(0, "aeron:ipc", 1, length=-3), "length"),
    (lambda c: c.start_replay(0, "aeron:ipc", 1, file_io_max_length=0), "file_io_max_length"),
    (lambda c: c.start_bounded_replay(0, "aeron:ipc", 1, -1), "limit_counter_id"),
    (lambda c: c.replay(0, "0"), "position"),
    (lambda c: c.stop_replay(1 << 63), "replay_session_id"),
    (lambda c: c.replicate(0, "bogus"), "src_control_channel"),
    (lambda c: c.replicate(0, "aeron:ipc", live_destination="x"), "live_destination"),
    (lambda c: c.replicate(0, "aeron:ipc", stop_position=-7), "stop_position"),
    (lambda c: c.replicate(0, "aeron:ipc", encoded_credentials="x"), "encoded_credentials"),
    (
        lambda c: c.replicate(
            0, "aeron:ipc", live_destination="aeron:ipc", replication_session_id=1
        ),
        "either live_destination or replication_session_id",
    ),
    (lambda c: c.signals("START"), "'START' is not a RecordingSignal"),
    (lambda c: c.await_signal(1), "1 is not a RecordingSignal"),
]


def test_refused_before_sending(archive: ServedArchive) -> None:
    """Each is a one-line error that names the argument; nothing reaches the archive."""
    with archive.connect() as client:
        position = client._session.publication.position
        for ask, complaint in REFUSED:
            with pytest.raises(ConfigurationError) as caught:
                ask(client)
            assert complaint in str(caught.value)
            assert "\n" not in str(caught.value)
        assert client._session.publication.position == position


CALLS: list[Ask] = [
    lambda c: c.start_recording("aeron:ipc", 1),
    lambda c: list(c.list_recordings()),
    lambda c: c.list_recording(0),
    lambda c: c.start_replay(0, "aeron:ipc", 1),
    lambda c: c.replay(0),
    lambda c: c.signals(),
    lambda c: c.await_signal(),
    lambda c: c.poll_for_recording_signals(),
    lambda c: c.poll_for_errors(),
    lambda c: c.keep_alive(),
    lambda c: c.ping(),
]


def test_closed_client(archive: ServedArchive) -> None:
    """All requests of a closed client raise ClosedError; closing may be repeated."""
    client = archive.connect()
    client.close()
    client.close()
    assert client.is_closed
    for call in CALLS:
        with pytest.raises(ClosedError, match=r"^cannot .*: the client is closed$"):
            call(client)


def test_every_request_is_documented() -> None:
    """Methods of both clients have their documentation and signature."""
    import inspect

    method = aerotape.ArchiveClient.truncate_recording
    assert "Cut a stopped recording off" in (method.__doc__ or "")
    assert str(inspect.signature(method)) == "(self, recording_id: 'int', position: 'int') -> 'int'"
    assert method.__name__ == "truncate_recording"
    shown = inspect.signature(aerotape.ArchiveClient.list_recordings)
    assert shown.return_annotation == "Iterator[RecordingDescriptor]"
    for client, returned in (
        (aerotape.ArchiveClient, "Replay"),
        (aerotape.AsyncArchiveClient, "Opening[AsyncReplay]"),
    ):
        assert client.replay.__name__ == "replay"
        shown = inspect.signature(client.replay)
        assert shown.return_annotation == returned
        assert list(shown.parameters)[:4] == ["self", "recording_id", "position", "length"]
        assert "Replay a recording and return its messages" in (client.replay.__doc__ or "")
