"""Images that are not recorded, or no longer: their publishers go on as if nobody recorded them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.control_rig import await_true
from support.daemon.recording import await_listed, new_stream_id
from support.damage.full_disk_rig import IPC, Rig, content
from support.damage.small_disk import SmallDisk
from support.processes import free_port

import aerotape
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, RecordingSignal, SourceLocation
from aerotape.errors import LimitError
from aerotape.protocol import NULL_POSITION

TIMEOUT_NS = 60_000_000_000
# More than a term, which is more than a publication may be ahead of a subscriber.
MANY = 200
PAYLOAD = bytes(1_000)


@pytest.fixture(scope="module", params=["SHARED", "DEDICATED"])
def served(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    properties = {
        "aeron.archive.threading.mode": request.param,
        "aeron.archive.max.concurrent.recordings": "1",
        "aeron.spies.simulate.connection": "true",
    }
    with serve("aerotape", properties) as archive:
        yield archive


@pytest.fixture
def client(served: ServedArchive) -> Iterator[aerotape.ArchiveClient]:
    with served.connect() as connected:
        yield connected
        for each in connected.list_recording_subscriptions():
            connected.try_stop_recording_subscription(each.subscription_id)
        await_true(lambda: all(not each.is_active for each in connected.list_recordings()))


def check_goes_on(
    client: aerotape.ArchiveClient, publication: aerotape.ExclusivePublication, channel: str
) -> None:
    """Another subscriber receives more than a term, and the end of the stream."""
    own = f"{channel}{'|' if '?' in channel else '?'}session-id={publication.session_id}"
    with client.aeron.add_subscription(own, publication.stream_id) as reader:
        await_true(lambda: reader.image_count == 1)
        sent = received = 0
        while sent < MANY:
            sent += publication.offer(PAYLOAD) > 0
            received += len(reader.poll(20))
        publication.close()
        while received < sent:
            received += len(reader.poll(20, 10_000_000))
        await_true(lambda: reader.image_count == 0)


@pytest.mark.parametrize("kind", ["ipc", "udp", "spy"])
def test_past_the_limit_of_recordings(client: aerotape.ArchiveClient, kind: str) -> None:
    """The second publication of a channel is not recorded; the first one is, all the while."""
    channel = "aeron:ipc" if kind == "ipc" else f"aeron:udp?endpoint=localhost:{free_port()}"
    location = SourceLocation.REMOTE if kind == "udp" else SourceLocation.LOCAL
    stream_id = new_stream_id()
    client.start_recording(channel, stream_id, location)
    with client.aeron.add_exclusive_publication(channel, stream_id) as recorded:
        recording_id = await_listed(client, stream_id)
        refused = client.aeron.add_exclusive_publication(channel, stream_id)
        refused.wait_connected()
        check_goes_on(client, refused, channel)
        for _ in range(MANY):
            accepted = recorded.send(PAYLOAD, timeout_ns=TIMEOUT_NS)
        client.stop_recording(channel, stream_id)
        await_true(lambda: client.stop_position(recording_id) == accepted)
    assert len(list(client.list_recordings_for_uri("", stream_id))) == 1


def test_an_extension_that_does_not_fit(client: aerotape.ArchiveClient) -> None:
    """After the error the client extends it with the right publication, without a stop."""
    stream_id = new_stream_id()
    client.start_recording("aeron:ipc", stream_id)
    with client.aeron.add_exclusive_publication("aeron:ipc", stream_id) as publication:
        recording_id = await_listed(client, stream_id)
        end = publication.send(PAYLOAD)
        client.stop_recording("aeron:ipc", stream_id)
        await_true(lambda: client.stop_position(recording_id) == end)
    client.extend_recording(recording_id, "aeron:ipc", stream_id)
    wrong = client.aeron.add_exclusive_publication("aeron:ipc", stream_id)
    wrong.wait_connected()
    check_goes_on(client, wrong, "aeron:ipc")
    errors = [str(each) for each in client.poll_for_errors()]
    assert len(errors) == 1, errors
    assert "joinPosition=0 != rec.stopPosition" in errors[0]
    client.extend_recording(recording_id, "aeron:ipc", stream_id)
    descriptor = client.list_recording(recording_id)
    assert descriptor is not None
    channel = aerotape.extension_channel(descriptor, "aeron:ipc")
    with client.aeron.add_exclusive_publication(channel, stream_id) as publication:
        end = publication.send(PAYLOAD, timeout_ns=TIMEOUT_NS)
        client.stop_recording("aeron:ipc", stream_id)
        await_true(lambda: client.stop_position(recording_id) == end)


def test_the_publication_of_a_stopped_recording(served: ServedArchive) -> None:
    """Of two recordings of a subscription, one is stopped by its id; the other one continues."""
    with serve("aerotape") as archive, archive.connect() as client:
        stream_id = new_stream_id()
        client.start_recording("aeron:ipc", stream_id)
        stopped = client.aeron.add_exclusive_publication("aeron:ipc", stream_id)
        recording_id = await_listed(client, stream_id)
        with client.aeron.add_exclusive_publication("aeron:ipc", stream_id) as continued:
            await_true(lambda: len(list(client.list_recordings())) == 2)
            assert client.stop_recording_by_identity(recording_id)
            await_true(lambda: client.stop_position(recording_id) != NULL_POSITION)
            check_goes_on(client, stopped, "aeron:ipc")
            for _ in range(MANY):
                accepted = continued.send(PAYLOAD, timeout_ns=TIMEOUT_NS)
            assert client.stop_recording_by_identity(1) is False
            await_true(lambda: client.stop_position(1) == accepted)


def test_the_advice_of_the_limit(client: aerotape.ArchiveClient) -> None:
    """Stop one, then start again: the publication that was refused is recorded."""
    one, two = new_stream_id(), new_stream_id()
    client.start_recording("aeron:ipc", one)
    with (
        client.aeron.add_exclusive_publication("aeron:ipc", one),
        client.aeron.add_exclusive_publication("aeron:ipc", one) as refused,
    ):
        first = await_listed(client, one)
        refused.wait_connected()
        await_true(lambda: any("stop one" in str(each) for each in client.poll_for_errors()))
        with pytest.raises(LimitError, match="stop one"):
            client.start_recording("aeron:ipc", two)
        client.stop_recording("aeron:ipc", one)
        await_true(lambda: client.stop_position(first) != NULL_POSITION)
        own = f"aeron:ipc?session-id={refused.session_id}"
        client.start_recording(own, one)
        accepted = refused.send(PAYLOAD, timeout_ns=TIMEOUT_NS)
        await_true(lambda: len(list(client.list_recordings_for_uri("", one))) == 2)
        client.stop_recording(own, one)
        await_true(lambda: client.stop_position(first + 1) == accepted)


# ---- a full disk ------------------------------------------------------------------------------


@pytest.mark.root
def test_a_recording_that_has_failed_is_started_again(
    disk: SmallDisk, start_rig: Callable[..., Rig]
) -> None:
    """As the error advises: free space, then record again. Until then the publisher goes on."""
    rig = start_rig()
    correlation_id, publication = rig.start()
    disk.fill(leave_bytes=128 << 10)
    rig.offer_until_error(publication, correlation_id)
    message = rig.error(correlation_id).error_message
    assert message.endswith("free space in the archive directory, then record again")
    rig.signal(correlation_id, RecordingSignal.STOP)
    rig.offer(publication, 0, 500)
    disk.clear()
    stream_id = publication.stream_id
    again = rig.try_start(stream_id)
    assert again.code is ControlResponseCode.OK, again
    begun = rig.signal(again.correlation_id, RecordingSignal.START)
    rig.offer(publication, 0, 100)
    accepted = publication.position
    assert rig.raw.call(codecs.StopRecordingRequest, stream_id=stream_id, channel=IPC)
    ended = rig.signal(again.correlation_id, RecordingSignal.STOP)
    assert (ended.recording_id, ended.position) == (begun.recording_id, accepted)
    assert len(content(0)) > 0
