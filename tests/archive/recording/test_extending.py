"""Recordings extended through the Java client, by our daemon and by the Java archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import await_true
from support.jvm import java
from support.jvm.java import JavaArchiveException, JavaClient
from support.jvm.java_streams import (
    IPC,
    SEGMENT_LENGTH,
    Recorded,
    Signals,
    channel_at,
    descriptor,
    error_code,
    new_stream_id,
    record,
    segment_bases,
)
from support.model.messages import digest, messages

pytestmark = pytest.mark.jvm

NOBODY = 10_000


class Extended:
    """A recording that is extended, with its publication."""

    def __init__(
        self, client: JavaClient, stream: Recorded, *, auto_stop: bool = False, **changes: int
    ) -> None:
        self.row = descriptor(client, stream.recording_id)
        self.recording_id = stream.recording_id
        self.stream_id: int = self.row["streamId"]
        self.subscription_id = client.call(
            "extendRecording", self.recording_id, IPC, self.stream_id, "LOCAL", auto_stop
        )
        position = changes.pop("position", self.row["stopPosition"])
        self.publication = client.add_exclusive_publication(
            channel_at(self.row, position, **changes), self.stream_id
        )

    def offer(self, client: JavaClient, *, seed: int, first_index: int, count: int) -> int:
        """Offer messages, wait until they are recorded; return where they end."""
        counter = client.recording_counter(self.publication["sessionId"])
        assert counter["recordingId"] == self.recording_id
        offered = client.offer(
            self.publication, seed=seed, first_index=first_index, count=count, max_length=4000
        )
        position: int = offered["position"]
        assert client.await_counter(counter["counterId"], position) == position
        return position


def replay_all(
    client: JavaClient, recording_id: int, length: int, position: int = 0
) -> dict[str, Any]:
    """Replay a recording from its start; return what was polled."""
    subscription = client.call(
        "replay", recording_id, position, length, "aeron:ipc", new_stream_id()
    )
    played = client.poll(subscription, 100_000)
    client.close_resource(subscription)
    return played


def replay_live(client: JavaClient, recording_id: int, count: int) -> dict[str, Any]:
    """Replay a number of messages of a live recording, from its start."""
    subscription = client.call("replay", recording_id, 0, -1, "aeron:ipc", new_stream_id())
    played = client.poll(subscription, count)
    client.close_resource(subscription)
    return played


def await_error(client: JavaClient) -> int:
    """Wait for an error without a call; return its code."""
    codes: list[int | None] = []

    def is_available() -> bool:
        try:
            client.call("checkForErrorResponse")
        except JavaArchiveException as error:
            codes.append(error.error_code)
        return bool(codes)

    await_true(is_available)
    assert codes[0] is not None
    return codes[0]


@pytest.mark.parametrize("count", [1, 300])
def test_an_extended_recording_is_one_recording(
    either: Any, client: JavaClient, count: int
) -> None:
    """Descriptor, counter, files, signals and the replay across the join position."""
    stream = record(client, count=count)
    assert stream.position % SEGMENT_LENGTH
    signals = Signals(client)
    extended = Extended(client, stream)
    counter = client.recording_counter(extended.publication["sessionId"])
    session_id = extended.publication["sessionId"]
    assert counter["label"] == (
        f"rec-pos: {stream.recording_id} {session_id} {extended.stream_id} aeron:ipc"
        f" - archiveId={client.call('archiveId')}"
    )
    running = descriptor(client, stream.recording_id)
    assert (running["stopPosition"], running["stopTimestamp"]) == (-1, -1)
    end = extended.offer(client, seed=extended.stream_id, first_index=count, count=200)
    client.call("stopRecording", extended.subscription_id)
    await_true(lambda: client.call("getStopPosition", stream.recording_id) == end)
    client.close_resource(extended.publication)

    row = descriptor(client, stream.recording_id)
    changed = {"sessionId": session_id, "stopPosition": end}
    ignored = {"correlationId", "stopTimestamp"}
    assert row["stopTimestamp"] >= extended.row["stopTimestamp"]
    assert {**row, **dict.fromkeys(ignored)} == {
        **extended.row,
        **changed,
        **dict.fromkeys(ignored),
    }
    assert segment_bases(either.archive_dir, stream.recording_id) == list(
        range(0, end + 1, SEGMENT_LENGTH)
    )
    assert signals.await_of(stream.recording_id, 4) == [
        ("START", 0),
        ("STOP", stream.position),
        ("EXTEND", stream.position),
        ("STOP", end),
    ]
    assert {each["subscriptionId"] for each in signals.taken[-2:]} == {extended.subscription_id}

    played = replay_all(client, stream.recording_id, end)
    assert (played["count"], played["lastPosition"], played["ended"]) == (count + 200, end, True)
    # As one stream.
    assert played["digest"] == digest(messages(extended.stream_id, count + 200, max_length=4000))


def test_an_extension_that_begins_within_the_first_term(either: Any, client: JavaClient) -> None:
    """The first segment is named for the start of the term."""
    stream_id = new_stream_id()
    start = 3 * SEGMENT_LENGTH + 4096
    given = {"termBufferLength": 65536, "mtuLength": 1408, "initialTermId": -7}
    client.call("startRecording", IPC, stream_id, "LOCAL")
    stream = Recorded(client, channel_at(given, start), stream_id, count=5)
    client.call("stopRecording", IPC, stream_id)
    await_true(lambda: stream.is_stopped(client))
    client.close_resource(stream.publication)
    row = descriptor(client, stream.recording_id)
    assert (row["startPosition"], row["initialTermId"]) == (start, -7)

    extended = Extended(client, stream)
    end = extended.offer(client, seed=stream_id, first_index=5, count=100)
    client.call("stopRecording", extended.subscription_id)
    await_true(lambda: client.call("getStopPosition", stream.recording_id) == end)
    assert descriptor(client, stream.recording_id)["startPosition"] == start
    assert segment_bases(either.archive_dir, stream.recording_id) == list(
        range(3 * SEGMENT_LENGTH, end + 1, SEGMENT_LENGTH)
    )
    played = replay_all(client, stream.recording_id, end - start, position=start)
    assert played["digest"] == digest(messages(stream_id, 105, max_length=4000))


@pytest.mark.parametrize("is_file_there", [True, False])
def test_an_extension_that_begins_with_a_segment(
    either: Any, client: JavaClient, is_file_there: bool
) -> None:
    """The segment file exists already, or was deleted by a truncation."""
    stream = record(client, count=300)
    end = 2 * SEGMENT_LENGTH
    client.call("truncateRecording", stream.recording_id, end)
    Signals(client).await_of(stream.recording_id, 3)
    if is_file_there:
        path = Path(either.archive_dir, f"{stream.recording_id}-{end}.rec")
        path.write_bytes(bytes(SEGMENT_LENGTH))
    retained = replay_all(client, stream.recording_id, end)["count"]
    extended = Extended(client, stream)
    extended.offer(client, seed=extended.stream_id, first_index=retained, count=100)
    played = replay_live(client, stream.recording_id, retained + 100)
    assert played["digest"] == digest(messages(extended.stream_id, retained + 100, max_length=4000))
    client.call("stopRecording", IPC, extended.stream_id)


@pytest.mark.parametrize("source", ["LOCAL", "REMOTE"])
def test_an_extension_over_udp(client: JavaClient, source: str) -> None:
    """It is recorded by a spy or a separate subscription, with a different endpoint."""
    stream = record(client, count=100)
    row = descriptor(client, stream.recording_id)
    stream_id = row["streamId"]
    channel = f"aeron:udp?endpoint=localhost:{java.free_port()}"
    client.call("extendRecording", stream.recording_id, channel, stream_id, source)
    options = channel_at(row, stream.position).partition("?")[2]
    publication = client.add_exclusive_publication(f"{channel}|ssc=true|{options}", stream_id)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=stream_id, first_index=100, count=100, max_length=4000)
    assert client.await_counter(counter["counterId"], offered["position"]) == offered["position"]
    client.call("stopRecording", channel, stream_id)
    await_true(lambda: client.call("getStopPosition", stream.recording_id) == offered["position"])
    played = replay_all(client, stream.recording_id, offered["position"])
    assert played["digest"] == digest(messages(stream_id, 200, max_length=4000))
    # Its channels and source identity are unchanged.
    after = descriptor(client, stream.recording_id)
    for name in ("strippedChannel", "originalChannel", "sourceIdentity", "startTimestamp"):
        assert after[name] == row[name]


def test_a_replay_follows_the_extension(client: JavaClient) -> None:
    """A replay from before the extension continues with frames recorded after its start."""
    stream = record(client, count=50)
    extended = Extended(client, stream)
    extended.offer(client, seed=extended.stream_id, first_index=50, count=50)
    replay = client.call(
        "replay", stream.recording_id, 0, (1 << 63) - 1, "aeron:ipc", new_stream_id()
    )
    first = client.poll(replay, 100)
    assert first["digest"] == digest(messages(extended.stream_id, 100, max_length=4000))
    end = extended.offer(client, seed=extended.stream_id, first_index=100, count=50)
    assert client.poll(replay, 50)["lastPosition"] == end
    client.call("stopRecording", IPC, extended.stream_id)
    assert client.poll(replay, 1)["ended"] is True


def test_auto_stop_ends_the_extension_with_its_stream(client: JavaClient) -> None:
    """The subscription ends too; the recording can be extended again."""
    stream = record(client, count=20)
    for index in (1, 2):
        signals = Signals(client)
        extended = Extended(client, stream, auto_stop=True)
        end = extended.offer(client, seed=1, first_index=0, count=20)
        client.close_resource(extended.publication)
        await_true(lambda: client.call("getStopPosition", stream.recording_id) == end)  # noqa: B023
        await_true(lambda: client.call("tryStopRecording", IPC, extended.stream_id) is False)  # noqa: B023
        assert signals.of(stream.recording_id)[-1] == ("STOP", end)
        assert len(signals.of(stream.recording_id)) == (4 if index == 1 else 2)


def test_refused_extensions(client: JavaClient) -> None:
    """Unknown and live recordings, other stream ids, used subscriptions and invalid channels."""

    def refused(*args: Any) -> int | None:
        code = error_code(client, "extendRecording", *args, "LOCAL")
        assert error_code(client, "extendRecording", *args, "LOCAL", True) == code
        return code

    stream = record(client, count=5)
    recording_id, stream_id = stream.recording_id, stream.publication["streamId"]
    assert refused(NOBODY, IPC, stream_id) == 5
    assert refused(-1, IPC, stream_id) == 5
    assert refused(recording_id, IPC, stream_id + 1000) == 5
    assert refused(recording_id, "not a channel", stream_id) == 0
    assert refused(recording_id, "aeron:nowhere", stream_id) == 0
    assert refused(recording_id, "aeron:udp?endpoint=localhost", stream_id) == 0
    client.call("startRecording", IPC, stream_id, "LOCAL")
    assert refused(recording_id, IPC, stream_id) == 3
    live = Recorded(client, IPC, stream_id, count=5)
    assert refused(live.recording_id, IPC, stream_id) == 2
    client.call("stopRecording", IPC, stream_id)
    assert descriptor(client, recording_id)["stopPosition"] == stream.position


@pytest.mark.parametrize("auto_stop", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"position": 65536},
        {"initialTermId": 12345},
        {"termBufferLength": 131072},
        {"mtuLength": 2048},
    ],
    ids=str,
)
def test_images_that_cannot_extend(
    client: JavaClient, changes: dict[str, int], auto_stop: bool
) -> None:
    """Each is an error with the request's correlation id; the recording is unchanged.

    The subscription continues for other images, unless it has auto-stop.
    """
    stream = record(client, count=5)
    before = descriptor(client, stream.recording_id)
    wrong = Extended(client, stream, auto_stop=auto_stop, **changes)
    assert await_error(client) == 9
    row = descriptor(client, stream.recording_id)
    assert {**row, "correlationId": 0} == {**before, "correlationId": 0}
    client.close_resource(wrong.publication)
    if auto_stop:
        await_true(lambda: client.call("tryStopRecording", IPC, wrong.stream_id) is False)
        return
    publication = client.add_exclusive_publication(
        channel_at(before, stream.position), wrong.stream_id
    )
    counter = client.recording_counter(publication["sessionId"])
    assert counter["recordingId"] == stream.recording_id
    # One image at a time extends a recording.
    another = client.add_exclusive_publication(channel_at(before, stream.position), wrong.stream_id)
    assert await_error(client) == 2
    assert client.call("tryStopRecording", IPC, wrong.stream_id) is True
    client.close_resource(publication)
    client.close_resource(another)


@pytest.mark.parametrize("kind", KINDS)
def test_limits_hold_for_extensions(run_archive: Callable[..., Any], kind: str) -> None:
    """The limit of concurrent recordings is checked at the request."""
    properties = {"aeron.archive.max.concurrent.recordings": "1"}
    with run_archive(kind, properties) as archive, JavaClient(archive.aeron_dir) as client:
        client.connect(archive.control_channel)
        stream = record(client, count=5)
        stream_id = stream.publication["streamId"]
        live_id = new_stream_id()
        client.call("startRecording", IPC, live_id, "LOCAL")
        Recorded(client, IPC, live_id, count=1)
        args = (stream.recording_id, IPC, stream_id, "LOCAL")
        assert error_code(client, "extendRecording", *args) == 8


def test_an_extension_needs_storage_space(start_daemon: Callable[..., Any]) -> None:
    """Without space the error code is STORAGE_SPACE, as for a new recording."""
    daemon = start_daemon()
    with JavaClient(daemon.aeron_dir) as client:
        client.connect(daemon.control_channel)
        stream = record(client, count=5)
    daemon.stop()
    again = start_daemon(properties={"aeron.archive.low.storage.space.threshold": "8000000g"})
    with JavaClient(again.aeron_dir) as client:
        client.connect(again.control_channel)
        args = (stream.recording_id, IPC, stream.publication["streamId"], "LOCAL")
        assert error_code(client, "extendRecording", *args) == 11
