"""The base of entity stores: what a replicator needs, and what all of them share.

A store has the tables of kafka-journal: `metajournal` (heads), `journal` (events), `pointer2` (how
far a partition is replicated), `setting` (version of the tables) and `locks`; and `snapshot`. SQL
stores have an index of tags, `tag`. One store serves many namespaces; each has its own tables and
one replicator. Only a store that is opened writable creates or changes tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from aerotape.codecs.entity.segments import (
    DEFAULT_SEGMENT_SIZE,
    DEFAULT_SEGMENTS,
    MIN_SEGMENT_SIZE,
    head_segment,
)
from aerotape.context import Closing
from aerotape.entity.records import (
    EventRecord,
    Head,
    Pointer,
    Replicated,
    SnapshotRecord,
)
from aerotape.entity.stores.owner import new_owner
from aerotape.entity.stores.rows import Rows
from aerotape.entity.transitions import Change
from aerotape.errors import (
    ConfigurationError,
    EntityStoreError,
    JournalChangedError,
    StoreLockedError,
)

SCHEMA_VERSION: Final = "2"
"""Version of the tables, the setting `schema-version`."""
MAX_SNAPSHOTS: Final = 10
"""Snapshots of a journal that are kept, the latest."""
VERSION_SETTING: Final = "schema-version"
REPLICATOR_LOCK: Final = "replicator"
PAGE: Final = 512
"""The number of events that are read from a store at once."""
_MAX_NUMBER: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options of a store, the query of its URL.

    Attributes:
        namespace: the tables of one replicator; Cassandra's keyspace.
        segments: the number of segments of heads.
        segment_size: events in a segment of new journals.
        lease_ms: after how long the lock of a replicator that is gone expires.
    """

    namespace: str = "journal"
    segments: int = DEFAULT_SEGMENTS
    segment_size: int = DEFAULT_SEGMENT_SIZE
    lease_ms: int = 15_000

    def __post_init__(self) -> None:
        """Check the values (ConfigurationError)."""
        name = self.namespace
        if not (name.isascii() and name.isidentifier() and name == name.lower() and len(name) < 40):
            raise ConfigurationError(
                f"namespace {name!r}: expected at most 39 of a-z, 0-9 and _, not beginning with a "
                "digit",
                "namespace",
            )
        for option, least in (("segments", 1), ("segment_size", MIN_SEGMENT_SIZE), ("lease_ms", 1)):
            if getattr(self, option) < least:
                raise ConfigurationError(
                    f"{option} must be at least {least}, not {getattr(self, option)}", option
                )
            if getattr(self, option) > _MAX_NUMBER:
                raise ConfigurationError(
                    f"{option} must be at most {_MAX_NUMBER}, not {getattr(self, option)}", option
                )


