"""Extending, truncating, purging and renaming recordings."""

from __future__ import annotations

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import (
    Made,
    new_stream_id,
    recorded,
    start_recording,
    stop,
    wait_until,
)

import aerotape
from aerotape.errors import (
    ActiveRecordingError,
    ArchiveError,
    ConfigurationError,
    UnknownRecordingError,
)


def continuing(client: aerotape.ArchiveClient, made: Made) -> str:
    """The channel of a publication that continues at the end of a recording.

    With a new session id: the driver may not yet have closed the recorded publication.
    """
    found = client.list_recording(made.recording_id)
    assert found is not None
    return aerotape.extension_channel(found, f"aeron:ipc?session-id={made.session_id ^ 1}")


def test_extend(client: aerotape.ArchiveClient) -> None:
    """An extended recording continues at its stop position, and replays as one stream."""
    made = recorded(client, 20)
    channel = continuing(client, made)
    subscription_id = client.extend_recording(made.recording_id, channel, made.stream_id)
    with client.aeron.add_exclusive_publication(channel, made.stream_id) as publication:
        end = publication.send(b"more")
        wait_until(lambda: client.recording_position(made.recording_id) == end, "the extension")
        client.stop_recording_subscription(subscription_id)
        wait_until(lambda: client.stop_position(made.recording_id) == end, "the stop")
        found = client.list_recording(made.recording_id)
        assert found is not None
        assert found.session_id == publication.session_id
    payloads = [message.payload for message in client.replay(made.recording_id)]
    assert payloads == [payload for payload, _, _ in made.sent] + [b"more"]


def test_extend_refused(client: aerotape.ArchiveClient) -> None:
    """A live recording, an unknown one, and a stream that does not match are refused."""
    live = start_recording(client, count=1)
    found = client.list_recording(live.recording_id)
    assert found is not None
    with pytest.raises(ConfigurationError, match=f"recording {live.recording_id} is live"):
        aerotape.extension_channel(found, "aeron:ipc")
    with pytest.raises(ActiveRecordingError) as active:
        client.extend_recording(live.recording_id, "aeron:ipc", live.stream_id)
    assert active.value.error_code == aerotape.ErrorCode.ACTIVE_RECORDING
    stop(client, live)
    with pytest.raises(UnknownRecordingError, match="extend recording 9999 from") as unknown:
        client.extend_recording(9999, "aeron:ipc", live.stream_id)
    assert unknown.value.recording_id == 9999
    with pytest.raises(ArchiveError, match=r"existing streamId|it has streamId"):
        client.extend_recording(live.recording_id, "aeron:ipc", live.stream_id + 100_000)


def test_extend_with_auto_stop(client: aerotape.ArchiveClient) -> None:
    """With auto_stop, the end of the stream ends the recording subscription too."""
    made = recorded(client, 2)
    channel = continuing(client, made)
    subscription_id = client.extend_recording(
        made.recording_id, channel, made.stream_id, aerotape.SourceLocation.LOCAL, auto_stop=True
    )
    with client.aeron.add_exclusive_publication(channel, made.stream_id) as publication:
        end = publication.send(b"more")
        wait_until(lambda: client.recording_position(made.recording_id) == end, "the extension")
    wait_until(lambda: client.stop_position(made.recording_id) == end, "the stop")
    wait_until(
        lambda: not client.try_stop_recording_subscription(subscription_id), "the automatic stop"
    )


