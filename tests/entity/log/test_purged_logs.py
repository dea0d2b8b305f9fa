"""Logs whose beginning has been purged: a store has to have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.daemon.between_requests import before_replay
from support.entity.memory_store import MemoryStore
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.codecs.entity import Event
from aerotape.entity.following.changes import TopicAppend
from aerotape.entity.replicator import Replicator
from aerotape.entity.retention import retain
from aerotape.entity.stores.copying import copy_topic
from aerotape.entity.stores.url import open_store
from aerotape.entity.topic import recordings_of
from aerotape.errors import EntityError, EntityStoreError, SequenceConflictError


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    """Our archive, and the Java one."""
    with serve(request.param) as served:
        yield served


class Purged:
    """A topic of which a store has everything and the log the end.

    Attributes:
        topic: its name.
        url: the store.
    """

    def __init__(
        self, archive: ServedArchive, client: aerotape.ArchiveClient, folder: Path
    ) -> None:
        self.archive, self.topic, self.url = archive, new_topic(), f"sqlite:{folder / 'store.db'}"
        with client.entities(self.topic) as journal:
            journal.append("k", events(1, 2))
            filling = (Event(number, bytes(4000), "binary") for number in range(1, 200))
            journal.append_many(("other", [each]) for each in filling)
            self.replicate(self.url)
        self.retain(client)

    def append_more(self, client: aerotape.ArchiveClient) -> int:
        """Append several segments, not replicated yet; return the position of the last record."""
        with open_store(self.url) as store, client.entities(self.topic, 1, store) as journal:
            journal.append("k", events(3))
            filling = (Event(number, bytes(4000), "binary") for number in range(200, 400))
            journal.append_many(("other", [each]) for each in filling)
            return journal.append("k", events(4)).offset

    def retain(self, client: aerotape.ArchiveClient, *, force: bool = False) -> None:
        with open_store(self.url) as store:
            (purged,) = retain(client, self.topic, [store], 1, force=force)
        assert purged.segment_files > 0

    def replicate(self, url: str) -> None:
        with Replicator(
            self.topic, self.archive.connect, lambda: open_store(url, writable=True)
        ) as replicator:
            list(replicator.run(until_caught_up=True))


@pytest.fixture
def purged(archive: ServedArchive, client: aerotape.ArchiveClient, tmp_path: Path) -> Purged:
    """A topic after retention."""
    return Purged(archive, client, tmp_path)


def test_without_a_store(client: aerotape.ArchiveClient, purged: Purged) -> None:
    """Everything is refused, and nothing is written; with the store everything works."""
    with client.entities(purged.topic) as journal:
        for refuse in (
            lambda: journal.append("k", events(3)),
            lambda: journal.append("new", events(1), expect=0),
            lambda: journal.delete("k", 1),
            lambda: journal.purge("k"),
            lambda: journal.pointer("k"),
            lambda: journal.read("k"),
        ):
            with pytest.raises(EntityError, match="has been purged, and no store is given"):
                refuse()
    with open_store(purged.url) as store, client.entities(purged.topic, 1, store) as journal:
        assert numbers(journal.read("k")) == [1, 2]
        journal.append("k", events(3), expect=2)
        assert numbers(journal.read("k")) == [1, 2, 3]
        assert journal.pointer("other") == 199


def test_new_namespace(client: aerotape.ArchiveClient, purged: Purged, tmp_path: Path) -> None:
    """A replicator refuses a namespace that has nothing of it, until it is filled from another."""
    url = f"sqlite:{tmp_path / 'new.db'}"
    with pytest.raises(EntityError, match=r"has nothing of it; .*entity copy-store"):
        purged.replicate(url)
    with (
        open_store(url) as store,
        client.entities(purged.topic, 1, store) as journal,
        pytest.raises(EntityError, match="and the store has it up to 0"),
    ):
        journal.read("k")
    copy_topic(purged.url, url, purged.topic)
    with client.entities(purged.topic, 1, None) as journal, pytest.raises(EntityError):
        journal.pointer("k")
    purged.replicate(url)
    with open_store(url) as store, client.entities(purged.topic, 1, store) as journal:
        assert numbers(journal.read("k")) == [1, 2]
        journal.append("k", events(3), expect=2)
    purged.replicate(url)
    with open_store(url) as store:
        assert numbers(store.events(purged.topic, "k")) == [1, 2, 3]


def test_mistyped_store(client: aerotape.ArchiveClient, purged: Purged, tmp_path: Path) -> None:
    """The path of a store that does not exist is refused and not created."""
    before = sorted(tmp_path.iterdir())
    with pytest.raises(EntityStoreError, match="check the URL, or start a replicator first"):
        open_store(f"sqlite:{tmp_path / 'stor.db'}")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("what", ["read", "pointer", "snapshot", "append"])
def test_retention_beside_a_reader(
    client: aerotape.ArchiveClient, purged: Purged, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """What is replicated and purged after the store was read is read from the store again."""
    purged.append_more(client)

    def retain() -> None:
        purged.replicate(purged.url)
        purged.retain(client)

    with open_store(purged.url) as store, client.entities(purged.topic, 1, store) as journal:
        asked = before_replay(monkeypatch, retain)
        if what == "read":
            assert numbers(journal.read("k")) == [1, 2, 3, 4]
        elif what == "pointer":
            assert journal.pointer("k") == 4
        elif what == "append":
            # The store has the record too: whether it counted was decided in the purged part.
            with pytest.raises(EntityError, match="read again"):
                journal.append("k", events(3), expect=2)
            assert numbers(journal.read("k")) == [1, 2, 3, 4]
        else:
            assert journal.snapshot("k") is None
        assert asked[0] < client.start_position(_recording(client, purged.topic))


def test_a_log_that_is_purged_while_it_is_iterated(
    client: aerotape.ArchiveClient, purged: Purged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second pass over what was purged meanwhile raises, and reading again has all events."""
    purged.append_more(client)

    def retain() -> None:
        purged.replicate(purged.url)
        purged.retain(client)

    with (
        open_store(purged.url) as store,
        client.entities(purged.topic, 1, store, buffer_length=8000) as journal,
    ):
        before_replay(monkeypatch, lambda: None, retain)
        reading = journal.read("other")
        with pytest.raises(EntityError, match=r"the store has it up to \d+: read again"):
            list(reading)
        assert numbers(journal.read("other")) == list(range(1, 400))


