"""Actions, the records of a journal's log, and the events that they append.

A log holds actions, not events: an append adds a list of events at once, a delete removes events, a
purge the whole journal; a snapshot adds the state of the entity after an event, and a mark changes
nothing. Sequence numbers of events begin at 1. `native/src/entity/fold.rs` has the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from aerotape.codecs.generated.entity import ActionKind as ActionKind
from aerotape.codecs.generated.entity import PayloadType as PayloadType

MAX_SEQ_NR: Final = (1 << 63) - 1

EventPayloadType = Literal["none", "binary", "json", "text"]


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an entity.

    Attributes:
        seq_nr: sequence number, from 1.
        payload: bytes; of a JSON or text payload in UTF-8; None for type "none".
        payload_type: what the payload is.
        tags: distinct texts.
    """

    seq_nr: int
    payload: bytes | None = None
    payload_type: EventPayloadType = "none"
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Events:
    """The decoded payload of an append.

    Attributes:
        events: at least one, their sequence numbers strictly rising.
        expire_after_ns: after so long without an append the journal may be purged, nanoseconds;
            None: never.
        metadata: of all these events, any JSON value; None: none.
    """

    events: tuple[Event, ...]
    expire_after_ns: int | None = None
    metadata: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Base of actions.

    Attributes:
        id: the entity's id. With the topic, which the recording implies, it is the key.
        timestamp_ms: when the action was written, milliseconds since the epoch.
        origin: the writer, a host or an application; empty: unknown.
        version: version of the writer; empty: unknown.
        metadata: any JSON value; None: none.
    """

    id: str
    timestamp_ms: int = 0
    origin: str = ""
    version: str = ""
    metadata: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(Action):
    """Appends events, all or none.

    Attributes:
        from_seq_nr: sequence number of the first event.
        to_seq_nr: sequence number of the last event.
        payload: the events as `codecs.entity.payload` encodes them.
        payload_type: the form of the payload, `PayloadType.BINARY` or `JSON`.
        is_conditional: it is refused unless the journal ends directly before its first event.
    """

    from_seq_nr: int
    to_seq_nr: int
    payload: bytes = field(repr=False)
    payload_type: PayloadType
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Append):
    """The state of the entity after an event, encoded as an append of one event with its number.

    It is no append: events stay as they are.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark(Action):
    """Changes nothing; a reader that wrote it stops at it.

    Attributes:
        mark_id: identifies the mark in its partition.
    """

    mark_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Action):
    """Deletes the events that exist up to a sequence number, no future ones.

    Attributes:
        to_seq_nr: sequence number of the last event to delete.
    """

    to_seq_nr: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge(Action):
    """Deletes the journal; the next append begins a new one.

    Attributes:
        last_change: position of the journal's last change, bytes; if another one is the last, it
            is not purged. None: it always is.
    """

    last_change: int | None = None


class ActionHeader(NamedTuple):
    """The part of an action that is read without its texts and its payload.

    Attributes:
        kind: the action's kind.
        id: the entity's id in UTF-8.
        from_seq_nr: first event of an append or snapshot, else 0.
        to_seq_nr: last event of an append or snapshot, limit of a delete, position of the last
            change for a conditional purge, else 0.
        timestamp_ms: milliseconds since the epoch.
    """

    kind: ActionKind
    id: bytes
    from_seq_nr: int
    to_seq_nr: int
    timestamp_ms: int
