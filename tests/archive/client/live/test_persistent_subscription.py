"""Persistent subscriptions: each message once and in order, wherever it comes from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import EMBEDDED_DRIVER, KINDS, Kind, ServedArchive, serve
from support.daemon.live import Live
from support.daemon.recording import new_stream_id, recorded, stop, wait_until
from support.jvm.java import FAST_ARCHIVE, JavaArchive, free_port

import aerotape
from aerotape.archive.client.live.persistent_subscription import PersistentSubscription
from aerotape.archive.client.live.persistent_types import PersistentEvent, PersistentState
from aerotape.errors import (
    AeronTimeoutError,
    ClosedError,
    ConfigurationError,
    PersistentSubscriptionError,
)

Reason = PersistentSubscriptionError.Reason
REPLAY_CHANNELS = {
    "ipc": "aeron:ipc",
    "any port": "aeron:udp?endpoint=localhost:0",
    "a port": "",
    "response": "aeron:udp?control=localhost:{port}|control-mode=response",
}
TIMEOUT_S = 60.0


def _read_until_live(
    subscription: PersistentSubscription, live: Live, received: list[aerotape.Message]
) -> None:
    """Read until all that was sent has come and the live stream is joined."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (subscription.is_live and received[-1:] and _has_all(live, received)):
        assert time.monotonic() < deadline, (subscription.state, subscription.position)
        received += subscription.poll(timeout_ns=10_000_000)


def _has_all(live: Live, received: list[aerotape.Message]) -> bool:
    return received[-1].end_position >= live.made.end


def _cut_off(subscription: PersistentSubscription, live: Live) -> None:
    """Have the driver take the live image away from the subscription, as a loss would."""
    image = subscription._machine._live.image()
    assert image is not None
    image.reject("cut off by a test")


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """A running archive, with a driver that gives lost streams up soon."""
    with serve(request.param, {"aeron.image.liveness.timeout": "1s"}) as served:
        yield served


@pytest.mark.parametrize("replay", REPLAY_CHANNELS)
@pytest.mark.parametrize("live_channel", ["", "aeron:ipc?term-length=64k"])
def test_from_the_start_to_live(
    client: aerotape.ArchiveClient, live_channel: str, replay: str
) -> None:
    """Recorded messages, then those that are sent meanwhile, then live ones; none twice."""
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
    # Replayed or live, they have the session and stream id that the publisher has.
    of_messages = {(each.session_id, each.stream_id) for each in received}
    assert of_messages == {(live.made.session_id, live.made.stream_id)}


def test_falls_back_and_joins_again(client: aerotape.ArchiveClient) -> None:
    """Cut off from the publisher, in the middle of messages, it gets what it missed, thrice."""
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
        for _ in range(3):
            deadline = time.monotonic() + TIMEOUT_S
            while not subscription.is_live:
                received += subscription.poll(timeout_ns=10_000_000)
                assert time.monotonic() < deadline
            for _ in range(50):
                received += subscription.poll(fragment_limit=3, timeout_ns=10_000_000)
            _cut_off(subscription, live)
            while subscription.is_live:
                received += subscription.poll(fragment_limit=3, timeout_ns=10_000_000)
                assert time.monotonic() < deadline
        count = len(received)
        while not subscription.is_live or len(received) < count + 100:
            received += subscription.poll(timeout_ns=10_000_000)
    live.check(received)
    kinds = [each.kind for each in events if each.kind != "error"]
    assert kinds == ["live-joined", "live-left"] * 3 + ["live-joined"]
    positions = [each.position for each in events if each.kind != "error"]
    assert positions == sorted(positions)


