"""Replay merge: a recording and its live stream, each message complete, once and in order."""

from __future__ import annotations

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.live import Live
from support.daemon.recording import stop, wait_until
from support.jvm.java import free_port

import aerotape
from aerotape import errors
from aerotape.client.live.replay_merge import MergeState


@pytest.mark.parametrize("from_the_middle", [False, True])
def test_merges(client: aerotape.ArchiveClient, from_the_middle: bool) -> None:
    """Recorded and live messages are received once and in order, across several terms."""
    live = Live(client, 300)
    first = 123 if from_the_middle else 0
    position = live.made.sent[first - 1][1] if from_the_middle else None
    with live.sending():
        with client.replay_merge(
            live.made.recording_id, live.subscriber_channel, position
        ) as merge:
            received = []
            replayed = merged_at = 0
            for each in merge:
                received.append(each)
                if not merge.is_live_added:
                    replayed = len(received)
                if merge.is_merged and not merged_at:
                    merged_at = len(received)
                if merged_at and len(received) > merged_at + 300:
                    break
            assert merge.is_merged
            assert not merge.has_failed
            assert merge.position >= received[-1].end_position
            assert merge.image is not None
            assert merge.image.session_id == live.made.session_id
        assert merge.state is MergeState.CLOSED
        assert merge.subscription.is_closed
        assert list(merge) == []
    assert replayed > 0
    live.check(received, first)
    assert max(len(each.payload) for each in received) > 4 * 1408
    assert live.made.end > 5 * 65536


def test_the_replay_is_stopped(client: aerotape.ArchiveClient) -> None:
    """After the merge the replay is stopped; the caller's subscription stays open."""
    live = Live(client, 50)
    stream_id, session_id = live.made.stream_id, live.made.session_id
    channel = f"aeron:udp?control-mode=manual|session-id={session_id}"
    with client.aeron.add_subscription(channel, stream_id) as subscription, live.sending():
        merge = client.replay_merge(
            live.made.recording_id, live.subscriber_channel, subscription=subscription
        )
        received = []
        while not merge.is_merged:
            received += merge.poll(timeout_ns=1_000_000)
        image = merge.image
        assert image is not None
        wait_until(lambda: image.active_transport_count == 1, "the end of the replay", 30)
        while merge.position < live.made.end:
            received += merge.poll(timeout_ns=1_000_000)
            if len(received) > 2000:
                break
        merge.close()
        assert not subscription.is_closed
        count = len(received)
        while len(received) < count + 20:
            received += subscription.poll(timeout_ns=1_000_000)
    # The subscription begins with the first complete message: the merge may have read a part of
    # one.
    live.check(received[:count])
    rest = [each[1] for each in live.made.sent].index(received[count].end_position)
    assert rest - count <= 1
    live.check(received[count:], rest)


def test_do_work(client: aerotape.ArchiveClient) -> None:
    """`do_work` never waits and passes through the states in order."""
    live = Live(client, 100)
    states: list[MergeState] = []
    with (
        live.sending(),
        client.replay_merge(live.made.recording_id, live.subscriber_channel) as merge,
    ):
        while not merge.is_merged:
            if merge.state not in states[-1:]:
                states.append(merge.state)
            merge.poll(fragment_limit=10)
    assert states[:4] == [
        MergeState.RESOLVE_REPLAY_PORT,
        MergeState.GET_RECORDING_POSITION,
        MergeState.REPLAY,
        MergeState.CATCHUP,
    ]
    assert MergeState.ATTEMPT_LIVE_JOIN in states


def test_a_reader_slower_than_the_publisher(client: aerotape.ArchiveClient) -> None:
    """No message is lost when one fragment is polled at a time."""
    live = Live(client, 30)
    with (
        live.sending(pause_s=0.002),
        client.replay_merge(live.made.recording_id, live.subscriber_channel) as merge,
    ):
        received: list[aerotape.Message] = []
        while not merge.is_merged or len(received) < 200:
            received += merge.poll(fragment_limit=1, timeout_ns=100_000)
    live.check(received)


def test_no_progress(client: aerotape.ArchiveClient) -> None:
    """A merge that is not polled fails after its timeout; the error has state and position."""
    live = Live(client, 300)
    with client.replay_merge(
        live.made.recording_id, live.subscriber_channel, progress_timeout_ns=1_000_000_000
    ) as merge:
        with pytest.raises(errors.AeronTimeoutError, match=r"no progress for 1 s in state CAT"):
            while True:
                merge.do_work()
        assert merge.has_failed
        assert not merge.do_work()
        received = merge.poll(timeout_ns=60_000_000_000)
        assert received
    live.check(received)
    client.stop_recording_subscription(live.made.subscription_id)


def test_a_missing_live_stream(archive: ServedArchive) -> None:
    """A stopped recording is replayed to its end; then the merge fails."""
    without_publisher = f"aeron:udp?control=localhost:{free_port()}|endpoint=localhost:0"
    with (
        serve(archive.kind, {"aeron.image.liveness.timeout": "1s"}) as quick,
        quick.connect() as client,
    ):
        live = Live(client, 40)
        stop(client, live.made)
        received = []
        with client.replay_merge(live.made.recording_id, without_publisher) as merge:
            with pytest.raises(errors.ReplayError, match="ended before the live stream arrived"):
                for each in merge:
                    received.append(each)
            assert merge.has_failed
            assert merge.is_live_added
            assert merge.position == live.made.end
    live.check(received)
    assert len(received) == 40


def test_live_stream_that_ends(client: aerotape.ArchiveClient) -> None:
    """When the live stream ends after the merge, iteration ends after its last message."""
    live = Live(client, 40)
    received = []
    with client.replay_merge(live.made.recording_id, live.subscriber_channel) as merge:
        with live.sending():
            while not merge.is_merged:
                received += merge.poll(timeout_ns=1_000_000)
        live.made.publication.close()
        received += merge
        assert merge.is_merged
    live.check(received)
    assert received[-1].end_position == live.made.end


def test_refused(client: aerotape.ArchiveClient) -> None:
    """Unknown recordings, positions out of range, and unsuitable channels are refused."""
    live = Live(client, 10)
    recording_id = live.made.recording_id
    with pytest.raises(errors.UnknownRecordingError, match="recording 987654: there is no such"):
        client.replay_merge(987654, live.subscriber_channel)
    with client.replay_merge(recording_id, live.subscriber_channel, 32) as merge:
        with pytest.raises(errors.InvalidPositionError):
            list(merge)
        assert merge.has_failed
    with pytest.raises(errors.ConfigurationError, match="only UDP streams can be merged"):
        client.replay_merge(recording_id, "aeron:ipc")
    with pytest.raises(errors.ConfigurationError, match="has no endpoint"):
        client.replay_merge(recording_id, live.subscriber_channel, replay_destination="aeron:udp")
    with (
        client.aeron.add_subscription("aeron:udp?endpoint=localhost:0", 7) as plain,
        pytest.raises(errors.ConfigurationError, match="needs control-mode=manual"),
    ):
        client.replay_merge(recording_id, live.subscriber_channel, subscription=plain)


def test_the_client_is_closed_during_a_merge(archive: ServedArchive) -> None:
    """A merge in progress fails when its connection to the archive ends."""
    with archive.connect() as client:
        live = Live(client, 50)
        with client.replay_merge(live.made.recording_id, live.subscriber_channel) as merge:
            merge.poll()
            client.close()
            with pytest.raises(errors.ClosedError):
                list(merge)
            assert merge.has_failed
