"""Requests that start, stop, list and query recordings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import new_stream_id, recorded, wait_until
from support.jvm.java import free_port

import aerotape
from aerotape.client import queries
from aerotape.errors import AeronTimeoutError, ArchiveError


def _code(call: Callable[[], object]) -> int:
    with pytest.raises(ArchiveError) as caught:
        call()
    return caught.value.error_code


def test_a_spy_does_not_connect_a_publication_without_ssc(
    client: aerotape.ArchiveClient,
) -> None:
    """A UDP stream without another subscriber: the timeout error has the remedies."""
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    stream_id = new_stream_id()
    client.start_recording(channel, stream_id)
    with client.aeron.add_publication(channel, stream_id) as publication:
        waits: list[Callable[[int], object]] = [
            partial(publication.send, b"x"),
            publication.wait_connected,
        ]
        for wait in waits:
            with pytest.raises(AeronTimeoutError) as caught:
                wait(50_000_000)
            assert "no subscriber is connected" in str(caught.value)
            assert "add ssc=true to the channel" in str(caught.value)
            assert "aeron.spies.simulate.connection=true" in str(caught.value)
    client.stop_recording(channel, stream_id)

    def is_recorded(by: str, source: Literal["local", "remote"]) -> None:
        stream_id = new_stream_id()
        subscription_id = client.start_recording(by, stream_id, source)
        with client.aeron.add_publication(by, stream_id) as publication:
            end = publication.send(b"x")
            started = client.await_signal(aerotape.RecordingSignal.START)
            while started.subscription_id != subscription_id:
                started = client.await_signal(aerotape.RecordingSignal.START)
            wait_until(
                lambda: client.max_recorded_position(started.recording_id) == end, "the recording"
            )
        client.stop_recording_subscription(subscription_id)

    is_recorded(f"{channel}|ssc=true", "local")
    is_recorded(channel, "remote")


def test_stop_by_channel(client: aerotape.ArchiveClient) -> None:
    """Recording twice and stopping twice are refused with the reference's codes."""
    stream_id = new_stream_id()
    client.start_recording("aeron:ipc", stream_id)
    again = _code(lambda: client.start_recording("aeron:ipc", stream_id))
    assert again == aerotape.ErrorCode.ACTIVE_SUBSCRIPTION
    client.stop_recording("aeron:ipc", stream_id)
    gone = _code(lambda: client.stop_recording("aeron:ipc", stream_id))
    assert gone == aerotape.ErrorCode.UNKNOWN_SUBSCRIPTION
    assert client.try_stop_recording("aeron:ipc", stream_id) is False
    client.start_recording("aeron:ipc", stream_id)
    assert client.try_stop_recording("aeron:ipc", stream_id) is True


def test_stop_by_subscription(client: aerotape.ArchiveClient) -> None:
    """The id that start_recording returns stops the recording, once."""
    subscription_id = client.start_recording("aeron:ipc", new_stream_id())
    client.stop_recording_subscription(subscription_id)
    gone = _code(lambda: client.stop_recording_subscription(subscription_id))
    assert gone == aerotape.ErrorCode.UNKNOWN_SUBSCRIPTION
    assert client.try_stop_recording_subscription(subscription_id) is False
    another = client.start_recording("aeron:ipc", new_stream_id())
    assert client.try_stop_recording_subscription(another) is True


def test_auto_stop(client: aerotape.ArchiveClient) -> None:
    """With auto_stop, the end of the stream ends the recording subscription too."""
    stream_id = new_stream_id()
    subscription_id = client.start_recording("aeron:ipc", stream_id, auto_stop=True)
    publication = client.aeron.add_publication("aeron:ipc", stream_id)
    publication.send(b"only")
    wait_until(lambda: any(client.list_recordings_for_uri("", stream_id)), "the recording's start")
    publication.close()
    (found,) = client.list_recordings_for_uri("", stream_id)
    wait_until(lambda: client.stop_position(found.recording_id) == 64, "the stop")
    wait_until(
        lambda: not client.try_stop_recording_subscription(subscription_id), "the automatic stop"
    )


