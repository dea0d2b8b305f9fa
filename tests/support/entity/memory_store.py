"""A store in memory, and a replicator that applies the log to it a record at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import aerotape
from aerotape.codecs.entity.actions import Append, Delete, Mark, Purge, Snapshot
from aerotape.codecs.entity.messages import decode
from aerotape.entity.log.tail import records_of
from aerotape.entity.records import EventRecord, Head, Pointer, SnapshotRecord
from aerotape.entity.topic import recordings_of
from aerotape.errors import JournalChangedError
from support.entity.model import Model


class MemoryStore:
    """The model as a store. Records are applied in the order of the log.

    Attributes:
        model: the replicated journals.
        pointers: by partition.
        offsets: partition and offset of the record that last changed each journal.
    """

    def __init__(self) -> None:
        self.model = Model()
        self.pointers: dict[int, Pointer] = {}
        self.offsets: dict[str, tuple[int, int]] = {}

    def pointer(self, topic: str, partition: int) -> Pointer | None:
        return self.pointers.get(partition)

    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        return self.pointer(topic, partition), self.head(topic, id)

    def head(self, topic: str, id: str) -> Head | None:
        journal = self.model.journals.get(id)
        if journal is None:
            return None
        partition, offset = self.offsets[id]
        return Head(
            partition,
            offset,
            journal.seq_nr,
            journal.delete_to or None,
            10_000,
            record_id=journal.incarnation,
        )

    def events(
        self, topic: str, id: str, from_seq_nr: int = 1, record_id: str | None = None
    ) -> Iterator[EventRecord]:
        journal = self.model.journals.get(id)
        if record_id is not None and (journal is None or journal.incarnation != record_id):
            raise JournalChangedError("purged", topic)
        return iter(self.model.read(id, from_seq_nr))

    def snapshot(self, topic: str, id: str) -> SnapshotRecord | None:
        return self.model.snapshot(id)

    def events_between(
        self, topic: str, partition: int, begin: int, end: int, tags: Collection[str] = ()
    ) -> Iterator[tuple[str, EventRecord]]:
        found = [
            (id, record)
            for id, journal in self.model.journals.items()
            for record in journal.events.values()
            if record.partition == partition
            and begin <= record.offset < end
            and (not tags or set(tags) & set(record.event.tags))
        ]
        return iter(sorted(found, key=lambda item: (item[1].offset, item[1].seq_nr)))

    def replicate(
        self, client: aerotape.ArchiveClient, topic: str, limit: int | None = None
    ) -> None:
        """Apply the records of a topic that are recorded, or the next `limit` of each partition."""
        for partition, recording in recordings_of(topic, client.list_recordings()).items():
            index = partition.index
            pointer = self.pointers.get(index)
            begin = recording.start_position if pointer is None else pointer.next_position
            with client.replay(recording.recording_id, begin, follow=False) as messages:
                for count, message in enumerate(messages):
                    if count == limit:
                        break
                    self.apply(index, message.position, message.payload)
                    self.pointers[index] = Pointer(message.position, message.end_position)

    def apply(self, partition: int, offset: int, message: bytes) -> bool:
        """Apply one record; return whether its condition, if it has one, was met."""
        action, is_met = decode(message), True
        if isinstance(action, Mark):
            return True
        if isinstance(action, Snapshot):
            (record,) = records_of(action, partition, offset)
            self.model.save_snapshot(action.id, SnapshotRecord.of(record))
            return True
        if isinstance(action, Append):
            is_met = self.model.append(
                action.id,
                list(records_of(action, partition, offset)),
                is_conditional=action.is_conditional,
            )
        elif isinstance(action, Delete):
            self.model.delete(action.id, action.to_seq_nr)
        elif isinstance(action, Purge):
            if (last_change := action.last_change) is not None:
                journal = self.model.journals.get(action.id)
                is_met = journal is not None and self.offsets[action.id] == (partition, last_change)
            if is_met:
                self.model.purge(action.id)
            return is_met
        if action.id in self.model.journals:
            self.offsets[action.id] = partition, offset
        return is_met
