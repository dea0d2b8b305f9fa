"""Reads that combine a store with the end of the log that is not replicated yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import ServedArchive
from support.entity.memory_store import MemoryStore
from support.entity.model import Journal
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.codecs.entity import Event
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.records import EventRecord, Head, Pointer
from aerotape.entity.replicator import Replicator
from aerotape.entity.stores import base
from aerotape.entity.stores.url import open_store
from aerotape.entity.topic import recordings_of
from aerotape.errors import EntityError, JournalChangedError


class Replicated:
    """A topic of one partition with a store that replicates when a test says so."""

    def __init__(self, client: aerotape.ArchiveClient, store: MemoryStore) -> None:
        self.client = client
        self.store = store
        self.journal: Entities = client.entities(new_topic(), 1, store)

    def replicate(self, limit: int | None = None) -> None:
        self.store.replicate(self.client, self.journal.topic, limit)

    def read(self, id: str = "k", from_seq_nr: int = 1) -> list[int]:
        return numbers(self.journal.read(id, from_seq_nr))


@pytest.fixture
def topic(client: aerotape.ArchiveClient) -> Iterator[Replicated]:
    """A topic whose store has the events 1 to 5 of k."""
    topic = Replicated(client, MemoryStore())
    topic.journal.append("k", events(1, 2, 3, 4, 5))
    topic.replicate()
    yield topic
    topic.journal.close()


def test_unreplicated_appends_follow_the_store(topic: Replicated) -> None:
    """Events come from the store first, then from the log, each once."""
    topic.journal.append("k", events(6, 7))
    assert topic.read() == [1, 2, 3, 4, 5, 6, 7]
    assert topic.read("k", 5) == [5, 6, 7]
    assert topic.read("k", 7) == [7]
    assert topic.journal.pointer("k") == 7
    assert topic.journal.pointer("nobody") is None


def test_events_that_were_appended_before(topic: Replicated) -> None:
    """Of events with the same number, the first is given, also if the log repeats it."""
    (first,) = (each.event for each in topic.journal.read("k", 5))
    topic.journal.append("k", [Event(4, b"again", "text"), Event(5, b"again", "text")])
    assert [each.event for each in topic.journal.read("k", 5)] == [first]
    assert topic.journal.pointer("k") == 5
    topic.journal.append("k", [Event(5, b"again", "text"), *events(6)])
    assert topic.read() == [1, 2, 3, 4, 5, 6]
    assert [each.event for each in topic.journal.read("k", 5)] == [first, *events(6)]


def test_unreplicated_delete(topic: Replicated) -> None:
    """Events that a delete in the log covers are not given, though the store has them."""
    topic.journal.delete("k", 3)
    assert topic.read() == [4, 5]
    assert topic.journal.pointer("k") == 5
    topic.journal.append("k", events(6))
    assert topic.read() == [4, 5, 6]
    topic.journal.delete("k", 13)
    assert topic.read() == []
    assert topic.journal.pointer("k") == 6


def test_unreplicated_purge(topic: Replicated) -> None:
    """After a purge in the log nothing is given, and nothing of the old journal later."""
    topic.journal.purge("k")
    assert topic.read() == []
    assert topic.journal.pointer("k") is None
    assert topic.journal.delete("k", 2) is None
    topic.journal.append("k", events(1, 2))
    assert topic.read() == [1, 2]
    topic.journal.delete("k", 1)
    assert topic.read() == [2]
    assert [record.offset > 0 for record in topic.journal.read("k")] == [True]


def test_replication_changes_no_result(topic: Replicated) -> None:
    """A read gives the same at every step of the replication."""
    journal = topic.journal
    journal.delete("k", 2)
    journal.append("k", events(6))
    journal.purge("k")
    journal.append("k", events(1, 2, 3))
    journal.delete("k", 2)
    journal.append("k", events(4))
    for _ in range(20):
        assert topic.read() == [3, 4]
        assert journal.pointer("k") == 4
        topic.replicate(limit=1)
    topic.replicate()
    assert topic.read() == [3, 4]


def test_delete_to_beyond_the_last_event_in_the_store(topic: Replicated) -> None:
    """A head whose last deleted number exceeds that of its last event is obeyed."""
    topic.store.model.journals["k"] = Journal(5, 7)
    assert topic.read() == []
    topic.journal.append("k", events(6, 7, 8, 9))
    assert topic.read() == [8, 9]


def test_nothing_is_given_before_the_log_is_read(client: aerotape.ArchiveClient) -> None:
    """The store's events are read only after the end of the log was looked through."""

    class Watched(MemoryStore):
        passes = -1

        def events(
            self, topic: str, id: str, from_seq_nr: int = 1, record_id: str | None = None
        ) -> Iterator[EventRecord]:
            self.passes = watched.journal.statistics.passes
            return super().events(topic, id, from_seq_nr, record_id)

    store = Watched()
    watched = Replicated(client, store)
    watched.journal.append("k", events(1, 2))
    watched.replicate()
    watched.journal.append("k", events(3))
    records = watched.journal.read("k")
    assert (watched.journal.statistics.passes, store.passes) == (1, -1)
    assert next(records).seq_nr == 1
    assert store.passes == 1


