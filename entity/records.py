"""Values that readers and stores of journals exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from aerotape.codecs.entity.actions import Event, EventPayloadType

if TYPE_CHECKING:
    from aerotape.codecs.journal_type import JournalType


class EntityOptions(TypedDict, total=False):
    """Options of `ArchiveClient.entities`.

    Attributes:
        type: when a record is acknowledged: once it is on storage (``PD_JOURNAL``), or once it is
            in the page cache of the archive's host (``VD_JOURNAL``). Default: as the topic has,
            ``VD_JOURNAL`` for a new one.
        channel: of the publications, on the archive's media driver. Default: ``aeron:ipc``.
        origin: written into each record: the host or the application.
        timeout_ns: how long to wait until a record is recorded. Default: the client's timeout.
        buffer_length: how much of the log a read may buffer, bytes. Default: 16 MiB.
    """

    type: JournalType | None
    channel: str
    origin: str
    timeout_ns: int | None
    buffer_length: int


class Pointer(NamedTuple):
    """The position up to which a partition of a topic is replicated.

    Attributes:
        offset: position of the last replicated record: the start of its first frame, bytes.
        next_position: position after that record, where the next one begins or padding does.
    """

    offset: int
    next_position: int


class Replicated(NamedTuple):
    """The position up to which a partition of a topic is replicated, and since when.

    Attributes:
        next_position: records at lower positions are in the store, bytes.
        updated_ms: when the store got the last of them, milliseconds since the epoch.
    """

    next_position: int
    updated_ms: int


class Head(NamedTuple):
    """The state of one journal in a store.

    Attributes:
        partition: partition of the record that last changed it.
        offset: position of that record, bytes.
        seq_nr: sequence number of the last event.
        delete_to: events up to this one are deleted; None: none. May exceed `seq_nr`.
        segment_size: events in a segment of this journal.
        expire_after_ns: of the last append, nanoseconds; None: does not expire.
        expires_ms: when it may be purged, milliseconds since the epoch: the time of the last append
            plus `expire_after_ns`; None: does not expire.
        record_id: identifies this incarnation of the journal.
        created_ms: milliseconds since the epoch.
        updated_ms: milliseconds since the epoch.
        origin: writer of the first record; empty: unknown.
    """

    partition: int
    offset: int
    seq_nr: int
    delete_to: int | None
    segment_size: int
    expire_after_ns: int | None = None
    expires_ms: int | None = None
    record_id: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    origin: str = ""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event of a journal with the record that appended it.

    Attributes:
        event: sequence number, tags and payload.
        partition: partition of the record.
        offset: position of the record: the start of its first frame, bytes.
        timestamp_ms: when it was written, milliseconds since the epoch.
        origin: the writer, a host or an application; empty: unknown.
        version: version of the writer; empty: unknown.
        metadata: of the record, any JSON value; None: none.
        payload_metadata: of the events appended together, any JSON value; None: none.
        expire_after_ns: of the events appended together, nanoseconds; None: none.
    """

    event: Event
    partition: int
    offset: int
    timestamp_ms: int
    origin: str = ""
    version: str = ""
    metadata: Any = None
    payload_metadata: Any = None
    expire_after_ns: int | None = None

    @property
    def seq_nr(self) -> int:
        """The event's sequence number."""
        return self.event.seq_nr


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """A snapshot of an entity with the record that wrote it.

    Attributes:
        seq_nr: the last event that is in the snapshot.
        payload: bytes; of a JSON or text payload in UTF-8; None for type "none".
        payload_type: what the payload is.
        partition: partition of the record.
        offset: position of the record: the start of its first frame, bytes.
        timestamp_ms: when it was written, milliseconds since the epoch.
        origin: the writer, a host or an application; empty: unknown.
        version: version of the writer; empty: unknown.
        metadata: of the record, any JSON value; None: none.
    """

    seq_nr: int
    payload: bytes | None
    payload_type: EventPayloadType
    partition: int
    offset: int
    timestamp_ms: int
    origin: str = ""
    version: str = ""
    metadata: Any = None

    @classmethod
    def of(cls, record: EventRecord) -> SnapshotRecord:
        """Return the snapshot that a record has as its one event."""
        return cls(
            record.seq_nr,
            record.event.payload,
            record.event.payload_type,
            record.partition,
            record.offset,
            record.timestamp_ms,
            record.origin,
            record.version,
            record.metadata,
        )
