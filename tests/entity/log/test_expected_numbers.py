"""Appends that expect a last sequence number: the order of the log decides."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.entity.memory_store import MemoryStore
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.codecs.entity import Event
from aerotape.codecs.entity.actions import ActionKind
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.topic import recordings_of
from aerotape.errors import EntityError, SequenceConflictError
from aerotape.frame_header import HEADER_LENGTH
from aerotape.waiting import Task, run


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """Our archive, and the Java one."""
    with serve(request.param) as served:
        yield served


@pytest.fixture
def journal(client: aerotape.ArchiveClient) -> Iterator[Entities]:
    """A new topic."""
    with client.entities(new_topic(), 2) as journal:
        yield journal


def conflict(journal: Entities, id: str, first: int) -> int:
    """Append event `first` after the one before; return the last number that the error has."""
    before = numbers(journal.read(id))
    with pytest.raises(SequenceConflictError, match=f"not with {first - 1}: nothing") as caught:
        journal.append(id, events(first), expect=first - 1)
    assert (caught.value.id, caught.value.expected) == (id, first - 1)
    assert caught.value.topic == journal.topic
    assert numbers(journal.read(id)) == before
    return caught.value.actual


def test_expected_number(journal: Entities) -> None:
    """An append succeeds after the number that it expects, and changes nothing after another."""
    journal.append("k", events(1, 2), expect=0)
    assert conflict(journal, "k", 1) == 2
    assert conflict(journal, "k", 2) == 2
    assert conflict(journal, "k", 4) == 2
    journal.append("k", events(3), expect=2)
    journal.delete("k", 3)
    assert conflict(journal, "k", 1) == 3
    journal.append("k", events(4), expect=3)
    assert numbers(journal.read("k")) == [4]
    journal.purge("k")
    assert conflict(journal, "k", 5) == 0
    journal.append("k", events(1), expect=0)
    assert numbers(journal.read("k")) == [1]
    assert conflict(journal, "another", 2) == 0


def test_events_that_do_not_follow(journal: Entities) -> None:
    """Events that begin with another number than the next are refused, and nothing is written."""
    place = journal.append("k", events(1))
    for first, expect in ((3, 1), (1, 1), (2, -1)):
        with pytest.raises(EntityError, match=f"expect={expect} they begin with {expect + 1}"):
            journal.append("k", events(first), expect=expect)
    assert journal.append("k", events(2)).offset == place.next_position


def test_own_records_are_not_read(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """A writer without others reads the log once for each entity that was there before it."""
    for number in range(100):
        for id in "abc":
            journal.append(id, events(number + 1), expect=number)
    with pytest.raises(SequenceConflictError):
        journal.append("a", events(100), expect=99)
    assert journal.statistics.passes == 0
    with client.entities(journal.topic) as other:
        for number in range(100, 200):
            for id in "abcd":
                expect = number if id != "d" else number - 100
                other.append(id, events(expect + 1), expect=expect)
        assert other.statistics.passes == 4


def test_alternating_writers(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """Each of two writers sees what the other appended, and has to follow it."""
    journal.append("k", events(1), expect=0)
    with client.entities(journal.topic) as other:
        for number in range(0, 20, 2):
            if number:
                journal.append("k", events(number + 1), expect=number)
            assert conflict(other, "k", number + 1) == number + 1
            other.append("k", events(number + 2), expect=number + 1)
            assert conflict(journal, "k", number + 2) == number + 2
        assert numbers(journal.read("k")) == list(range(1, 21))


def test_concurrent_writers(archive: ServedArchive) -> None:
    """Of writers that expect the same number one succeeds; nothing acknowledged is missing."""
    topic, ids, acknowledged = new_topic(), "ab", list[tuple[str, int, str]]()
    lock = threading.Lock()

    def write(name: str, journal: Entities, chance: random.Random) -> None:
        last = dict.fromkeys(ids, 0)
        for _ in range(60):
            id = chance.choice(ids)
            event = Event(last[id] + 1, name.encode(), "text")
            try:
                journal.append(id, [event], expect=last[id])
            except SequenceConflictError as error:
                assert error.actual != last[id]
                last[id] = error.actual
            else:
                last[id] += 1
                with lock:
                    acknowledged.append((id, last[id], name))

    with (
        archive.connect() as first,
        archive.connect() as second,
        first.entities(topic) as one,
        second.entities(topic) as two,
    ):
        # Two threads share an object, a third has another client.
        threads = [
            threading.Thread(target=write, args=(str(each), journal, random.Random(each)))
            for each, journal in enumerate((one, one, two))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(acknowledged) == len({each[:2] for each in acknowledged})
        for id in ids:
            read = [
                (id, each.seq_nr, (each.event.payload or b"").decode()) for each in two.read(id)
            ]
            assert read == sorted(each for each in acknowledged if each[0] == id)
            assert [each[1] for each in read] == list(range(1, len(read) + 1))


def test_with_a_store_that_lags(client: aerotape.ArchiveClient) -> None:
    """The head in a store counts, and what the log has after it."""
    store, topic = MemoryStore(), new_topic()
    with client.entities(topic, 1, store) as writer:
        writer.append("k", events(1, 2), expect=0)
        store.replicate(client, topic)
        with client.entities(topic, 1, store) as other:
            other.append("k", events(3), expect=2)
            assert conflict(writer, "k", 3) == 3
            store.replicate(client, topic)
            passes = other.statistics.passes
        with client.entities(topic, 1, store) as other:
            other.append("k", events(4), expect=3)
            assert other.statistics.passes <= 1
        assert passes <= 2
        assert conflict(writer, "k", 1) == 4


def test_a_change_while_another_thread_reads(
    archive: ServedArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append by another thread, during a read that finds only marks, is not forgotten."""
    with (
        archive.connect() as first,
        archive.connect() as second,
        first.entities(new_topic()) as one,
        second.entities(one.topic) as two,
    ):
        one.append("b", events(1), expect=0)
        one.append("a", events(1), expect=0)
        assert two.pointer("c") is None  # its mark ends the run of known records
        writer = run(one._log.writer("b"))
        end_of_log = writer.end_of_log

        def end_of_log_and_append(mark: Callable[[], bytes]) -> Task[int]:
            end = yield from end_of_log(mark)
            one.append("a", events(2))
            return end

        with monkeypatch.context() as patch:
            patch.setattr(writer, "end_of_log", end_of_log_and_append)
            assert one.pointer("b") == 1
        with pytest.raises(SequenceConflictError) as caught:
            one.append("a", events(2), expect=1)
        assert caught.value.actual == 2
        one.append("a", events(3), expect=2)
        assert numbers(two.read("a")) == [1, 2, 3]