# ---- how much of the log is read -----------------------------------------------------------------


def test_log_is_not_read_when_all_is_replicated(topic: Replicated) -> None:
    """If the store has everything up to the mark, the log is not read."""
    assert topic.read() == [1, 2, 3, 4, 5]
    topic.replicate()
    assert topic.journal.pointer("k") == 5
    assert topic.journal.statistics.passes == 0


def test_one_pass_over_the_end_of_the_log(topic: Replicated) -> None:
    """A read looks once at each record past the pointer, and at none before it."""
    topic.journal.append_many(("other", events(number)) for number in range(1, 31))
    topic.journal.append("k", events(6))
    assert topic.read() == [1, 2, 3, 4, 5, 6]
    statistics = topic.journal.statistics
    assert (statistics.passes, statistics.records, statistics.decoded_payloads) == (1, 31, 1)


def test_events_that_the_store_has_by_then(client: aerotape.ArchiveClient) -> None:
    """If the replicator catches up during a read, events are not given twice."""

    class Late(MemoryStore):
        def pointer(self, topic: str, partition: int) -> Pointer | None:
            before = super().pointer(topic, partition)
            self.replicate(client, topic)
            return before

    late = Replicated(client, Late())
    for seq_nr in range(1, 6):
        late.journal.append("k", events(seq_nr))
        assert late.read() == list(range(1, seq_nr + 1))
    assert late.journal.statistics.decoded_payloads == 0


def test_later_records_of_the_store(topic: Replicated) -> None:
    """Records past the mark are not given, and do not mix two journals of an entity."""
    topic.journal.append("k", events(6))
    records = topic.journal.read("k")
    topic.journal.append("k", events(7))
    topic.replicate()
    assert numbers(records) == [1, 2, 3, 4, 5, 6]
    topic.journal.append("k", events(8))
    records = topic.journal.read("k")
    topic.journal.purge("k")
    topic.journal.append("k", events(1, 9))
    topic.replicate()
    assert numbers(records) == []  # the later purge shows, the journal after it does not
    assert topic.read() == [1, 9]


@pytest.mark.parametrize("change", ["delete", "purge"])
def test_changes_while_a_replicated_journal_is_read(
    archive: ServedArchive, client: aerotape.ArchiveClient, tmp_path: Path, change: str
) -> None:
    """Where events that were not read yet are missing by then, reading ends with an error."""
    name, url = new_topic(), f"sqlite:{tmp_path / 'entities.db'}"

    def replicate() -> None:
        replicator = Replicator(name, archive.connect, lambda: open_store(url, writable=True))
        list(replicator.run(until_caught_up=True))

    with client.entities(name) as journal:
        for first in range(1, 1001, 100):
            journal.append("k", events(*range(first, first + 100)))
        replicate()
        journal.append("k", events(1001))
        with open_store(url) as store, client.entities(name, store=store) as reader:
            records, unread = reader.read("k"), reader.read("k")
            assert next(records).seq_nr == 1
            if change == "purge":
                journal.purge("k")
            else:
                journal.delete("k", 900)
            replicate()
            read: list[int] = []
            with pytest.raises(JournalChangedError, match="read it again"):
                read.extend(record.seq_nr for record in records)
            assert read == list(range(2, base.PAGE + 1))
            remaining = [] if change == "purge" else list(range(901, 1002))
            assert numbers(unread) == remaining
            assert numbers(reader.read("k")) == remaining


