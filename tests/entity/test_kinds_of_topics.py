"""Topics over UDP, and topics whose records are acknowledged when they are on storage."""

from __future__ import annotations

import struct

import pytest
from support.daemon.archives import serve
from support.entity.topics import events, new_topic, numbers
from support.processes import free_port

import aerotape
from aerotape.counter_keys import CounterType
from aerotape.entity.topic import recordings_of
from aerotape.errors import ConfigurationError, EntityError


def test_over_udp(client: aerotape.ArchiveClient) -> None:
    """A topic over UDP is written, read and continued after a pause as one over IPC."""
    topic, channel = new_topic(), f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    for first in (1, 4):
        with client.entities(topic, 2, channel=channel) as journal:
            for id in ("a", "b", "c"):
                journal.append(id, events(first, first + 1, first + 2))
    with client.entities(topic, channel=channel) as journal:
        journal.delete("a", 4)
        journal.purge("b")
        assert [numbers(journal.read(id)) for id in "abc"] == [[5, 6], [], [1, 2, 3, 4, 5, 6]]
        assert [journal.pointer(id) for id in "abc"] == [6, None, 6]


def test_persistent_topic(client: aerotape.ArchiveClient) -> None:
    """Of a topic of type PD_JOURNAL, an acknowledged record is on storage; the type is found."""
    topic = new_topic()
    counters = client.aeron.counters()
    with client.entities(topic, type="PD_JOURNAL") as journal:
        for number in range(1, 100):
            place = journal.append("k", events(number))
            [recording] = recordings_of(topic, client.list_recordings()).values()
            key = struct.pack("<q", recording.recording_id)
            rows = counters.rows(CounterType.CONFIRMED_POSITION)
            [row] = [each for each in rows if each[2][:8] == key]
            assert counters.value(row[0]) >= place.next_position
        # A sync may be as fast as a look at another counter: it is this one that is awaited.
        [writer] = journal._log._writers.values()
        assert writer.recording.counter == (row[0], row[4])
    with client.entities(topic) as journal:
        assert journal.type == "PD_JOURNAL"
        journal.append("k", events(100))
        assert numbers(journal.read("k")) == list(range(1, 101))
    with pytest.raises(ConfigurationError, match=f"topic {topic} is of type PD_JOURNAL"):
        client.entities(topic, type="VD_JOURNAL")


@pytest.mark.jvm
def test_persistent_topic_in_the_java_archive() -> None:
    """An archive that does not report what is on storage cannot have such a topic."""
    with (
        serve("java") as archive,
        archive.connect() as client,
        client.entities(new_topic(), type="PD_JOURNAL") as journal,
        pytest.raises(EntityError, match="has no confirmed position: topics of type PD_JOURNAL"),
    ):
        journal.append("k", events(1))