def test_events_that_are_lost(
    client: aerotape.ArchiveClient, purged: Purged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no store has what was purged, the error says that events are lost."""
    purged.append_more(client)
    with open_store(purged.url) as store, client.entities(purged.topic, 1, store) as journal:
        before_replay(monkeypatch, lambda: purged.retain(client, force=True))
        with pytest.raises(EntityError, match="events are lost"):
            journal.read("k")


def test_retention_beside_a_subscription(
    client: aerotape.ArchiveClient, purged: Purged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a position that the log still has, it continues; from one that was purged, it cannot."""
    last = purged.append_more(client)

    def retain() -> None:
        purged.replicate(purged.url)
        purged.retain(client)

    with open_store(purged.url) as store, client.entities(purged.topic, 1, store) as journal:
        before_replay(monkeypatch, retain)
        with journal.subscribe({0: last}, tags=("tag",), until_caught_up=True) as changes:
            (change,) = changes
        assert isinstance(change, TopicAppend)
        assert (change.id, numbers(change.events)) == ("k", [4])
        with (
            journal.subscribe({0: 32}, tags=("tag",), until_caught_up=True) as changes,
            pytest.raises(EntityError, match=r"cannot be followed from 32, its log begins at \d+"),
        ):
            list(changes)


def test_a_conditional_append_beside_retention(
    client: aerotape.ArchiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What precedes the record is read from the store where it was purged meanwhile."""
    store = MemoryStore()
    with client.entities(new_topic()) as journal:
        journal.append("k", events(1, 2))
        store.replicate(client, journal.topic)
        filling = [("other", [Event(number, bytes(4000), "binary")]) for number in range(1, 100)]
        journal.append_many(filling)
        journal.append("k", events(3))
        recording_id = _recording(client, journal.topic)
        recording = client.list_recording(recording_id)
        assert recording is not None

        def retain() -> None:
            store.replicate(client, journal.topic, len(filling) + 1)
            client.purge_segments(recording_id, recording.segment_file_length)

        before_replay(monkeypatch, retain)
        with (
            client.entities(journal.topic, 1, store) as other,
            pytest.raises(SequenceConflictError, match="ends with event 3, not with 2"),
        ):
            other.append("k", events(3), expect=2)


def _recording(client: aerotape.ArchiveClient, topic: str) -> int:
    (recording,) = recordings_of(topic, client.list_recordings()).values()
    return recording.recording_id
