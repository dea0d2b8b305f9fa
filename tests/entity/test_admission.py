"""Recordings that would contradict a topic of entities are refused by the archive."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.counter_keys import CounterType
from aerotape.entity.partition import Partition, partition_in
from aerotape.entity.topic import recordings_of
from aerotape.errors import ArchiveError, InvalidExtensionError


def written(client: aerotape.ArchiveClient, topic: str) -> Partition:
    """Write an event to a topic of two partitions, and return the partition that has it."""
    with client.entities(topic, 2) as journal:
        journal.append("k", events(1))
    [partition] = recordings_of(topic, client.list_recordings())
    return partition


def start(client: aerotape.ArchiveClient, partition: Partition) -> int:
    """Start a recording of a partition."""
    return client.start_recording(partition.channel("aeron:ipc"), partition.stream_id)


@pytest.mark.parametrize("change", [{"count": 3}, {"is_persistent": True}], ids=str)
def test_another_kind_of_topic_is_refused(
    client: aerotape.ArchiveClient, change: dict[str, int]
) -> None:
    """A recording of another number of partitions or another type, and the topic stays usable."""
    topic = new_topic()
    partition = written(client, topic)
    for index in range(2):
        with pytest.raises(ArchiveError, match=f"topic {topic} has 2 partitions of type VD_JOURN"):
            start(client, replace(partition, index=index, **change))  # type: ignore[arg-type]
    with client.entities(topic) as journal:
        assert numbers(journal.read("k")) == [1]


def test_a_partition_with_data_is_extended(client: aerotape.ArchiveClient) -> None:
    """A second recording of it is refused while it is written and later; another one is not."""
    topic = new_topic()
    with client.entities(topic, 2) as journal:
        journal.append("k", events(1))
        [partition] = recordings_of(topic, client.list_recordings())
        with pytest.raises(InvalidExtensionError, match="extend it"):
            start(client, partition)
    with pytest.raises(InvalidExtensionError, match="extend it"):
        start(client, partition)
    other = start(client, replace(partition, index=1 - partition.index))
    client.stop_recording_subscription(other)
    # The stream id is not that of the alias: not a partition.
    client.stop_recording_subscription(
        client.start_recording(partition.channel("aeron:ipc"), partition.stream_id + 1)
    )


def test_a_recording_stays_the_partition_that_it_is(client: aerotape.ArchiveClient) -> None:
    """An extension and another channel with another alias are refused, the same alias is not."""
    partition = written(client, new_topic())
    [recording] = [each for each in client.list_recordings() if partition_in(each) == partition]
    recording_id = recording.recording_id
    for other in (replace(partition, topic=new_topic()), replace(partition, count=9)):
        channel = other.channel("aeron:ipc")
        with pytest.raises(ArchiveError, match="use a channel with the same alias"):
            client.extend_recording(recording_id, channel, other.stream_id)
    for channel in ("aeron:ipc", "aeron:ipc?alias=mine"):
        with pytest.raises(ArchiveError, match="use a channel with the same alias"):
            client.extend_recording(recording_id, channel, partition.stream_id)
        with pytest.raises(ArchiveError, match="use a channel with the same alias"):
            client.update_channel(recording_id, channel)
    same = partition.channel("aeron:ipc?term-length=64k")
    client.update_channel(recording_id, same)
    [recording] = client.list_recordings(recording_id, 1)
    assert recording.original_channel == same


def test_a_volatile_topic_cannot_be_made_persistent_by_a_client(
    client: aerotape.ArchiveClient,
) -> None:
    """The durability of its channel is refused in a start, an extension and an update."""
    topic = new_topic()
    partition = written(client, topic)
    other = replace(partition, index=1 - partition.index)
    [recording] = recordings_of(topic, client.list_recordings()).values()
    for channel, request in (
        (other.channel("aeron:ipc"), lambda c: client.start_recording(c, other.stream_id)),
        (
            partition.channel("aeron:ipc"),
            lambda c: client.extend_recording(recording.recording_id, c, partition.stream_id),
        ),
        (
            partition.channel("aeron:ipc"),
            lambda c: client.update_channel(recording.recording_id, c),
        ),
    ):
        with pytest.raises(ArchiveError, match="is of type VD_JOURNAL: record it without"):
            request(f"{channel}|aerotape-durability=pd")


def test_a_persistent_topic_is_not_recorded_without_the_parameter(
    client: aerotape.ArchiveClient,
) -> None:
    """What the writer of such a topic takes for recorded would not be on storage."""
    partition = Partition(new_topic(), 0, 1, is_persistent=True)
    with pytest.raises(ArchiveError, match="record it with aerotape-durability=pd"):
        client.start_recording(partition.channel("aeron:ipc"), partition.stream_id)
    assert list(client.list_recordings_for_uri(partition.alias, partition.stream_id)) == []


def test_a_writer_requests_the_durability_of_its_topic(client: aerotape.ArchiveClient) -> None:
    """The channel of a recording of a persistent topic names it."""
    topic = new_topic()
    with client.entities(topic, 1, type="PD_JOURNAL") as journal:
        journal.append("k", events(1))
        [recording] = recordings_of(topic, client.list_recordings()).values()
    assert "aerotape-durability=pd" in recording.original_channel
    assert "aerotape-durability" not in recording.stripped_channel


def _is_confirmed(client: aerotape.ArchiveClient, partition: Partition) -> bool:
    found = recordings_of(partition.topic, client.list_recordings()).get(partition)
    rows = client.aeron.counters().rows(CounterType.CONFIRMED_POSITION)
    return found is not None and any(
        row[2][:8] == found.recording_id.to_bytes(8, "little") for row in rows
    )
