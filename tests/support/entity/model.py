"""A model of journals in a few lines: the table of state transitions, literally."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

from aerotape.entity.records import EventRecord, SnapshotRecord


@dataclass
class Journal:
    """What the model has of one entity: sequence numbers of the last event and the last deleted.

    `snapshots` has those that were saved, by the last event in each.
    """

    seq_nr: int
    delete_to: int = 0
    events: dict[int, EventRecord] = field(default_factory=dict)
    snapshots: dict[int, SnapshotRecord] = field(default_factory=dict)
    incarnation: str = field(default_factory=lambda: uuid4().hex)


class Model:
    """All journals of a topic by id."""

    def __init__(self) -> None:
        self.journals: dict[str, Journal] = {}

    def append(self, id: str, events: list[EventRecord], *, is_conditional: bool = False) -> bool:
        """Append; return whether it was accepted."""
        first = events[0].seq_nr
        if is_conditional and first - 1 != (self.pointer(id) or 0):
            return False
        journal = self.journals.setdefault(id, Journal(0, first - 1))
        after = max(journal.seq_nr, journal.delete_to)
        journal.events |= {each.seq_nr: each for each in events if each.seq_nr > after}
        journal.seq_nr = max(journal.seq_nr, events[-1].seq_nr)
        return True

    def delete(self, id: str, to: int) -> None:
        journal = self.journals.setdefault(id, Journal(to, to))
        journal.delete_to = max(journal.delete_to, min(to, max(journal.seq_nr, journal.delete_to)))
        for seq_nr in [each for each in journal.events if each <= journal.delete_to]:
            del journal.events[seq_nr]

    def save_snapshot(self, id: str, snapshot: SnapshotRecord) -> bool:
        """Save a snapshot; return whether it was accepted."""
        journal = self.journals.get(id)
        if journal is None or snapshot.seq_nr > max(journal.seq_nr, journal.delete_to):
            return False
        journal.snapshots[snapshot.seq_nr] = snapshot
        return True

    def snapshot(self, id: str) -> SnapshotRecord | None:
        journal = self.journals.get(id)
        return journal.snapshots[max(journal.snapshots)] if journal and journal.snapshots else None

    def purge(self, id: str) -> None:
        self.journals.pop(id, None)

    def read(self, id: str, from_seq_nr: int = 1) -> list[EventRecord]:
        journal = self.journals.get(id)
        events = sorted(journal.events.items()) if journal else []
        return [event for seq_nr, event in events if seq_nr >= from_seq_nr]

    def pointer(self, id: str) -> int | None:
        return self.journals[id].seq_nr if id in self.journals else None