class EntityStore(Closing, ABC):
    """A store, open. Its methods raise EntityStoreError if it does not respond.

    Reads are allowed from any thread; writes and the lock belong to one thread.

    Attributes:
        orders_events: whether it can order the events of a topic by position.
    """

    orders_events = False

    def __init__(self, url: str, options: StoreOptions, writable: bool) -> None:
        """Set the options; subclasses connect and call `_prepare`."""
        self.url = url
        self.options = options
        self.is_writable = writable
        self.owner = new_owner()

    # -- reading -------------------------------------------------------------------------------

    def head(self, topic: str, id: str) -> Head | None:
        """Return the head of a journal; None: no entry."""
        return self.heads(topic, [id]).get(id)

    @abstractmethod
    def heads(self, topic: str, ids: Sequence[str]) -> dict[str, Head]:
        """Return the heads of those of these journals that have one."""

    def events(
        self, topic: str, id: str, from_seq_nr: int = 1, record_id: str | None = None
    ) -> Iterator[EventRecord]:
        """Iterate over the events of a journal in order; those of one incarnation.

        Events up to the head's `delete_to` are left out. Memory is bounded. A replicator may change
        the store meanwhile; SQL stores then have no gap in what is returned. Cassandra deletes
        events before the head shows that.

        Args:
            topic: the topic's name.
            id: the entity's id.
            from_seq_nr: the first event.
            record_id: the incarnation. Default: the current one.

        Raises:
            JournalChangedError: the journal was purged, or events after those returned so far were
                deleted.
        """
        head = self.head(topic, id)
        if head is None and record_id is None:
            return
        if record_id is None and head is not None:
            record_id = head.record_id
        after, is_first = from_seq_nr - 1, True
        while True:
            if head is None or head.record_id != record_id:
                raise JournalChangedError(
                    f"journal {id!r} of topic {topic} was purged while it was read: read it again",
                    topic,
                )
            deleted = head.delete_to or 0
            if deleted > after and not is_first:
                raise JournalChangedError(
                    f"journal {id!r} of topic {topic} was read up to event {after} when events up "
                    f"to {deleted} were deleted: read it again",
                    topic,
                )
            after = max(after, deleted)
            page = self.page(topic, id, head, after)
            # What is missing in the page was deleted before it was read, so the head shows it now.
            head = self.head(topic, id)
            if head is None or head.record_id != record_id or (head.delete_to or 0) > after:
                continue
            yield from page
            if len(page) < PAGE:
                return
            after, is_first = page[-1].seq_nr, False

    @abstractmethod
    def page(self, topic: str, id: str, head: Head, after: int) -> list[EventRecord]:
        """Return the first `PAGE` events of a journal that follow an event, fewer at its end."""

    @abstractmethod
    def pointers(self, topic: str) -> dict[int, Pointer]:
        """Return the pointers of a topic's partitions that have one."""

    def pointer(self, topic: str, partition: int) -> Pointer | None:
        """Return the pointer of a partition; None: nothing is replicated."""
        return self.pointers(topic).get(partition)

    @abstractmethod
    def replicated(self, topic: str) -> dict[int, Replicated]:
        """Return the pointers of a topic's partitions, with the time since when they are there."""

    @abstractmethod
    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        """Return the pointer of a partition and the head of a journal.

        SQL stores return those of one moment. In Cassandra the head may be of a later one.
        """

    def snapshot(self, topic: str, id: str) -> SnapshotRecord | None:
        """Return the snapshot of a journal with the highest sequence number; None: there is none.

        Only snapshots of the journal's current incarnation.
        """
        return next(iter(self.snapshots(topic, id, 1)), None)

    @abstractmethod
    def snapshots(self, topic: str, id: str, limit: int = MAX_SNAPSHOTS) -> list[SnapshotRecord]:
        """Return the latest snapshots of a journal, by falling sequence number."""

    @abstractmethod
    def topics(self) -> list[str]:
        """Return the topics of which something is replicated, sorted."""

    @abstractmethod
    def ids(
        self, topic: str, after: str | None = None, limit: int = 1000
    ) -> list[tuple[str, Head]]:
        """Return journals of a topic: a page of ids and heads.

        SQL stores order ids by their bytes in UTF-8, Cassandra by segment, then so.

        Args:
            topic: the topic's name.
            after: the last id of the preceding page; None: the first page.
            limit: the most journals of the page.
        """

    def events_between(
        self, topic: str, partition: int, begin: int, end: int, tags: Collection[str] = ()
    ) -> Iterator[tuple[str, EventRecord]]:
        """Iterate over ids and events of a partition by position, then by sequence number.

        Memory is bounded.

        Args:
            topic: the topic's name.
            partition: the partition's index.
            begin: events of records at lower positions are left out, bytes.
            end: events of records at this position and later are left out, bytes.
            tags: only events with one of these tags; empty: all events.

        Raises:
            EntityStoreError: the store has no such order: Cassandra. Without tags: it has no index
                of positions.
        """
        raise self._no_order()

    def _no_order(self) -> EntityStoreError:
        return EntityStoreError(
            f"{self.url} has no order of events across entities: cannot be used to follow a topic; "
            "use an SQLite or PostgreSQL store, or none",
            self.url,
        )

    @abstractmethod
    def expired(self, topic: str, now_ms: int) -> Iterator[tuple[str, Head]]:
        """Iterate over the journals with `expires_ms` at this time or earlier.

        Args:
            topic: the topic's name.
            now_ms: milliseconds since the epoch.
        """

    # -- writing -------------------------------------------------------------------------------

    def index_positions(self) -> None:
        """Create the index that `events_between` needs without tags, if it is not there.

        Storing an event then takes about a tenth longer.

        Raises:
            EntityStoreError: the store has no such order: Cassandra; or was not opened writable.
        """
        raise self._no_order()

    @abstractmethod
    def apply(
        self, topic: str, partition: int, changes: Mapping[str, Change], pointer: Pointer
    ) -> None:
        """Store the changes of a batch, then the pointer.

        SQL stores do it in one transaction. Cassandra stores each change so that it can be
        repeated, and the pointer last.

        Raises:
            StoreLockedError: another replicator has taken the lock.
            EntityStoreError: the store was not opened writable.
        """

    @abstractmethod
    def load(self, topic: str, batches: Iterable[Rows], pointers: Mapping[int, Pointer]) -> None:
        """Store all of a topic that the store does not have, the pointers last.

        SQL stores do it in one transaction. In Cassandra an interrupted load leaves journals, which
        `discard_load` removes. The caller holds the lock of the replicator.

        Args:
            topic: the topic's name.
            batches: heads with their events and snapshots; a head not before its events.
            pointers: by partition.

        Raises:
            StoreLockedError: the lock was lost.
            EntityStoreError: the store was not opened writable.
        """

    def discard_load(self, topic: str) -> None:
        """Remove what an interrupted `load` left. SQL stores have nothing to remove."""

    # -- lock ----------------------------------------------------------------------------------

    @abstractmethod
    def try_lock(self, name: str) -> str:
        """Take or renew a lock of the namespace; return its owner: `self.owner` if taken."""

    @abstractmethod
    def unlock(self, name: str) -> None:
        """Release a lock of this owner."""

    @abstractmethod
    def renew_lock(self) -> None:
        """Renew the lock of the replicator (StoreLockedError: it was lost meanwhile)."""

    @contextmanager
    def replicating(self) -> Iterator[None]:
        """Hold the lock of the replicator; `apply` renews it.

        Raises:
            StoreLockedError: another replicator has it.
        """
        if (owner := self.try_lock(REPLICATOR_LOCK)) != self.owner:
            raise self.locked(owner)
        try:
            yield
        finally:
            with suppress(EntityStoreError):  # if the store is gone, the lock expires
                self.unlock(REPLICATOR_LOCK)

    def locked(self, owner: str) -> StoreLockedError:
        """Return the error that another replicator has the lock."""
        return StoreLockedError(
            f"namespace {self.options.namespace} of {self.url}: another replicator has its lock, "
            f"{owner}; end it, or wait {self.options.lease_ms / 1000:g} s if it is gone",
            self.url,
        )

    # -- shared --------------------------------------------------------------------------------

    def segment_of(self, id: str) -> int:
        """Return the segment of a journal's head."""
        return head_segment(id, self.options.segments)

    def check_version(self, found: str | None) -> None:
        """Check the version of existing tables (EntityStoreError)."""
        if found == SCHEMA_VERSION:
            return
        raise EntityStoreError(
            f"namespace {self.options.namespace} of {self.url} has schema version "
            f"{found!r}: expected {SCHEMA_VERSION!r}; use another namespace, "
            "or the version of aerotape that created it",
            self.url,
        )

    def check_writable(self) -> None:
        """Check that the store was opened writable (EntityStoreError)."""
        if not self.is_writable:
            raise EntityStoreError(
                f"{self.url} is opened for reading: cannot be changed; open it with writable=True",
                self.url,
            )

    def no_topic(self, topic: str) -> EntityStoreError:
        """Return the error that the store does not have a topic."""
        return EntityStoreError(
            f"{self.url}: namespace {self.options.namespace} has no topic {topic}; its topics are: "
            f"{', '.join(self.topics()) or 'none'}",
            self.url,
        )

    def missing(self) -> EntityStoreError:
        """Return the error that there is nothing to read."""
        return EntityStoreError(
            f"{self.url} has no tables of namespace {self.options.namespace}: check the URL, or "
            "start a replicator first",
            self.url,
        )
