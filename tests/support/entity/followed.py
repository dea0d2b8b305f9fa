"""A read model of a topic, which a consumer builds from the changes of a subscription."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aerotape.codecs.entity import Event
from aerotape.entity.following.changes import (
    TopicAppend,
    TopicChange,
    TopicDelete,
    TopicPurge,
)
from support.entity.model import Model


class Follower:
    """The events of each entity.

    Attributes:
        journals: events by sequence number, by id.
        positions: of the last change; None: there was none.
    """

    def __init__(self, changes: Iterable[TopicChange] = ()) -> None:
        self.journals: dict[str, dict[int, Event]] = {}
        self.positions: Mapping[int, int] | None = None
        self.apply(changes)

    def apply(self, changes: Iterable[TopicChange]) -> None:
        """Apply changes; events rise strictly in a journal."""
        for change in changes:
            self.positions = change.positions
            journal = self.journals.setdefault(change.id, {})
            if isinstance(change, TopicAppend):
                for record in change.events:
                    assert record.seq_nr > max(journal, default=0)
                    assert (record.partition, record.offset) == (change.partition, change.offset)
                    journal[record.seq_nr] = record.event
            elif isinstance(change, TopicDelete):
                for seq_nr in [each for each in journal if each <= change.to_seq_nr]:
                    del journal[seq_nr]
            else:
                assert isinstance(change, TopicPurge)
                journal.clear()

    def check(self, model: Model, ids: Iterable[str]) -> None:
        """Check that the journals are those of a model."""
        for id in ids:
            expected = {each.seq_nr: each.event for each in model.read(id)}
            assert self.journals.get(id, {}) == expected
