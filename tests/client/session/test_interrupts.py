"""Signal handlers that raise at any moment, as Ctrl-C does, and abandoned iterations.

Afterwards, reading continues with all messages, each once, and requests with their responses.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterable, Iterator

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.live import Live
from support.daemon.recording import Made, new_stream_id, recorded

import aerotape

# An alarm may raise in a destructor, where no caller can catch it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(method="thread"),  # the other method has the alarm
]
LONGEST_S = 0.02
ALARMS = 40


@pytest.fixture(scope="module")
def archive() -> Iterator[ServedArchive]:
    """Our archive; the client is interrupted."""
    with serve("aerotape") as served:
        yield served


@pytest.fixture
def client(archive: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    """A client over UDP."""
    with archive.connect(timeout_ns=8_000_000_000) as connected:
        yield connected


class Stop(BaseException):
    """An exception that no code may catch as an error."""


class Alarm(Exception):
    """An exception as a handler for SIGALRM commonly raises it."""


class Alarms:
    """Raise an exception at random moments of the called function, ALARMS times in total."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind
        self._is_armed = False
        self._dice = random.Random(4)
        self.count = 0

    def _ring(self, *_: object) -> None:
        if self._is_armed:
            self._is_armed = False
            self.count += 1
            raise self._kind

    @property
    def are_over(self) -> bool:
        return self.count >= ALARMS

    def call(self, function: Callable[[], object]) -> bool:
        """Call a function; return whether it completed."""
        try:
            self._is_armed = True
            if not self.are_over:
                signal.setitimer(signal.ITIMER_REAL, self._dice.uniform(0.0002, LONGEST_S))
            function()
            self._is_armed = False
        except self._kind:
            return False
        return True


@pytest.fixture(params=[Stop, Alarm])
def alarms(request: pytest.FixtureRequest) -> Iterator[Alarms]:
    """Alarms of either kind."""
    ringing = Alarms(request.param)
    before = signal.signal(signal.SIGALRM, ringing._ring)
    yield ringing
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def into(received: list[aerotape.Message], stream: Iterable[aerotape.Message]) -> None:
    """Iterate to the end."""
    for message in stream:
        received.append(message)  # no interrupt between these


def is_all(made: Made, received: list[aerotape.Message]) -> bool:
    """Return whether exactly the messages sent have been received."""
    return [(each.payload, each.end_position) for each in received] == [
        sent[:2] for sent in made.sent
    ]


def test_interrupted_replays_lose_no_message(
    client: aerotape.ArchiveClient, alarms: Alarms
) -> None:
    """A replay that continues after each interrupt returns every message once."""
    made = recorded(client, 400)
    while not alarms.are_over:
        received: list[aerotape.Message] = []
        with client.replay(made.recording_id) as replay:
            while not alarms.call(lambda replay=replay, received=received: into(received, replay)):  # type: ignore[misc]
                pass
        assert is_all(made, received)


def test_an_interrupted_persistent_subscription_continues(
    client: aerotape.ArchiveClient, alarms: Alarms
) -> None:
    """No message is lost, even when interrupted while waiting for the live stream."""
    live = Live(client, 30)
    received: list[aerotape.Message] = []
    with client.persistent_subscription(
        live.made.recording_id, live.subscriber_channel, start="start"
    ) as messages:
        for _ in range(4):
            while len(received) < len(live.made.sent) or not messages.is_live:
                received += messages.poll(timeout_ns=50_000_000)
            while alarms.call(lambda: messages.poll(timeout_ns=2_000_000_000)):
                pass
            live.send(3)
        received += take(messages, 3)
    live.check(received)
    assert len(received) == 42
    live.made.publication.close()


def test_interrupted_requests_do_not_affect_others(
    client: aerotape.ArchiveClient, alarms: Alarms
) -> None:
    """Responses read during an interrupted request reach other threads and later requests."""
    made = recorded(client, 3)
    listed = [each.recording_id for each in client.list_recordings()]
    failures: list[BaseException] = []
    is_over = threading.Event()

    def ask() -> None:
        try:
            while not is_over.is_set():
                assert client.stop_position(made.recording_id) == made.end
        except BaseException as error:
            failures.append(error)

    others = [threading.Thread(target=ask) for _ in range(2)]
    for other in others:
        other.start()
    while not alarms.are_over and not failures:
        alarms.call(lambda: [client.start_position(made.recording_id) for _ in range(200)])
        alarms.call(lambda: [list(client.list_recordings()) for _ in range(50)])
        assert [each.recording_id for each in client.list_recordings()] == listed
    is_over.set()
    for other in others:
        other.join()
    assert failures == []
    assert client.poll_for_errors() == []


def take(stream: Iterable[aerotape.Message], count: int) -> list[aerotape.Message]:
    """Iterate over some messages and abandon the iteration."""
    taken = []
    for message in stream:
        taken.append(message)
        if len(taken) == count:
            break
    return taken


def test_an_abandoned_iteration_loses_no_message(client: aerotape.ArchiveClient) -> None:
    """The next iteration or `poll` continues: subscriptions, persistent subscriptions, merges."""
    with (
        client.aeron.add_subscription("aeron:ipc", stream_id := new_stream_id()) as subscription,
        client.aeron.add_publication("aeron:ipc", stream_id) as publication,
    ):
        sent = [bytes([index]) for index in range(9)]
        for payload in sent:
            publication.send(payload)
        received = [*take(subscription, 1), *take(subscription, 3), *subscription.poll()]
        assert [each.payload for each in received] == sent
    live = Live(client, 9)
    for open_it in (
        lambda: client.persistent_subscription(
            live.made.recording_id, live.subscriber_channel, start="start"
        ),
        lambda: client.replay_merge(live.made.recording_id, live.subscriber_channel),
    ):
        with open_it() as stream:
            received = [*take(stream, 1), *take(stream, 3), *take(stream, 5)]
            assert is_all(live.made, received)
    live.made.publication.close()
