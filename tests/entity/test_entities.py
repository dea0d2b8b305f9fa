"""Journals in the log alone: append, read, delete and purge, with our archive and the Java one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.codecs.entity import Event, head_segment
from aerotape.codecs.entity.actions import Append, Delete, Mark, Purge
from aerotape.codecs.entity.messages import decode
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.partition import Partition
from aerotape.entity.topic import recordings_of
from aerotape.errors import AeronTimeoutError, ConfigurationError, EntityError

DAY_NS = 86_400_000_000_000


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    with serve(request.param) as served:
        yield served


@pytest.fixture
def journal(client: aerotape.ArchiveClient) -> Iterator[Entities]:
    """A new topic of two partitions."""
    with client.entities(new_topic(), 2, origin="here") as entities:
        yield entities


def actions(client: aerotape.ArchiveClient, entities: Entities) -> list[object]:
    """Return all actions in the log of a topic."""
    found: list[object] = []
    for recording in recordings_of(entities.topic, client.list_recordings()).values():
        with client.replay(recording.recording_id, follow=False) as messages:
            found += [decode(message.payload) for message in messages]
    return found


def test_append_and_read(journal: Entities) -> None:
    """Events are read as they were appended, with what the record has."""
    mixed = [Event(1), Event(2, b"\x00\xff", "binary", ("a", "b")), Event(3, b'{"x":1}', "json")]
    place = journal.append(
        "order-1", mixed, expire_after_ns=DAY_NS, metadata={"m": 1}, payload_metadata=[2]
    )
    read = list(journal.read("order-1"))
    assert [record.event for record in read] == mixed
    for record in read:
        assert (record.partition, record.offset) == (place.partition, place.offset)
        assert (record.metadata, record.payload_metadata) == ({"m": 1}, [2])
        assert (record.expire_after_ns, record.origin) == (DAY_NS, "here")
        assert record.timestamp_ms > 1_700_000_000_000
    assert numbers(journal.read("order-1", 3)) == [3]
    assert numbers(journal.read("order-1", 4)) == []
    assert journal.pointer("order-1") == 3


def test_unknown_entity_is_empty(journal: Entities) -> None:
    """An entity without a journal has no events and no pointer."""
    journal.append("other", events(1))
    assert list(journal.read("nobody")) == []
    assert journal.pointer("nobody") is None


def test_sequence_numbers_may_have_gaps(journal: Entities) -> None:
    """Sequence numbers rise, not necessarily by one, and need not begin with 1."""
    journal.append("gaps", events(1, 2, 7))
    journal.append("gaps", events(20))
    journal.append("late", events(5, 6))
    assert numbers(journal.read("gaps")) == [1, 2, 7, 20]
    assert (numbers(journal.read("late")), journal.pointer("late")) == ([5, 6], 6)


@pytest.mark.parametrize(
    "refused", [[], events(0), events(2, 2), events(3, 2), [Event(1, b"{", "json")]]
)
def test_invalid_appends_are_refused(
    client: aerotape.ArchiveClient, journal: Entities, refused: list[Event]
) -> None:
    """Appends need events with strictly rising numbers; otherwise nothing is written."""
    journal.append("other", events(1))
    before = len(actions(client, journal))
    with pytest.raises(EntityError, match="'order'"):
        journal.append("order", refused)
    assert len(actions(client, journal)) == before


def test_append_is_one_record(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """The events of an append are one record, also if it takes many frames."""
    many = [Event(seq_nr, bytes(100), "binary") for seq_nr in range(1, 51)]
    journal.append("many", many)
    (only,) = actions(client, journal)
    assert isinstance(only, Append)
    assert (only.from_seq_nr, only.to_seq_nr) == (1, 50)
    assert [record.event for record in journal.read("many")] == many


def test_too_long_append_is_refused(journal: Entities) -> None:
    """An append that is longer than the longest message is refused, with the limit."""
    with pytest.raises(EntityError, match=r"at most [0-9]+; append fewer events"):
        journal.append("long", [Event(1, bytes(1 << 20), "binary")])
    assert list(journal.read("long")) == []


def test_append_many(journal: Entities) -> None:
    """Pipelined appends are recorded in order, in the partition of each entity."""
    ids = [f"id-{number}" for number in range(20)]
    places = journal.append_many((id, events(seq_nr)) for seq_nr in (1, 2) for id in ids)
    assert [place.partition for place in places[:20]] == [head_segment(id) % 2 for id in ids]
    assert {place.partition for place in places} == {0, 1}
    for id in ids:
        assert numbers(journal.read(id)) == [1, 2]


def test_delete(journal: Entities) -> None:
    """Delete removes events up to a number, no future ones; the journal continues after it."""
    journal.append("k", events(1, 2, 3, 4, 5))
    journal.delete("k", 3)
    assert numbers(journal.read("k")) == [4, 5]
    journal.delete("k", 5)
    assert (numbers(journal.read("k")), journal.pointer("k")) == ([], 5)
    journal.append("k", events(6))
    assert numbers(journal.read("k")) == [6]
    assert numbers(journal.read("k", 7)) == []


def test_delete_is_limited_to_what_exists(
    client: aerotape.ArchiveClient, journal: Entities
) -> None:
    """A delete beyond the last event stops there; without a journal nothing is written."""
    journal.append("k", events(1, 2))
    journal.delete("k", 13)
    journal.append("k", events(3))
    assert numbers(journal.read("k")) == [3]
    assert journal.delete("nobody", 3) is None
    deletes = [each for each in actions(client, journal) if isinstance(each, Delete)]
    assert [(each.id, each.to_seq_nr) for each in deletes] == [("k", 2)]
    with pytest.raises(EntityError, match="begin at 1"):
        journal.delete("k", 0)


def test_delete_to_a_snapshot(journal: Entities) -> None:
    """With a snapshot made at event 13, the events up to it can go; the others are left."""
    journal.append("k", events(*range(1, 16)))
    journal.delete("k", 13)
    assert (numbers(journal.read("k")), journal.pointer("k")) == ([14, 15], 15)


def test_purge(journal: Entities) -> None:
    """A purge leaves nothing; the next append begins a new journal from 1."""
    journal.append("k", events(1, 2, 3))
    journal.append("other", events(1))
    journal.purge("k")
    assert (list(journal.read("k")), journal.pointer("k")) == ([], None)
    journal.append("k", events(1))
    assert numbers(journal.read("k")) == [1]
    assert numbers(journal.read("other")) == [1]


def test_a_read_writes_a_mark(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """A read pushes a mark with a unique id, unless it knows that the log has not grown since."""

    def marks() -> list[Mark]:
        return [each for each in actions(client, journal) if isinstance(each, Mark)]

    journal.append("k", events(1))
    assert numbers(journal.read("k")) == [1]
    assert marks() == []
    with client.entities(journal.topic) as other:
        for _ in range(2):
            assert numbers(other.read("k")) == [1]
        assert [mark.id for mark in marks()] == ["k"]
        journal.append("m", events(1))
        for _ in range(2):
            assert numbers(other.read("k")) == [1]
        assert [mark.id for mark in marks()] == ["k", "k"]
        assert numbers(journal.read("k")) == [1]
    assert len({mark.mark_id for mark in marks()}) == len(marks()) == 3


def test_read_ends_while_others_append(journal: Entities) -> None:
    """A read ends at its mark, however many appends follow."""
    over = threading.Event()
    appended: list[int] = []

    def append() -> None:
        while not over.is_set():
            journal.append("busy", events(len(appended) + 1))
            appended.append(len(appended) + 1)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        for _ in range(20):
            acknowledged = len(appended)
            read = numbers(journal.read("busy"))
            assert read == list(range(1, len(read) + 1))
            assert len(read) >= acknowledged
    finally:
        over.set()
        thread.join()


def test_purge_without_a_journal(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """A purge is written even if there is no journal, and the log has no other action."""
    journal.purge("nobody")
    assert journal.pointer("nobody") is None
    assert any(isinstance(each, Purge) for each in actions(client, journal))


# ---- the log -------------------------------------------------------------------------------------


def test_foreign_payloads_are_not_decoded(journal: Entities) -> None:
    """One pass looks at all records; only payloads of the entity are decoded."""
    for number in range(50):
        journal.append(f"other-{number}", events(1, 2))
    journal.append("k", events(1))
    journal.append("k", events(2, 3))
    assert numbers(journal.read("k")) == [1, 2, 3]
    assert journal.statistics.passes == 1
    assert journal.statistics.decoded_payloads == 2


def test_second_pass_past_the_buffer(client: aerotape.ArchiveClient) -> None:
    """Appends that exceed the buffer are read again, only from the first that counts."""
    with client.entities(new_topic(), buffer_length=2000) as journal:
        journal.append_many(("other", events(number)) for number in range(1, 101))
        journal.append_many(("k", events(number)) for number in range(1, 101))
        journal.purge("k")
        journal.append_many(("k", events(number)) for number in range(1, 11))
        assert numbers(journal.read("k")) == list(range(1, 11))
        assert journal.statistics.passes == 1
        journal.append_many(("k", events(number)) for number in range(11, 101))
        seen = journal.statistics.records
        assert numbers(journal.read("k")) == list(range(1, 101))
        assert journal.statistics.passes == 3
        assert journal.statistics.records - seen == (200 + 1 + 100) + 100


def test_record_that_is_no_action(client: aerotape.ArchiveClient) -> None:
    """A message of another schema in the log is an error with its position."""
    topic = new_topic()
    with client.entities(topic) as journal:
        place = journal.append("k", events(1))
        partition = Partition(topic, 0, 1)
        with client.aeron.add_publication(
            partition.channel("aeron:ipc"), partition.stream_id
        ) as publication:
            publication.send(b"something else")
        with pytest.raises(EntityError, match=f"invalid record at {place.next_position}"):
            journal.read("k")


def test_purged_log_without_a_store(client: aerotape.ArchiveClient) -> None:
    """A log without its beginning is refused without a store: it would give wrong answers."""
    with client.entities(new_topic()) as journal:
        journal.append("k", events(1))
        end = journal.append_many(
            ("k", [Event(number, bytes(1000), "binary")]) for number in range(2, 300)
        )[-1].next_position
        ((_, recording),) = recordings_of(journal.topic, client.list_recordings()).items()
        length = recording.segment_file_length
        assert end > length
        client.purge_segments(recording.recording_id, length)
        refused = pytest.raises(
            EntityError, match=f"begins at {length}, the rest has been purged.*no store is given"
        )
        for each in (journal.read, journal.pointer, lambda id: journal.delete(id, 1)):
            with refused:
                each("k")
    with client.entities(journal.topic) as again:
        for refuse in (
            lambda: again.append("k", events(1)),
            lambda: again.append("k", events(300), expect=299),
            lambda: again.append_many([("k", events(1))]),
            lambda: again.purge("k"),
            lambda: again.read("k"),
        ):
            with refused:
                refuse()
    assert client.max_recorded_position(recording.recording_id) == end


# ---- recordings ----------------------------------------------------------------------------------


def recordings(client: aerotape.ArchiveClient, topic: str) -> list[aerotape.RecordingDescriptor]:
    return list(recordings_of(topic, client.list_recordings()).values())


def test_writers_share_a_recording(
    archive: ServedArchive, client: aerotape.ArchiveClient, journal: Entities
) -> None:
    """Writers of one media driver write to one recording, from several clients at once."""
    with archive.connect() as other, other.entities(journal.topic, 2) as second:
        for seq_nr in range(1, 11):
            (journal if seq_nr % 2 else second).append("k", events(seq_nr))
        assert numbers(journal.read("k")) == list(range(1, 11))
        assert numbers(second.read("k")) == list(range(1, 11))
    journal.append("k", events(11))
    assert numbers(journal.read("k")) == list(range(1, 12))
    assert len(recordings(client, journal.topic)) == 1


def test_first_writers_at_the_same_time(archive: ServedArchive) -> None:
    """Writers that begin a partition at the same time end with one recording."""
    topic = new_topic()
    with archive.connect() as one, archive.connect() as two, archive.connect() as three:
        topics = [client.entities(topic, 1) for client in (one, two, three)]
        threads = [
            threading.Thread(target=each.append, args=("k", events(number)))
            for number, each in enumerate(topics, 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(recordings(one, topic)) == 1
        assert len(actions(one, topics[0])) == 3


def test_writers_that_come_and_go(archive: ServedArchive) -> None:
    """Writers that open and close a topic at random lose nothing and share one recording."""
    topic, failures = new_topic(), []

    def use(name: str) -> None:
        try:
            with archive.connect(timeout_ns=60_000_000_000) as client:
                for number in range(1, 11):
                    with client.entities(topic, 1) as journal:
                        journal.append(name, events(number))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(f"id-{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with archive.connect() as client, client.entities(topic) as journal:
        assert len(recordings(client, topic)) == 1
        for number in range(3):
            assert numbers(journal.read(f"id-{number}")) == list(range(1, 11))


def test_recording_is_extended_after_a_pause(client: aerotape.ArchiveClient) -> None:
    """The first writer after a pause continues the recording, at once or later."""
    topic = new_topic()
    for seq_nr in range(1, 5):
        with client.entities(topic) as journal:
            journal.append("k", events(seq_nr))
            assert numbers(journal.read("k")) == list(range(1, seq_nr + 1))
    assert len(recordings(client, topic)) == 1


def test_stopped_recording_is_continued(client: aerotape.ArchiveClient) -> None:
    """An append after its recording was stopped is refused or continues it, but is never lost."""
    with client.entities(new_topic()) as journal:
        journal.append("k", events(1))
        (recording,) = recordings(client, journal.topic)
        assert client.stop_recording_by_identity(recording.recording_id)
        try:
            journal.append("k", events(2))
        except EntityError as error:
            assert "stopped at" in str(error)
            journal.append("k", events(2))
        assert numbers(journal.read("k")) == [1, 2]
        assert len(recordings(client, journal.topic)) == 1


@pytest.fixture
def elsewhere(archive: ServedArchive, aeron_dir: Path) -> Iterator[aerotape.ArchiveClient]:
    """A client of the archive on another media driver."""
    driver = aerotape.MediaDriver.launch(aeron_dir)
    try:
        with archive.connect(aeron_dir=aeron_dir) as connected:
            yield connected
    finally:
        driver.close()


def test_writer_of_another_driver(
    client: aerotape.ArchiveClient, elsewhere: aerotape.ArchiveClient
) -> None:
    """A writer on another driver than the archive's is refused, and leaves nothing behind."""
    topic = new_topic()
    with client.entities(topic) as journal:
        with (
            elsewhere.entities(topic, timeout_ns=200_000_000) as other,
            pytest.raises(AeronTimeoutError, match="on the archive's media driver"),
        ):
            other.append("k", events(1))
        assert list(client.list_recording_subscriptions(topic)) == []
        journal.append("k", events(1))
        with (
            elsewhere.entities(topic, timeout_ns=200_000_000) as other,
            pytest.raises(
                EntityError, match="another media driver or channel is writing to recording"
            ),
        ):
            other.append("k", events(2))
        assert numbers(journal.read("k")) == [1]


