"""Recordings extended through the Java client, by our daemon and by the Java archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.control_rig import await_true
from support.java import JavaClient
from support.java_streams import (
    IPC,
    SEGMENT_LENGTH,
    Recorded,
    Signals,
    channel_at,
    descriptor,
    new_stream_id,
    record,
    segment_bases,
)
from support.messages import digest, messages

NOBODY = 10_000


@pytest.fixture(scope="module")
def client(either: Any) -> Iterator[JavaClient]:
    """A Java client connected to one archive or the other."""
    with JavaClient(either.aeron_dir) as connected:
        connected.connect(either.control_channel)
        yield connected


class Extended:
    """A recording that goes on, with a publication of its own."""

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


def replay_all(client: JavaClient, recording_id: int, length: int) -> dict[str, Any]:
    """Replay a recording from its start; return what was polled."""
    subscription = client.call("replay", recording_id, 0, length, "aeron:ipc", new_stream_id())
    played = client.poll(subscription, 100_000)
    client.close_resource(subscription)
    return played


@pytest.mark.parametrize("count", [1, 300])
def test_an_extended_recording_is_one_recording(
    either: Any, client: JavaClient, count: int
) -> None:
    """Descriptor, counter, files, signals and what is replayed across the seam."""
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
    # As if it had been one stream from the start.
    assert played["digest"] == digest(messages(extended.stream_id, count + 200, max_length=4000))
