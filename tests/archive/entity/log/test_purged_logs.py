"""Logs whose beginning has been purged: a store has to have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.archive.entity.replicator import Replicator
from aerotape.archive.entity.retention import retain
from aerotape.archive.entity.stores.copying import copy_topic
from aerotape.archive.entity.stores.url import open_store
from aerotape.codecs.entity import Event
from aerotape.errors import EntityError, EntityStoreError


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
        with open_store(self.url) as store:
            (purged,) = retain(client, self.topic, [store], 1)
        assert purged.start_position > 0

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