def test_a_log_that_is_purged_after_a_journal_was_known(archive: ServedArchive) -> None:
    """An append is decided though the log is purged from where its writer knew the journal."""
    topic, store = new_topic(), MemoryStore()
    channel = "aeron:ipc?term-length=64k"
    with (
        archive.connect() as first,
        archive.connect() as second,
        first.entities(topic, 1, store, channel=channel) as one,
        second.entities(topic, 1, store, channel=channel) as two,
    ):
        # Records of 512 bytes fill terms without padding, so that the run has all of them.
        assert one.append("a", filling(one, 1), expect=0).next_position == 512
        (recording,) = recordings_of(topic, first.list_recordings()).values()
        length = recording.segment_file_length
        one.append_many(("b", filling(one, number + 1)) for number in range(2 * length // 512))
        store.replicate(first, topic)
        assert first.purge_segments(recording.recording_id, length) >= 1
        two.append("b", events(10_000))
        one.append("a", events(2), expect=1)
        assert numbers(two.read("a")) == [1, 2]


def filling(journal: Entities, seq_nr: int) -> list[Event]:
    """Return an event whose append has 512 bytes in the log, with an id of one letter."""
    message, _ = journal._log.messages.append(
        ActionKind.CONDITIONAL_APPEND, "a", [Event(seq_nr, b"", "binary")]
    )
    return [Event(seq_nr, bytes(512 - HEADER_LENGTH - len(message)), "binary")]


def test_purge_of_an_unchanged_journal(client: aerotape.ArchiveClient) -> None:
    """A purge of a journal as a store has it does nothing once an append was faster."""
    store, topic = MemoryStore(), new_topic()
    with client.entities(topic, 1, store) as journal:
        journal.append("k", events(1))
        store.replicate(client, topic)
        head = store.head(topic, "k")
        assert head is not None
        journal.append("k", events(2))
        assert not journal.purge_unchanged("k", head)
        assert numbers(journal.read("k")) == [1, 2]
        store.replicate(client, topic)
        head = store.head(topic, "k")
        assert head is not None
        assert journal.purge_unchanged("k", head)
        assert not journal.purge_unchanged("k", head)
        assert numbers(journal.read("k")) == []