def test_a_publisher_that_goes_and_comes_back(client: aerotape.ArchiveClient) -> None:
    """The recording stops and is extended by a new publisher: it is read on without a gap."""
    live = Live(client, 100)
    made = live.made
    with client.persistent_subscription(
        made.recording_id, live.subscriber_channel, start="start"
    ) as subscription:
        received: list[aerotape.Message] = []
        _read_until_live(subscription, live, received)
        with live.sending():
            while len(received) < 130:
                received += subscription.poll(timeout_ns=10_000_000)

        def is_recorded() -> bool:
            received.extend(subscription.poll(timeout_ns=10_000_000))
            return client.recording_position(made.recording_id) == made.end

        wait_until(is_recorded, "the recorder, which may be behind what was read")
        stop(client, made)
        deadline = time.monotonic() + TIMEOUT_S
        while subscription.state is not PersistentState.AWAIT_LIVE:
            received += subscription.poll(timeout_ns=10_000_000)
            assert time.monotonic() < deadline, subscription.state
        assert subscription.position == made.end
        live.check(received)
        assert len(received) == len(made.sent)
        descriptor = client.list_recording(made.recording_id)
        assert descriptor is not None
        term_length = descriptor.term_buffer_length
        term_id = descriptor.initial_term_id + made.end // term_length
        channel = (
            f"{live.channel}|init-term-id={descriptor.initial_term_id}|term-id={term_id}"
            f"|term-offset={made.end % term_length}|term-length={term_length}"
        )
        made.subscription_id = client.extend_recording(
            made.recording_id, live.channel, made.stream_id
        )
        made.publication = client.aeron.add_publication(channel, made.stream_id)
        made.publication.wait_connected()
        with live.sending():
            count = len(received) + 100
            while len(received) < count:
                received += subscription.poll(timeout_ns=10_000_000)
        _read_until_live(subscription, live, received)
    live.check(received)
    assert len(received) == len(made.sent)


@pytest.mark.parametrize("fragment_limit", [1, 10])
def test_a_reader_slower_than_the_publisher(
    client: aerotape.ArchiveClient, fragment_limit: int
) -> None:
    """Few fragments at a time while the publisher goes on: nothing is lost on the way."""
    live = Live(client, 50)
    with (
        client.persistent_subscription(
            live.made.recording_id, live.subscriber_channel, start="start"
        ) as subscription,
        live.sending(pause_s=0.003),
    ):
        received: list[aerotape.Message] = []
        deadline = time.monotonic() + TIMEOUT_S
        while not subscription.is_live or len(received) < 200:
            received += subscription.poll(fragment_limit, 1_000_000)
            assert time.monotonic() < deadline
    live.check(received)


def test_from_live(client: aerotape.ArchiveClient) -> None:
    """Started live, it begins with what is sent from then on, and has the recording behind it."""
    live = Live(client, 50)
    with client.persistent_subscription(
        live.made.recording_id, live.subscriber_channel
    ) as subscription:
        deadline = time.monotonic() + TIMEOUT_S
        while not subscription.is_live:
            assert subscription.poll(timeout_ns=10_000_000) == []
            assert time.monotonic() < deadline
        assert subscription.position == live.made.end
        assert subscription.join_difference == 0
        with live.sending():
            received = subscription.poll(timeout_ns=1_000_000_000)
            _cut_off(subscription, live)
            while subscription.is_live or len(received) < 300:
                received += subscription.poll(timeout_ns=10_000_000)
            while not subscription.is_live:
                received += subscription.poll(timeout_ns=10_000_000)
    live.check(received, 50)


def test_from_a_position(client: aerotape.ArchiveClient) -> None:
    """The end of one message is where another subscription begins with the next."""
    live = Live(client, 120)
    start = live.made.sent[76][1]
    with client.persistent_subscription(
        live.made.recording_id, live.subscriber_channel, start=start
    ) as subscription:
        received: list[aerotape.Message] = []
        _read_until_live(subscription, live, received)
    live.check(received, 77)
    assert received[0].position >= start


def test_waits_for_a_publisher(archive: ServedArchive, client: aerotape.ArchiveClient) -> None:
    """A stopped recording is read to its end; a missing publisher is reported once."""
    made = recorded(client, 40)
    events: list[PersistentEvent] = []
    with (
        archive.connect(timeout_ns=2_000_000_000) as impatient,
        impatient.persistent_subscription(
            made.recording_id, "aeron:ipc", start="start", on_event=events.append
        ) as subscription,
    ):
        received: list[aerotape.Message] = []
        while subscription.state is not PersistentState.AWAIT_LIVE:
            received += subscription.poll(timeout_ns=10_000_000)
        events.clear()  # it may have waited beside the replay too
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
        _read_until_live(subscription, live, received)
        assert values() == [16, subscription.join_difference, 0, 1]
        live.made.publication.close()
        wait_until(
            lambda: subscription.poll(timeout_ns=1_000_000) == [] and not subscription.is_live,
            "the end of the live stream",
        )
        assert values()[2:] == [1, 1]
    wait_until(lambda: values() == [], "the counters' end")


def test_what_cannot_be_read(client: aerotape.ArchiveClient) -> None:
    """Recordings, streams and positions that there are not end it, with a reason."""
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


