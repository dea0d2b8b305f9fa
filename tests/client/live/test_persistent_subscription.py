"""Persistent subscriptions: each message once and in order, from a recording or live."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.daemon.live import Live, cut_off, poll_until, read_until_live
from support.daemon.recording import new_stream_id, recorded, stop, wait_until
from support.jvm.java import free_port

import aerotape
from aerotape.client.live.persistent_types import PersistentEvent, PersistentState
from aerotape.client.session import reconnecting_session
from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.keep_alive import IdleReader
from aerotape.errors import ClosedError, ConfigurationError, PersistentSubscriptionError

Reason = PersistentSubscriptionError.Reason
REPLAY_CHANNELS = {
    "ipc": "aeron:ipc",
    "any port": "aeron:udp?endpoint=localhost:0",
    "a port": "",
    "response": "aeron:udp?control=localhost:{port}|control-mode=response",
}


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """A running archive, with a driver that closes lost streams after a second."""
    with serve(request.param, {"aeron.image.liveness.timeout": "1s"}) as served:
        yield served


@pytest.mark.parametrize("replay", REPLAY_CHANNELS)
@pytest.mark.parametrize("live_channel", ["", "aeron:ipc?term-length=64k"])
def test_from_the_start_to_live(
    client: aerotape.ArchiveClient, live_channel: str, replay: str
) -> None:
    """Recorded messages are followed by live ones, without duplicates."""
    live = Live(client, 300, live_channel)
    events: list[PersistentEvent] = []
    channel = REPLAY_CHANNELS[replay] or "aeron:udp?endpoint=localhost:{port}"
    with (
        client.persistent_subscription(
            live.made.recording_id,
            live.subscriber_channel,
            start="start",
            replay_channel=channel.replace("{port}", str(free_port())),
            on_event=events.append,
        ) as subscription,
        live.sending(),
    ):
        assert subscription.position is None
        received: list[aerotape.Message] = []
        sources = []
        for each in subscription:
            received.append(each)
            sources.append(subscription.is_live)
            if sum(sources) > 300:
                break
        assert subscription.state is PersistentState.LIVE
        assert subscription.failure is None
    live.check(received)
    assert not sources[0]
    assert [each.kind for each in events] == ["live-joined"]
    assert events[0].position > live.made.sent[299][1] // 2
    assert max(len(each.payload) for each in received) > 4 * 1408
    # Replayed and live messages have the session and stream id of the publisher.
    of_messages = {(each.session_id, each.stream_id) for each in received}
    assert of_messages == {(live.made.session_id, live.made.stream_id)}


@pytest.mark.parametrize(("interval_ns", "expected"), [(0, []), (50_000_000, [50_000_000])])
def test_its_session_is_kept_alive_as_that_of_its_client(
    archive: ServedArchive,
    monkeypatch: pytest.MonkeyPatch,
    interval_ns: int,
    expected: list[int],
) -> None:
    """A thread reads it at the interval with which the client was connected, and none for 0."""
    intervals: list[int] = []

    class Reader(IdleReader):
        def __init__(self, session: ClientSession, interval_ns: int) -> None:
            intervals.append(interval_ns)
            super().__init__(session, interval_ns)

    monkeypatch.setattr(reconnecting_session, "IdleReader", Reader)
    with archive.connect(keep_alive_interval_ns=interval_ns) as client:
        live = Live(client, 1)
        received: list[aerotape.Message] = []
        with client.persistent_subscription(
            live.made.recording_id, live.subscriber_channel, start="start"
        ) as subscription:
            poll_until(subscription, received, lambda: bool(received))
        stop(client, live.made)
    assert intervals == expected


def test_falls_back_and_joins_again(client: aerotape.ArchiveClient) -> None:
    """After each of two losses of the live stream, the missed messages are received."""
    live = Live(client, 20)
    events: list[PersistentEvent] = []
    with (
        client.persistent_subscription(
            live.made.recording_id,
            live.subscriber_channel,
            live.made.stream_id,
            start=0,
            on_event=events.append,
        ) as subscription,
        live.sending(),
    ):
        received: list[aerotape.Message] = []
        for _ in range(2):
            poll_until(subscription, received, lambda: subscription.is_live)
            for _ in range(50):
                received += subscription.poll(fragment_limit=3, timeout_ns=10_000_000)
            cut_off(subscription)
            while subscription.is_live:
                received += subscription.poll(fragment_limit=3, timeout_ns=10_000_000)
        count = len(received) + 100
        poll_until(subscription, received, lambda: subscription.is_live and len(received) >= count)
    live.check(received)
    kinds = [each.kind for each in events if each.kind != "error"]
    assert kinds == ["live-joined", "live-left"] * 2 + ["live-joined"]
    positions = [each.position for each in events if each.kind != "error"]
    assert positions == sorted(positions)


def test_a_publisher_that_is_replaced(client: aerotape.ArchiveClient) -> None:
    """The recording stops and a new publisher extends it: reading continues without a gap."""
    live = Live(client, 100)
    made = live.made
    with client.persistent_subscription(
        made.recording_id, live.subscriber_channel, start="start"
    ) as subscription:
        received: list[aerotape.Message] = []
        read_until_live(subscription, live, received)
        with live.sending():
            poll_until(subscription, received, lambda: len(received) >= 130)
        # The recording may end at a lower position than was read.
        poll_until(
            subscription,
            received,
            lambda: client.recording_position(made.recording_id) == made.end,
        )
        stop(client, made)
        poll_until(subscription, received, lambda: subscription.state is PersistentState.AWAIT_LIVE)
        assert subscription.position == made.end
        live.check(received)
        assert len(received) == len(made.sent)
        descriptor = client.list_recording(made.recording_id)
        assert descriptor is not None
        channel = aerotape.extension_channel(descriptor, live.channel)
        made.subscription_id = client.extend_recording(
            made.recording_id, live.channel, made.stream_id
        )
        made.publication = client.aeron.add_publication(channel, made.stream_id)
        made.publication.wait_connected()
        with live.sending():
            count = len(received) + 100
            poll_until(subscription, received, lambda: len(received) >= count)
        read_until_live(subscription, live, received)
    live.check(received)
    assert len(received) == len(made.sent)


@pytest.mark.parametrize("fragment_limit", [1, 10])
def test_a_reader_slower_than_the_publisher(
    client: aerotape.ArchiveClient, fragment_limit: int
) -> None:
    """No message is lost when few fragments are polled at a time."""
    live = Live(client, 50)
    with (
        client.persistent_subscription(
            live.made.recording_id, live.subscriber_channel, start="start"
        ) as subscription,
        live.sending(pause_s=0.003),
    ):
        received: list[aerotape.Message] = []
        deadline = time.monotonic() + 60.0
        while not subscription.is_live or len(received) < 200:
            received += subscription.poll(fragment_limit, 1_000_000)
            assert time.monotonic() < deadline
    live.check(received)


def test_from_live(client: aerotape.ArchiveClient) -> None:
    """Started live, it begins with new messages, and falls back to the recording."""
    live = Live(client, 50)
    with client.persistent_subscription(
        live.made.recording_id, live.subscriber_channel
    ) as subscription:
        before: list[aerotape.Message] = []
        poll_until(subscription, before, lambda: subscription.is_live)
        assert before == []
        assert subscription.position == live.made.end
        assert subscription.join_difference == 0
        with live.sending():
            received = subscription.poll(timeout_ns=1_000_000_000)
            cut_off(subscription)
            poll_until(
                subscription, received, lambda: not subscription.is_live and len(received) >= 300
            )
            poll_until(subscription, received, lambda: subscription.is_live)
    live.check(received, 50)


def test_from_a_position(client: aerotape.ArchiveClient) -> None:
    """A subscription from the end of one message begins with the next."""
    live = Live(client, 120)
    start = live.made.sent[76][1]
    with client.persistent_subscription(
        live.made.recording_id, live.subscriber_channel, start=start
    ) as subscription:
        received: list[aerotape.Message] = []
        read_until_live(subscription, live, received)
    live.check(received, 77)
    assert received[0].position >= start


def test_waits_for_a_publisher(
    impatient: aerotape.ArchiveClient, client: aerotape.ArchiveClient
) -> None:
    """A stopped recording is read to its end; a missing publisher is reported once."""
    made = recorded(client, 40)
    events: list[PersistentEvent] = []
    with impatient.persistent_subscription(
        made.recording_id, "aeron:ipc", start="start", on_event=events.append
    ) as subscription:
        received: list[aerotape.Message] = []
        poll_until(subscription, received, lambda: subscription.state is PersistentState.AWAIT_LIVE)
        events.clear()  # it may have waited during the replay too
        while not events:
            assert subscription.poll(timeout_ns=10_000_000) == []
        subscription.poll(timeout_ns=500_000_000)
        assert subscription.position == made.end
    assert [each.payload for each in received] == [each[0] for each in made.sent]
    assert [each.kind for each in events] == ["error"]
    assert "no publisher on the live channel aeron:ipc stream" in str(events[0].error)


def test_counters(client: aerotape.ArchiveClient) -> None:
    """The driver shows state, difference and how often the live stream was joined and left."""
    live = Live(client, 30)
    reader = client.aeron.counters()

    def values() -> list[int]:
        label = f" 77 {subscription_channel} {live.made.stream_id} {live.subscriber_channel}"
        rows = [row for kind in range(114, 118) for row in reader.rows(kind)]
        return [row[7] for row in rows if row[3].endswith(label)]

    subscription_channel = "aeron:ipc?rejoin=false"
    with client.persistent_subscription(
        live.made.recording_id,
        live.subscriber_channel,
        live.made.stream_id,
        start="start",
        replay_channel="aeron:ipc",
        replay_stream_id=77,
    ) as subscription:
        assert values() == [0, -(1 << 63), 0, 0]
        received: list[aerotape.Message] = []
        read_until_live(subscription, live, received)
        assert values() == [16, subscription.join_difference, 0, 1]
        live.made.publication.close()
        wait_until(
            lambda: subscription.poll(timeout_ns=1_000_000) == [] and not subscription.is_live,
            "the end of the live stream",
        )
        assert values()[2:] == [1, 1]
    wait_until(lambda: values() == [], "the counters' end")


def test_invalid_recordings_streams_and_positions(client: aerotape.ArchiveClient) -> None:
    """Unknown recordings, streams and positions end the subscription with a reason."""
    made = recorded(client, 20)
    cases = [
        (987654, None, "start", Reason.RECORDING_NOT_FOUND, "no such recording"),
        (made.recording_id, 5, "start", Reason.STREAM_ID_MISMATCH, "stream id 5"),
        (made.recording_id, None, made.end + 32, Reason.INVALID_START_POSITION, "past its stop"),
        (made.recording_id, None, 32, Reason.INVALID_START_POSITION, "32"),
    ]
    for recording_id, stream_id, start, reason, text in cases:
        events: list[PersistentEvent] = []
        with client.persistent_subscription(
            recording_id,
            "aeron:ipc",
            stream_id,
            start=start,  # type: ignore[arg-type]
            on_event=events.append,
        ) as subscription:
            with pytest.raises(PersistentSubscriptionError, match=text) as caught:
                subscription.poll(timeout_ns=10_000_000_000)
            assert caught.value.reason is reason
            assert caught.value.recording_id == recording_id
            assert subscription.state is PersistentState.FAILED
            assert subscription.failure is caught.value
            assert [(each.kind, each.error) for each in events] == [("error", caught.value)]
            with pytest.raises(PersistentSubscriptionError):
                next(iter(subscription))
    with pytest.raises(ConfigurationError, match='start must be a position, "start" or "live"'):
        client.persistent_subscription(0, "aeron:ipc", start="first")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="live_channel"):
        client.persistent_subscription(0, "nonsense")


def test_the_beginning_is_purged(client: aerotape.ArchiveClient) -> None:
    """A purged position is refused as a start position; "start" is accepted."""
    live = Live(client, 200)
    start = 3 * 65536
    client.purge_segments(live.made.recording_id, start)
    with (
        client.persistent_subscription(
            live.made.recording_id, live.subscriber_channel, start=0
        ) as subscription,
        pytest.raises(PersistentSubscriptionError, match=f"its start position {start}") as caught,
    ):
        subscription.poll(timeout_ns=10_000_000_000)
    assert caught.value.reason is Reason.INVALID_START_POSITION
    with client.persistent_subscription(
        live.made.recording_id, live.subscriber_channel, start="start"
    ) as subscription:
        received: list[aerotape.Message] = []
        read_until_live(subscription, live, received)
    # From the first whole message after the purged segments.
    first = len(live.made.sent) - len(received)
    live.check(received, first)
    assert start <= live.made.sent[first][1] < start + 8192


@pytest.mark.slow
def test_a_live_stream_at_a_lower_position(impatient: aerotape.ArchiveClient) -> None:
    """A new publisher at position 0 is another stream: the subscription ends."""
    client = impatient
    made = recorded(client, 40)
    with client.aeron.add_publication("aeron:ipc", made.stream_id) as publication:
        with client.persistent_subscription(
            made.recording_id, "aeron:ipc", start="start"
        ) as subscription:
            received: list[aerotape.Message] = []
            with pytest.raises(
                PersistentSubscriptionError, match=r"is at 0, but it has been read"
            ) as caught:
                for each in subscription:
                    received.append(each)
            assert caught.value.reason is Reason.GENERIC
            assert caught.value.position == made.end
        assert len(received) == 40
        wait_until(lambda: not publication.is_connected, "the end of the subscription")


def test_a_refused_live_channel(client: aerotape.ArchiveClient) -> None:
    """A channel that the driver refuses ends the subscription with the driver's error."""
    made = recorded(client, 3)
    with (
        client.persistent_subscription(
            made.recording_id, "aeron:udp?endpoint=nowhere.invalid:1", start="start"
        ) as subscription,
        pytest.raises(aerotape.AeronError, match="cannot add a subscription"),
    ):
        for each in subscription:
            assert each.payload in [sent[0] for sent in made.sent]