def test_two_recordings_of_a_partition(client: aerotape.ArchiveClient) -> None:
    """A second recording of a partition with data is an error that names both."""
    topic = new_topic()
    partition = Partition(topic, 0, 1)
    channel, stream_id = partition.channel("aeron:ipc"), partition.stream_id
    # A request without a session id records all sessions of the stream.
    subscription_id = client.start_recording(channel, stream_id, "local")
    for _ in range(2):
        with (
            client.signals(aerotape.RecordingSignal.STOP) as stops,
            client.aeron.add_exclusive_publication(channel, stream_id) as publication,
        ):
            publication.wait_connected()
            publication.send(b"x")
            publication.close()
            next(stops)
    client.stop_recording_subscription(subscription_id)
    with pytest.raises(EntityError, match=r"two recordings, [0-9]+ and [0-9]+"):
        client.entities(topic)


def test_partitions_are_fixed(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """A topic keeps its number of partitions, which others need not give."""
    journal.append_many((f"id-{number}", events(1)) for number in range(10))
    assert client.entities(journal.topic).partitions == 2
    with pytest.raises(ConfigurationError, match="has 2 partitions"):
        client.entities(journal.topic, 3)
    with pytest.raises(ConfigurationError, match="expected 1 to"):
        client.entities(new_topic(), 0)


def test_partitions_of_a_topic_that_begins(client: aerotape.ArchiveClient) -> None:
    """Of two writers that begin a topic with different partitions, the later one is refused."""
    topic = new_topic()
    with client.entities(topic, 2) as first, client.entities(topic, 3) as second:
        first.append("k", events(1))
        with pytest.raises(EntityError, match="has 2 partitions of type VD_JOURNAL by now, not 3"):
            second.append("k", events(1))


@pytest.mark.parametrize("topic", ["", "a|b", "a b", "ä", "x" * 201])
def test_invalid_topic_names(client: aerotape.ArchiveClient, topic: str) -> None:
    """The name of a topic is part of a channel, so it has few characters."""
    with pytest.raises(ConfigurationError, match="not a topic's name"):
        client.entities(topic)


def test_topics_with_similar_names(client: aerotape.ArchiveClient) -> None:
    """A topic whose name extends another's is another topic."""
    topic = new_topic()
    with client.entities(topic) as one, client.entities(f"{topic}-1") as other:
        one.append("k", events(1))
        other.append("k", events(2))
        assert (numbers(one.read("k")), numbers(other.read("k"))) == ([1], [2])


def test_closed_topic(client: aerotape.ArchiveClient) -> None:
    """A closed topic refuses operations; closing twice is allowed."""
    journal = client.entities(new_topic())
    journal.close()
    journal.close()
    with pytest.raises(EntityError, match="closed"):
        journal.append("k", events(1))
