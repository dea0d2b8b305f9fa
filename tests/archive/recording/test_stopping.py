"""Stops: what a connected publication had accepted when the stop was sent is recorded.

The response follows that, so tests read stop positions without waiting for them.
"""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.control_rig import RawClient, await_true
from support.daemon.daemon import AerotapeArchive
from support.daemon.recording import await_listed, new_stream_id
from support.processes import FAST_DRIVER, free_port

import aerotape
from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, RecordingSignal, SourceLocation
from aerotape.media_driver import launch_driver
from aerotape.protocol import NULL_POSITION

TIMEOUT_NS = 60_000_000_000
PROPERTIES = {"aeron.spies.simulate.connection": "true"}
MODES = ("SHARED", "DEDICATED")
REPEATS = 4


class Stream:
    """A channel and stream id that are recorded over IPC, over UDP or by a spy."""

    def __init__(self, kind: str) -> None:
        udp = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.channel = "aeron:ipc" if kind == "ipc" else udp
        self.location = SourceLocation.REMOTE if kind == "udp" else SourceLocation.LOCAL
        self.stream_id = new_stream_id()

    def start(self, client: aerotape.ArchiveClient, *, auto_stop: bool = False) -> int:
        return client.start_recording(
            self.channel, self.stream_id, self.location, auto_stop=auto_stop
        )

    def stop(self, client: aerotape.ArchiveClient) -> None:
        client.stop_recording(self.channel, self.stream_id)

    def publish(
        self, client: aerotape.ArchiveClient, channel: str = ""
    ) -> aerotape.ExclusivePublication:
        return client.aeron.add_exclusive_publication(channel or self.channel, self.stream_id)

    def ends(self, client: aerotape.ArchiveClient) -> list[int]:
        """Return the stop positions, as they are now."""
        return [each.stop_position for each in client.list_recordings_for_uri("", self.stream_id)]

    def await_ends(self, client: aerotape.ArchiveClient) -> list[int]:
        """Return the stop positions once no recording is active: nobody has waited for a stop."""
        await_true(lambda: NULL_POSITION not in self.ends(client))
        return self.ends(client)


def send(publication: aerotape.ExclusivePublication, count: int = 20) -> int:
    """Send messages; return the position up to which the publication has accepted them."""
    for _ in range(count):
        publication.send(bytes(500), timeout_ns=TIMEOUT_NS)
    return publication.position


