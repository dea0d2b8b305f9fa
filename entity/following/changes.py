"""Changes of the journals of a topic, as a subscription returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aerotape.entity.records import EventRecord


@dataclass(slots=True, kw_only=True)
class TopicChange:
    """A change of one journal. Base of the three kinds.

    Attributes:
        id: the entity's id.
        partition: index of the entity's partition.
        offset: position of the record that made it, bytes.
        positions: the position to which each partition has been followed, bytes; a subscription
            from there continues after this change.
    """

    id: str
    partition: int
    offset: int
    positions: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class TopicAppend(TopicChange):
    """Events that one append added.

    Attributes:
        events: at least one, by rising sequence number.
    """

    events: tuple[EventRecord, ...]


@dataclass(slots=True, kw_only=True)
class TopicDelete(TopicChange):
    """A delete: the journal's events up to this point that have such a number are deleted.

    Attributes:
        to_seq_nr: sequence number of the last event that it deletes; may exceed the journal's.
        timestamp_ms: when it was written, milliseconds since the epoch.
    """

    to_seq_nr: int
    timestamp_ms: int


@dataclass(slots=True, kw_only=True)
class TopicPurge(TopicChange):
    """A purge: the journal up to this point is deleted, the next append begins a new one.

    Attributes:
        timestamp_ms: when it was written, milliseconds since the epoch.
    """

    timestamp_ms: int