def test_callback_that_raises(client: aerotape.ArchiveClient) -> None:
    """`poll` raises the error of a callback, and no message is lost."""
    live = Live(client, 30)

    def fail(event: PersistentEvent) -> None:
        raise RuntimeError(event.kind)

    with client.persistent_subscription(
        live.made.recording_id, live.subscriber_channel, start="start", on_event=fail
    ) as subscription:
        received: list[aerotape.Message] = []
        with pytest.raises(RuntimeError, match="live-joined"):
            while True:
                received += subscription.poll(timeout_ns=10_000_000)
        live.send(10)
        read_until_live(subscription, live, received)
    live.check(received)


def test_closing(archive: ServedArchive) -> None:
    """A subscription can be closed in any state; closing the Aeron client ends it."""
    with archive.connect() as client, archive.connect() as other:
        live = Live(client, 100)
        for turns in range(0, 60, 7):
            subscription = client.persistent_subscription(
                live.made.recording_id, live.subscriber_channel, start="start"
            )
            for _ in range(turns):
                subscription.poll(timeout_ns=1_000_000)
            subscription.close()
            subscription.close()
            assert subscription.is_closed
            assert subscription.poll() == []
            assert list(subscription) == []
        subscription = other.persistent_subscription(
            new_stream_id(), live.subscriber_channel, start="start"
        )
        other.close()
        with pytest.raises(ClosedError, match="Aeron client is closed"):
            subscription.poll(timeout_ns=10_000_000_000)
        subscription.close()
