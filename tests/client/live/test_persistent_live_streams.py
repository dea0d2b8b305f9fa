"""The choice of the live stream to join, and live streams ahead of their recording."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.daemon.archives import ServedArchive
from support.daemon.recording import new_stream_id, recorded, start_recording, stop, wait_until

import aerotape
from aerotape.client.live.persistent_types import PersistentEvent
from aerotape.errors import PersistentSubscriptionError

Reason = PersistentSubscriptionError.Reason


def _channel_at(position: int, initial_term_id: int) -> str:
    """A channel whose publication begins at a position, with terms of 64 KiB."""
    terms, offset = divmod(position, 65536)
    return (
        f"aeron:ipc?term-length=64k|init-term-id={initial_term_id}"
        f"|term-id={initial_term_id + terms}|term-offset={offset}"
    )


def test_another_stream_at_the_same_position(impatient: aerotape.ArchiveClient) -> None:
    """A new publisher at the recording's end position is refused as a different stream."""
    client = impatient
    made = recorded(client, 40, "aeron:ipc?term-length=64k|init-term-id=5|term-id=5|term-offset=0")
    events: list[PersistentEvent] = []
    with (
        client.aeron.add_publication(_channel_at(made.end, 6), made.stream_id),
        client.persistent_subscription(
            made.recording_id, "aeron:ipc", start="start", on_event=events.append
        ) as subscription,
    ):
        received: list[aerotape.Message] = []

        def has_joined() -> bool:
            received.extend(subscription.poll(timeout_ns=10_000_000))
            return subscription.is_live

        with pytest.raises(
            PersistentSubscriptionError, match=r"another one .* term id 6"
        ) as caught:
            wait_until(has_joined, "the end of the recording")
        assert caught.value.reason is Reason.GENERIC
        assert caught.value.position == made.end
        assert [each.payload for each in received] == [sent[0] for sent in made.sent]
        assert {each.kind for each in events} == {"error"}


def test_a_live_stream_ahead_of_its_recording(archive: ServedArchive) -> None:
    """When the live stream drops, the recording must first reach the position read live."""
    channel = "aeron:ipc?term-length=64k|session-id=-9|init-term-id=5|term-id=5|term-offset=0"
    events: list[PersistentEvent] = []
    with archive.connect(timeout_ns=3_000_000_000) as client:
        made = start_recording(client, channel)
        made.send([b"x" * 992] * 4)
        # The same stream at a higher position.
        ahead = client.aeron.add_exclusive_publication(
            f"{_channel_at(made.end + 2048, 5)}|session-id=-8", made.stream_id
        )
        with client.persistent_subscription(
            made.recording_id, "aeron:ipc?session-id=-8", on_event=events.append
        ) as subscription:
            received: list[aerotape.Message] = []

            def has_received(what: str) -> Callable[[], bool]:
                def poll() -> bool:
                    received.extend(subscription.poll(timeout_ns=10_000_000))
                    return any(what in f"{each.kind} {each.error}" for each in events)

                return poll

            wait_until(has_received("live-joined"), "the live stream")
            assert subscription.position == made.end + 2048
            ahead.close()
            wait_until(has_received("live-left"), "the end of the live stream")
            made.send([b"x" * 992] * 2 + [b"last"])
            wait_until(lambda: has_received("")() and bool(received), "what is recorded")
        assert [each.payload for each in received] == [b"last"]
        stop(client, made)


def test_several_publishers(client: aerotape.ArchiveClient) -> None:
    """Of several publishers, the one whose stream was recorded is joined."""
    channel = "aeron:ipc?term-length=64k|session-id=-9|init-term-id=5|term-id=5|term-offset=0"
    stream_id = new_stream_id() + 1  # the stream of the next recording
    with client.aeron.add_exclusive_publication(_channel_at(4096, 6), stream_id):
        made = start_recording(client, channel, 40)
        assert made.stream_id == stream_id
        with (
            client.aeron.add_exclusive_publication(_channel_at(8192, 7), stream_id),
            client.persistent_subscription(
                made.recording_id, "aeron:ipc", start="start"
            ) as subscription,
        ):
            received: list[aerotape.Message] = []

            def has_all() -> bool:
                received.extend(subscription.poll(timeout_ns=10_000_000))
                assert not subscription.failure
                return subscription.is_live and len(received) == len(made.sent)

            wait_until(has_all, "the live stream")
            made.send([b"live"])
            wait_until(has_all, "a live message")
        assert [each.payload for each in received] == [sent[0] for sent in made.sent]
    stop(client, made)
