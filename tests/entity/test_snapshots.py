"""Snapshots in the log and in a store, with our archive and the Java one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.daemon.archives import KINDS, ServedArchive, serve
from support.entity.memory_store import MemoryStore
from support.entity.topics import events, new_topic, numbers

import aerotape
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.records import EventRecord, SnapshotRecord
from aerotape.errors import EntityError, JournalChangedError


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest) -> Iterator[ServedArchive]:
    with serve(request.param) as served:
        yield served


@pytest.fixture
def journal(client: aerotape.ArchiveClient) -> Iterator[Entities]:
    """A new topic without a store."""
    with client.entities(new_topic(), origin="here") as entities:
        yield entities


@pytest.fixture
def store() -> MemoryStore:
    """A store, replicated when a test says so."""
    return MemoryStore()


@pytest.fixture
def stored(client: aerotape.ArchiveClient, store: MemoryStore) -> Iterator[Entities]:
    """A new topic with that store."""
    with client.entities(new_topic(), 1, store) as entities:
        yield entities


def saved(entities: Entities, id: str = "k") -> int | None:
    snapshot = entities.snapshot(id)
    return None if snapshot is None else snapshot.seq_nr


def recovered(entities: Entities, id: str = "k") -> tuple[int | None, list[int]]:
    snapshot, records = entities.recover(id)
    return None if snapshot is None else snapshot.seq_nr, numbers(records)


def test_a_snapshot_is_read_as_it_was_saved(journal: Entities) -> None:
    """All payload types, and the fields of the record."""
    journal.append("k", events(1, 2, 3, 4))
    for seq_nr, payload, kind in (
        (1, b"\x00\xff", "binary"),
        (2, b' {"a": 2.50}\n', "json"),
        (3, "ü\0".encode(), "text"),
        (4, None, "none"),
    ):
        place = journal.save_snapshot("k", seq_nr, payload, kind, metadata={"m": seq_nr})  # type: ignore[arg-type]
        found = journal.snapshot("k")
        assert found is not None and found.timestamp_ms > 1_700_000_000_000
        assert found == SnapshotRecord(
            seq_nr,
            payload,
            kind,  # type: ignore[arg-type]
            place.partition,
            place.offset,
            found.timestamp_ms,
            "here",
            found.version,
            {"m": seq_nr},
        )
    assert numbers(journal.read("k")) == [1, 2, 3, 4]
    assert journal.pointer("k") == 4


def test_refused_snapshots(journal: Entities) -> None:
    """Without a journal, past its last event, or with invalid arguments: nothing is saved."""
    for seq_nr, message in ((1, "'k' after event 1: it has no journal"), (0, "begin at 1")):
        with pytest.raises(EntityError, match=message):
            journal.save_snapshot("k", seq_nr, b"")
    journal.append("k", events(1, 2))
    with pytest.raises(EntityError, match="after event 3: its journal ends with event 2"):
        journal.save_snapshot("k", 3, b"")
    journal.append("k", events(3, 4))  # what was refused stays refused
    with pytest.raises(EntityError, match="cannot save a snapshot of 'k': event 1 of type json"):
        journal.save_snapshot("k", 1, b"{", "json")
    with pytest.raises(EntityError, match="without a payload"):
        journal.save_snapshot("k", 1, b"x", "none")
    assert saved(journal) is None
    journal.save_snapshot("k", 4, b"")
    journal.purge("k")
    with pytest.raises(EntityError, match="it has no journal"):
        journal.save_snapshot("k", 4, b"")


def test_the_log_decides(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """What other writers have recorded decides, whatever this one has seen."""
    journal.append("k", events(1))
    with client.entities(journal.topic) as other:
        other.append("k", events(2))
        journal.save_snapshot("k", 2, b"")
        other.purge("k")
        other.append("k", events(1))
        with pytest.raises(EntityError, match="ends with event 1"):
            journal.save_snapshot("k", 2, b"")
        assert saved(journal) is saved(other) is None


def test_the_highest_number_wins(journal: Entities) -> None:
    """A snapshot of an earlier event does not replace a later one; of the same event, the last."""
    journal.append("k", events(1, 2, 3, 4, 5))
    journal.save_snapshot("k", 3, b"3")
    journal.save_snapshot("k", 2, b"2")
    assert recovered(journal) == (3, [4, 5])
    journal.save_snapshot("k", 3, b"again")
    found = journal.snapshot("k")
    assert found is not None and found.payload == b"again"


def test_deletes_leave_snapshots(journal: Entities) -> None:
    """With a snapshot at event 13, the events up to it can go; a purge deletes it too."""
    journal.append("k", events(*range(1, 14)))
    assert recovered(journal) == (None, list(range(1, 14)))
    journal.save_snapshot("k", 13, b"state")
    journal.delete("k", 13)
    assert recovered(journal) == (13, [])
    journal.append("k", events(14, 15))
    assert recovered(journal) == (13, [14, 15])
    assert recovered(journal, "nobody") == (None, [])
    journal.purge("k")
    assert recovered(journal) == (None, [])
    journal.append("k", events(1, 2))
    assert recovered(journal) == (None, [1, 2])


def test_store_and_log_together(
    client: aerotape.ArchiveClient, stored: Entities, store: MemoryStore
) -> None:
    """The latest by number, wherever it is; a purge in the log hides those of the store."""
    stored.append("k", events(1, 2, 3, 4, 5))
    stored.save_snapshot("k", 3, b"")
    store.replicate(client, stored.topic)
    assert recovered(stored) == (3, [4, 5])
    stored.save_snapshot("k", 2, b"")
    assert recovered(stored) == (3, [4, 5])
    stored.save_snapshot("k", 3, b"again")
    found = stored.snapshot("k")
    assert found is not None and found.payload == b"again"
    stored.save_snapshot("k", 5, b"")
    stored.delete("k", 5)
    stored.append("k", events(6))
    assert recovered(stored) == (5, [6])
    stored.purge("k")
    assert recovered(stored) == (None, [])
    stored.append("k", events(1))
    assert recovered(stored) == (None, [1])
    stored.save_snapshot("k", 1, b"")
    assert recovered(stored) == (1, [])
    store.replicate(client, stored.topic)
    assert recovered(stored) == (1, [])
    assert stored.statistics.passes > 0


def test_recover_has_one_view(client: aerotape.ArchiveClient, journal: Entities) -> None:
    """It pushes one mark and reads the log once."""
    with client.entities(journal.topic) as writer:
        writer.append("k", events(1, 2, 3))
        writer.save_snapshot("k", 2, b"")
        before = journal.statistics.passes
        assert recovered(journal) == (2, [3])
        assert journal.statistics.passes == before + 1


def test_a_purge_while_it_is_recovered(client: aerotape.ArchiveClient) -> None:
    """A journal that the store replaces meanwhile shows nothing of the new one."""

    class Replaced(MemoryStore):
        def snapshot(self, topic: str, id: str) -> SnapshotRecord | None:
            if not self.is_replaced:
                self.is_replaced = True
                self.writer.purge("k")
                self.writer.append("k", events(1, 2))
                self.writer.save_snapshot("k", 2, b"new")
                self.replicate(client, topic)
            return super().snapshot(topic, id)

        is_replaced = False
        writer: Entities

    replaced = Replaced()
    with client.entities(new_topic(), 1, replaced) as journal:
        replaced.writer = journal
        journal.append("k", events(1, 2, 3))
        replaced.replicate(client, journal.topic)
        assert journal.snapshot("k") is None
        replaced.is_replaced = False
        snapshot, records = journal.recover("k")
        assert snapshot is None
        with pytest.raises(JournalChangedError):
            next(records)
        assert recovered(journal) == (2, [])


def test_events_that_are_deleted_while_it_is_recovered(
    client: aerotape.ArchiveClient, stored: Entities, store: MemoryStore
) -> None:
    """Events that are missing after the snapshot are an error, others not."""
    stored.append("k", events(1, 2, 3, 4, 5))
    stored.save_snapshot("k", 2, b"")
    store.replicate(client, stored.topic)
    _, records = stored.recover("k")
    stored.delete("k", 2)
    store.replicate(client, stored.topic)
    assert numbers(records) == [3, 4, 5]
    _, records = stored.recover("k")
    stored.save_snapshot("k", 4, b"")
    stored.delete("k", 4)
    store.replicate(client, stored.topic)
    read: list[EventRecord] = []
    with pytest.raises(EntityError, match="recover it again"):
        read += records
    assert recovered(stored) == (4, [5])