def test_remote_source(client: aerotape.ArchiveClient) -> None:
    """A source location is a name or an enum member; "remote" records over the network."""
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    stream_id = new_stream_id()
    subscription_id = client.start_recording(channel, stream_id, aerotape.SourceLocation.REMOTE)
    with client.aeron.add_publication(channel, stream_id) as publication:
        end = publication.send(b"over the wire")
        wait_until(
            lambda: any(
                client.max_recorded_position(found.recording_id) == end
                for found in client.list_recordings_for_uri(channel[10:], stream_id)
            ),
            "the recording",
        )
        (found,) = client.list_recordings_for_uri("", stream_id)
        assert found.stripped_channel == channel
        assert found.source_identity.startswith("127.0.0.1:")
        client.stop_recording_subscription(subscription_id)


def test_recorded_publication(client: aerotape.ArchiveClient) -> None:
    """add_recorded_publication records only the session that it adds."""
    stream_id = new_stream_id()
    with client.add_recorded_publication("aeron:ipc", stream_id) as publication:
        other = client.aeron.add_exclusive_publication("aeron:ipc", stream_id)
        publication.send(b"kept")
        wait_until(
            lambda: any(client.list_recordings_for_uri("", stream_id)), "the recording's start"
        )
        (found,) = client.list_recordings_for_uri("", stream_id)
        assert found.session_id == publication.session_id != other.session_id
        other.close()


def test_descriptor(client: aerotape.ArchiveClient) -> None:
    """list_recording returns a recording's descriptor, None for an unknown recording."""
    made = recorded(client, 3)
    found = client.list_recording(made.recording_id)
    assert found is not None
    assert (found.recording_id, found.stream_id) == (made.recording_id, made.stream_id)
    assert found.session_id == made.session_id
    assert (found.start_position, found.stop_position) == (0, made.end)
    assert found.stripped_channel == found.original_channel == "aeron:ipc"
    assert (found.term_buffer_length, found.segment_file_length) == (65536, 65536)
    assert found.mtu_length == 1408
    assert found.source_identity == "aeron:ipc"
    assert 0 < found.start_timestamp_ms <= found.stop_timestamp_ms
    assert not found.is_active
    assert client.list_recording(9999) is None


def test_listing_by_pages(client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings are paged: all, from an id, up to a count, and of one stream."""
    monkeypatch.setattr(queries.Pages, "page_length", 2)
    made = [recorded(client, 1) for _ in range(5)]
    ids = [each.recording_id for each in made]
    first = ids[0]
    assert [found.recording_id for found in client.list_recordings(first)] == ids
    assert [found.recording_id for found in client.list_recordings(first, 3)] == ids[:3]
    assert [found.recording_id for found in client.list_recordings(first, 4)] == ids[:4]
    assert list(client.list_recordings(ids[-1] + 1)) == []
    assert list(client.list_recordings(first, 0)) == []
    assert len(list(client.list_recordings())) >= 5
    third = made[2]
    (found,) = client.list_recordings_for_uri("ipc", third.stream_id)
    assert found == client.list_recording(third.recording_id)
    assert list(client.list_recordings_for_uri("endpoint", third.stream_id)) == []
    assert (
        list(client.list_recordings_for_uri("ipc", third.stream_id, found.recording_id + 1)) == []
    )


def test_listings_may_interleave(client: aerotape.ArchiveClient) -> None:
    """A listing that is not read to its end does not block other requests."""
    recorded(client, 1)
    listing = client.list_recordings()
    first = next(listing)
    assert client.start_position(first.recording_id) == 0
    assert next(client.list_recordings()) == first


def test_signals(client: aerotape.ArchiveClient) -> None:
    """Start and stop of a recording are signalled with its ids and positions, once."""
    client.poll_for_recording_signals()
    made = recorded(client, 2)
    signals: list[tuple[str, int, int, int]] = []

    def has_both() -> bool:
        signals.extend(
            (signal.signal.name, signal.recording_id, signal.subscription_id, signal.position)
            for signal in client.poll_for_recording_signals()
        )
        return len(signals) >= 2

    wait_until(has_both, "the signals")
    assert signals == [
        ("START", made.recording_id, made.subscription_id, 0),
        ("STOP", made.recording_id, made.subscription_id, made.end),
    ]
    assert client.poll_for_recording_signals() == []


def test_many_threads(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """Threads that share a client each receive the responses to their own requests."""
    made = [recorded(client, count) for count in (1, 2, 3, 4)]
    wrong: list[object] = []

    def ask(recording_id: int, end: int) -> None:
        for _ in range(50):
            answer = client.stop_position(recording_id)
            found = client.list_recording(recording_id)
            if answer != end or found is None or found.stop_position != end:
                wrong.append((recording_id, answer, found))

    threads = [threading.Thread(target=ask, args=(each.recording_id, each.end)) for each in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
