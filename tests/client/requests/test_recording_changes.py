"""Requests that change recordings."""

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
from aerotape.errors import ActiveRecordingError, UnknownRecordingError

TERM = 65536


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
        with pytest.raises(aerotape.errors.UnknownSubscriptionError):
            client.stop_recording_session("aeron:ipc", stream_id, first.session_id)
        client.stop_recording_session("aeron:ipc", stream_id, second.session_id)


def test_list_recording_subscriptions(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recording subscriptions are listed by page, channel and stream, until they are stopped."""
    from aerotape.client.queries import Pages

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


def test_migrate(client: aerotape.ArchiveClient) -> None:
    """Segments of a recording are prepended to the recording that continues it."""
    term = f"aeron:ipc?term-length={TERM}|init-term-id=7"
    source_channel = f"{term}|term-id=7|term-offset=0"
    stream_id = recorded(client, 1).stream_id + 500_000
    with client.add_recorded_exclusive_publication(source_channel, stream_id) as publication:
        while publication.send(b"x" * 992) < 2 * TERM:
            pass
        end = publication.position
        wait_until(
            lambda: any(
                client.recording_position(each.recording_id) == end
                for each in client.list_recordings_for_uri("", stream_id)
            ),
            "the recording",
        )
    (source,) = client.list_recordings_for_uri("", stream_id)
    wait_until(lambda: client.stop_position(source.recording_id) == end, "the stop")
    assert end == 2 * TERM
    channel = f"{term}|term-id=9|term-offset=0"
    with client.add_recorded_exclusive_publication(channel, stream_id) as publication:
        assert publication.send(b"y" * 992) == end + 1024
        wait_until(
            lambda: any(
                client.recording_position(each.recording_id) == end + 1024
                for each in client.list_recordings_for_uri("", stream_id)
                if each.recording_id != source.recording_id
            ),
            "the second recording",
        )
    (_, target) = client.list_recordings_for_uri("", stream_id)
    wait_until(lambda: client.stop_position(target.recording_id) == end + 1024, "the second stop")
    assert target.start_position == end
    moved = client.migrate_segments(source.recording_id, target.recording_id)
    assert moved == 2
    assert client.start_position(target.recording_id) == 0
    payloads = [message.payload for message in client.replay(target.recording_id)]
    assert payloads == [b"x" * 992] * 128 + [b"y" * 992]
    assert client.start_position(source.recording_id) == client.stop_position(source.recording_id)