@pytest.fixture(scope="module", params=MODES)
def served(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    properties = {**PROPERTIES, "aeron.archive.threading.mode": request.param}
    with serve("aerotape", properties) as archive:
        yield archive


@pytest.fixture(scope="module")
def client(served: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    with served.connect() as connected:
        yield connected


@pytest.fixture(params=["ipc", "udp", "spy"])
def stream(request: pytest.FixtureRequest) -> Stream:
    return Stream(request.param)


# ---- the ways to stop -------------------------------------------------------------------------


def test_a_stop_soon_after_a_start(client: aerotape.ArchiveClient, stream: Stream) -> None:
    """All is recorded, though the recording may not have begun when it is stopped."""
    for _ in range(REPEATS):
        stream.stream_id = new_stream_id()
        stream.start(client)
        with stream.publish(client) as publication:
            accepted = send(publication)
            stream.stop(client)
            assert stream.ends(client) == [accepted]


def test_a_stop_soon_after_an_extension(client: aerotape.ArchiveClient, stream: Stream) -> None:
    """All is recorded, though the files of the recording may not be prepared when it is stopped."""
    stream.start(client)
    with stream.publish(client) as publication:
        recording_id = await_listed(client, stream.stream_id)
        end = send(publication)
        stream.stop(client)
        assert stream.ends(client) == [end]
    for _ in range(REPEATS):
        descriptor = client.list_recording(recording_id)
        assert descriptor is not None
        channel = aerotape.extension_channel(descriptor, stream.channel)
        client.extend_recording(recording_id, stream.channel, stream.stream_id, stream.location)
        with stream.publish(client, channel) as publication:
            assert publication.position == end
            end = send(publication, 7)
            stream.stop(client)
            assert stream.ends(client) == [end]


@pytest.mark.parametrize("how", ["channel", "subscription", "identity"])
def test_a_stop_of_a_running_recording(
    client: aerotape.ArchiveClient, stream: Stream, how: str
) -> None:
    """All is recorded, also what the recorder has not read when it is stopped."""
    for _ in range(REPEATS):
        stream.stream_id = new_stream_id()
        subscription_id = stream.start(client)
        with stream.publish(client) as publication:
            recording_id = await_listed(client, stream.stream_id)
            accepted = send(publication)
            if how == "channel":
                stream.stop(client)
            elif how == "subscription":
                client.stop_recording_subscription(subscription_id)
            else:
                assert client.stop_recording_by_identity(recording_id)
            assert stream.ends(client) == [accepted]


def test_an_automatic_stop(client: aerotape.ArchiveClient, stream: Stream) -> None:
    """The end of one recording stops those of the other publications of its channel."""
    stream.start(client, auto_stop=True)
    with stream.publish(client) as first, stream.publish(client) as second:
        await_true(lambda: len(list(client.list_recordings_for_uri("", stream.stream_id))) == 2)
        accepted = [send(first, 20), send(second, 25)]
        first.close()
        assert sorted(stream.await_ends(client)) == accepted


def test_requests_that_do_not_wait_for_responses(
    served: ServedArchive, client: aerotape.ArchiveClient, stream: Stream
) -> None:
    """A publication is connected before the archive has responded to the start; then the client
    stops, and leaves with the stop.
    """
    for _ in range(REPEATS):
        stream.stream_id = new_stream_id()
        raw = RawClient(
            client.aeron.native, served.control_channel, response_stream_id=new_stream_id()
        )
        assert raw.connect().code is ControlResponseCode.OK
        with stream.publish(client) as publication:
            fields = {"stream_id": stream.stream_id, "channel": stream.channel}
            raw.request(codecs.StartRecordingRequest, source_location=stream.location, **fields)
            accepted = send(publication)
            raw.request(codecs.StopRecordingRequest, **fields)
            raw.send(codecs.CloseSessionRequest(control_session_id=raw.control_session_id))
            await_listed(client, stream.stream_id)
            assert stream.await_ends(client) == [accepted]


def test_the_order_of_signals(client: aerotape.ArchiveClient, stream: Stream) -> None:
    """START precedes STOP, which has the position up to which all is recorded."""
    with client.signals() as signals:
        stream.start(client)
        with stream.publish(client) as publication:
            accepted = send(publication)
            stream.stop(client)
            seen = [next(signals), next(signals)]
    assert [each.signal for each in seen] == [RecordingSignal.START, RecordingSignal.STOP]
    assert [each.position for each in seen] == [0, accepted]


def test_a_publication_that_was_never_connected(client: aerotape.ArchiveClient) -> None:
    """A stop without an image responds, and nothing is recorded afterwards."""
    for _ in range(REPEATS):
        stream = Stream("ipc")
        stream.start(client)
        stream.stop(client)
        with stream.publish(client) as publication:
            assert publication.offer(b"x") < 0
        assert stream.ends(client) == []


def test_a_channel_is_recorded_again_at_once(client: aerotape.ArchiveClient) -> None:
    """The recordings of one publication, stopped and started under way, have all that it sent."""
    stream = Stream("ipc")
    stream.start(client)
    with stream.publish(client) as publication:
        accepted = send(publication, 5)
        for _ in range(REPEATS):
            stream.stop(client)
            stream.start(client)
            accepted = send(publication, 5)
        stream.stop(client)
        assert max(stream.ends(client)) == accepted
        rows = sorted(
            (each.start_position, each.stop_position)
            for each in client.list_recordings_for_uri("", stream.stream_id)
        )
    assert rows[0][0] == 0
    assert all(after[0] <= before[1] for before, after in itertools.pairwise(rows))


def test_a_publication_of_another_driver(
    client: aerotape.ArchiveClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is received within 200 ms of the stop is recorded: here all, over the loopback."""
    stream = Stream("udp")
    directory = str(tmp_path_factory.mktemp("other") / "aeron")
    properties = {
        name: value for name, value in FAST_DRIVER.items() if not name.endswith("idle.strategy")
    }
    driver = launch_driver({**properties, "aeron.dir": directory})
    try:
        other = _native.AeronClient(directory)
        for _ in range(REPEATS):
            stream.stream_id = new_stream_id()
            stream.start(client)
            publication = other.add_exclusive_publication(stream.channel, stream.stream_id)
            for _ in range(20):
                accepted = publication.offer_within(bytes(500), TIMEOUT_NS)
            stream.stop(client)
            assert stream.ends(client) == [accepted]
            publication.close()
        other.close()
    finally:
        driver.close()


# ---- the end of the archive -------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_the_archive_ends_while_publications_send(
    mode: str,
    end: signal.Signals,
    tmp_path: Path,
    aeron_dir: Path,
    start_daemon: Callable[..., AerotapeArchive],
) -> None:
    """On a driver that outlives it: all is recorded that was accepted before the signal, also of
    a recording that has just been requested.
    """
    properties = {
        name: value for name, value in FAST_DRIVER.items() if not name.endswith("idle.strategy")
    }
    driver = launch_driver({**properties, **PROPERTIES, "aeron.dir": str(aeron_dir)})
    streams = [Stream(kind) for kind in ("ipc", "udp", "spy")]
    try:
        archive = start_daemon(driver="external", properties={"aeron.archive.threading.mode": mode})
        over = threading.Event()
        with aerotape.connect(
            aeron_dir=aeron_dir, control_request_channel=archive.control_channel
        ) as client:
            publications = []
            for stream in streams:
                stream.start(client)
                publications.append(stream.publish(client))
            for publication in publications:
                send(publication, 1)

            def send_on() -> None:
                while not over.is_set():
                    for publication in publications:
                        publication.offer(bytes(900))

            sender = threading.Thread(target=send_on)
            sender.start()
            late = Stream("ipc")
            late.start(client)
            with late.publish(client) as late_publication:
                late_accepted = send(late_publication)
                accepted = [publication.position for publication in publications]
                assert archive.stop(end) == 0
                over.set()
                sender.join()
    finally:
        driver.close()
    descriptors = [
        each.descriptor for each in aerotape.open_directory(archive.archive_dir).recordings()
    ]
    found = {each.stream_id: each.stop_position for each in descriptors}
    assert found[late.stream_id] == late_accepted
    for stream, position in zip(streams, accepted, strict=True):
        assert found[stream.stream_id] >= position