@pytest.mark.parametrize("appended", [2, 3])
def test_head_past_the_end_of_the_log(client: aerotape.ArchiveClient, appended: int) -> None:
    """A purge that is replicated between pointer and head, as in Cassandra, shows as a whole."""

    class Torn(MemoryStore):
        def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
            pointer = self.pointer(topic, partition)
            writer.purge("k")
            self.replicate(client, topic)
            return pointer, self.head(topic, id)

    store, name = Torn(), new_topic()
    with client.entities(name) as writer, client.entities(name, 1, store) as reader:
        writer.append("k", events(1, 2))
        store.replicate(client, name)
        writer.append("k", events(appended))
        assert numbers(reader.read("k")) in ([], sorted({1, 2, appended}))


def test_log_purged_past_the_pointer(topic: Replicated) -> None:
    """A log that was purged where it is not replicated is an error that says so."""
    topic.journal.append_many(
        ("k", [Event(number, bytes(1000), "binary")]) for number in range(6, 400)
    )
    (recording,) = recordings_of(topic.journal.topic, topic.client.list_recordings()).values()
    topic.client.purge_segments(recording.recording_id, recording.segment_file_length)
    with pytest.raises(EntityError, match="events are lost"):
        topic.journal.read("k")


def test_store_of_another_log(topic: Replicated) -> None:
    """A store that is replicated further than the log has been written is refused."""
    topic.store.pointers[0] = Pointer(1 << 20, (1 << 20) + 64)
    with pytest.raises(EntityError, match="the store is that of another log"):
        topic.read()
    with pytest.raises(EntityError, match="the store is that of another log"):
        topic.journal.pointer("k")


def test_ends_of_terms(topic: Replicated) -> None:
    """Reads are right wherever the pointer and the mark are in a term, also at its end."""
    for number in range(6, 150):
        topic.journal.append("k", [Event(number, bytes(1000 + number), "binary")])
        if number % 3:
            topic.replicate()
        assert topic.read("k", number - 2) == [number - 2, number - 1, number]
    (recording,) = recordings_of(topic.journal.topic, topic.client.list_recordings()).values()
    written = topic.client.recording_position(recording.recording_id)
    assert written > 2 * recording.term_buffer_length


def test_replication_of_another_partition(client: aerotape.ArchiveClient) -> None:
    """Each partition has its own pointer."""
    store = MemoryStore()
    with client.entities(new_topic(), 3, store) as journal:
        ids = [f"id-{number}" for number in range(12)]
        journal.append_many((id, events(1, 2)) for id in ids)
        store.replicate(client, journal.topic)
        del store.pointers[1]
        journal.append_many((id, events(3)) for id in ids)
        for id in ids:
            assert numbers(journal.read(id)) == [1, 2, 3]


def test_marks_alone_are_not_read_again(topic: Replicated) -> None:
    """Marks of earlier reads, and own records of other entities, need no pass over the log."""
    statistics = topic.journal.statistics
    for number in range(1, 6):
        assert topic.read() == [1, 2, 3, 4, 5]
        topic.journal.append("another", events(number))
    assert statistics.passes == 0
    with topic.client.entities(topic.journal.topic) as other:
        other.append("other", events(1))
        for _ in range(3):
            assert topic.read() == [1, 2, 3, 4, 5]
        assert statistics.passes == 3
        topic.replicate()
        topic.journal.append("k", events(6))
        assert topic.read() == [1, 2, 3, 4, 5, 6]
        assert statistics.passes == 4
        topic.replicate()
        assert topic.read() == [1, 2, 3, 4, 5, 6]
    with topic.client.entities(topic.journal.topic, 1, topic.store) as other:
        assert numbers(other.read("k")) == [1, 2, 3, 4, 5, 6]
        topic.journal.append("k", events(7))
        assert numbers(other.read("k")) == [1, 2, 3, 4, 5, 6, 7]
    assert statistics.passes == 4