def test_truncate(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """Data past the position is removed, and segment files with only such data are deleted."""
    made = recorded(client, 200)
    position = made.sent[9][1]
    deleted = client.truncate_recording(made.recording_id, position)
    assert deleted == made.end // 65536 - position // 65536
    assert client.stop_position(made.recording_id) == position
    payloads = [message.payload for message in client.replay(made.recording_id)]
    assert payloads == [payload for payload, _, _ in made.sent[:10]]
    files = [each.name for each in archive.archive_dir.glob(f"{made.recording_id}-*.rec")]
    assert files == [f"{made.recording_id}-0.rec"]


def test_truncate_refused(client: aerotape.ArchiveClient) -> None:
    """Refused within a frame, past the end, and for live or unknown recordings; no data is lost."""
    made = recorded(client, 3)
    for position in (made.end + 32, 8):
        with pytest.raises(ArchiveError):
            client.truncate_recording(made.recording_id, position)
    assert client.stop_position(made.recording_id) == made.end
    with pytest.raises(UnknownRecordingError):
        client.truncate_recording(9999, 0)
    live = start_recording(client, count=1)
    with pytest.raises(ActiveRecordingError):
        client.truncate_recording(live.recording_id, 0)
    stop(client, live)


def test_purge(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """A purged recording is removed from listing and directory; a live one is refused."""
    live = start_recording(client, count=100)
    with pytest.raises(ActiveRecordingError):
        client.purge_recording(live.recording_id)
    stop(client, live)
    assert client.purge_recording(live.recording_id) == live.end // 65536 + 1
    assert client.list_recording(live.recording_id) is None
    with pytest.raises(UnknownRecordingError):
        client.purge_recording(live.recording_id)
    wait_until(lambda: not list(archive.archive_dir.glob(f"{live.recording_id}-*")), "the deletion")


def test_update_channel(client: aerotape.ArchiveClient) -> None:
    """The descriptor has the new channel, stripped and original; other fields are unchanged."""
    made = recorded(client, 1)
    channel = "aeron:udp?endpoint=localhost:20121|term-length=64k"
    client.update_channel(made.recording_id, channel)
    found = client.list_recording(made.recording_id)
    assert found is not None
    assert found.original_channel == channel
    assert found.stripped_channel == "aeron:udp?endpoint=localhost:20121"
    assert (found.stop_position, found.stream_id) == (made.end, made.stream_id)
    with pytest.raises(UnknownRecordingError):
        client.update_channel(9999, channel)


def test_stop_recording_session(client: aerotape.ArchiveClient) -> None:
    """A recorded publication is stopped by its session; other recordings continue."""
    stream_id = new_stream_id()
    with (
        client.add_recorded_exclusive_publication("aeron:ipc", stream_id) as first,
        client.add_recorded_exclusive_publication("aeron:ipc", stream_id) as second,
    ):
        assert first.session_id != second.session_id
        wait_until(
            lambda: len(list(client.list_recordings_for_uri("", stream_id))) == 2, "the recordings"
        )
        client.stop_recording_session("aeron:ipc", stream_id, first.session_id)
        with pytest.raises(aerotape.UnknownSubscriptionError):
            client.stop_recording_session("aeron:ipc", stream_id, first.session_id)
        client.stop_recording_session("aeron:ipc", stream_id, second.session_id)


def test_list_recording_subscriptions(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recording subscriptions are listed by page, channel and stream, until they are stopped."""
    from aerotape.archive.client.requests.queries import Pages

    monkeypatch.setattr(Pages, "page_length", 2)
    channel = "aeron:udp?endpoint=localhost:20777"
    stream_ids = [new_stream_id() for _ in range(5)]
    ids = {
        client.start_recording(f"{channel}|mtu=1408", each, "remote"): each for each in stream_ids
    }
    listed = {
        each.subscription_id: each.stream_id
        for each in client.list_recording_subscriptions("localhost:20777")
    }
    assert listed == ids
    (one,) = client.list_recording_subscriptions(stream_id=stream_ids[2])
    assert one.stripped_channel == channel
    assert ids[one.subscription_id] == one.stream_id == stream_ids[2]
    in_order = list(client.list_recording_subscriptions("localhost:20777"))
    later = client.list_recording_subscriptions("localhost:20777", from_index=2, count=2)
    assert list(later) == in_order[2:4]
    assert list(client.list_recording_subscriptions("no such channel")) == []
    for subscription_id in ids:
        client.stop_recording_subscription(subscription_id)
    assert list(client.list_recording_subscriptions("localhost:20777")) == []