def test_the_beginning_is_gone(client: aerotape.ArchiveClient) -> None:
    """A position whose segments were purged cannot be begun with; the start still can."""
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
        _read_until_live(subscription, live, received)
    # The first whole message behind the cut, and all others.
    first = len(live.made.sent) - len(received)
    live.check(received, first)
    assert start <= live.made.sent[first][1] < start + 8192


@pytest.mark.slow
def test_a_live_stream_that_goes_back(client: aerotape.ArchiveClient) -> None:
    """A new publisher that begins anew is not what was read before: it ends there."""
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
    """A channel that the driver cannot use ends it with the driver's words."""
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
    """What a callback raises comes out of poll, and costs no message."""
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
        _read_until_live(subscription, live, received)
    live.check(received)


def test_closing(archive: ServedArchive) -> None:
    """Closed in any state it stays closed; the end of the Aeron client ends it."""
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


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_goes_and_comes_back(kind: Kind, tmp_path: Path) -> None:
    """Begun without an archive, it reads when there is one, and live on while it is away again."""
    aeron_dir, control_port, live = tmp_path / "aeron", free_port(), None
    events: list[PersistentEvent] = []
    received: list[aerotape.Message] = []
    driver_properties = {**EMBEDDED_DRIVER, "aeron.image.liveness.timeout": "1s"}
    with aerotape.MediaDriver.launch(aeron_dir, driver_properties):
        archive = _OnOff(kind, tmp_path / "archive", aeron_dir, control_port)
        archive.start()
        client = aerotape.connect(
            aeron_dir=aeron_dir, control_request_channel=archive.control_channel
        )
        # The publication is of an Aeron client that outlives the archive and the control session.
        live = Live(client, 50)
        live.send(10)
        client._session.close()
        archive.stop()
        with aerotape.persistent_subscription(
            live.made.recording_id,
            live.subscriber_channel,
            start="start",
            on_event=events.append,
            aeron_dir=aeron_dir,
            control_request_channel=archive.control_channel,
            timeout_ns=1_000_000_000,
        ) as subscription:
            deadline = time.monotonic() + TIMEOUT_S
            while not events:
                assert subscription.poll(timeout_ns=10_000_000) == []
                assert time.monotonic() < deadline
            assert subscription.state is PersistentState.AWAIT_ARCHIVE_CONNECTION
            assert isinstance(events[0].error, AeronTimeoutError)
            archive.start()
            recorder = archive.connect()
            recorder.extend_recording(
                live.made.recording_id, f"{live.channel}|session-id={live.made.session_id}",
                live.made.stream_id, "local",
            )  # fmt: skip
            _read_until_live(subscription, live, received)
            with live.sending():
                archive.stop()
                count = len(received)
                while len(received) < count + 200:
                    received += subscription.poll(timeout_ns=10_000_000)
                assert subscription.is_live
            _read_until_live(subscription, live, received)
            live.check(received)
            # What was missed from here on nobody has recorded, and that is said.
            _cut_off(subscription, live)
            archive.start()
            with pytest.raises(PersistentSubscriptionError, match="recording stopped at") as caught:
                while True:
                    received += subscription.poll(timeout_ns=10_000_000)
            assert caught.value.reason is Reason.INVALID_START_POSITION
            recorder.close()
        client.close()
        archive.stop()
    assert _has_all(live, received)
    told = [each.kind for each in events if each.kind != "error"]
    assert told == ["live-joined", "live-left"]


class _OnOff:
    """An archive on a driver of others, that can be started again where it was."""

    def __init__(self, kind: Kind, archive_dir: Path, aeron_dir: Path, port: int) -> None:
        self.control_channel = f"aeron:udp?endpoint=localhost:{port}"
        self._kind, self._archive_dir, self._aeron_dir = kind, archive_dir, aeron_dir
        self._port = port
        self._running: JavaArchive | aerotape.Archive | None = None

    def start(self) -> None:
        if self._kind == "java":
            self._running = JavaArchive(
                self._archive_dir, self._aeron_dir, driver="external", control_port=self._port
            ).start()
        else:
            self._running = aerotape.Archive.launch(
                dir=self._archive_dir,
                aeron_dir=self._aeron_dir,
                driver="external",
                properties={**FAST_ARCHIVE, "aeron.archive.control.channel": self.control_channel},
            )

    def stop(self) -> None:
        assert self._running is not None
        if isinstance(self._running, JavaArchive):
            self._running.stop()
        else:
            self._running.close()

    def connect(self) -> aerotape.ArchiveClient:
        return aerotape.connect(
            aeron_dir=self._aeron_dir, control_request_channel=self.control_channel
        )
