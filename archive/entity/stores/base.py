"""The base of entity stores: what a replicator needs, and what all of them share.

A store has the tables of kafka-journal: `metajournal` (heads), `journal` (events), `pointer2` (how
far a partition is replicated), `setting` (version of the tables) and `locks`. One store serves many
namespaces; each has its own tables and one replicator.
"""

from __future__ import annotations

import os
import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from typing import Final

from aerotape.archive.entity.records import EventRecord, Head, Pointer
from aerotape.archive.entity.transitions import Change
from aerotape.codecs.entity.segments import (
    DEFAULT_SEGMENT_SIZE,
    DEFAULT_SEGMENTS,
    MIN_SEGMENT_SIZE,
    head_segment,
)
from aerotape.context import Closing
from aerotape.errors import ConfigurationError, EntityStoreError, StoreLockedError

SCHEMA_VERSION: Final = "1"
"""Version of the tables, the setting `schema-version`."""
VERSION_SETTING: Final = "schema-version"
REPLICATOR_LOCK: Final = "replicator"


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


class EntityStore(Closing, ABC):
    """A store, open. Its methods raise EntityStoreError if it does not respond.

    Reads are allowed from any thread; writes and the lock belong to one thread.
    """

    def __init__(self, url: str, options: StoreOptions) -> None:
        """Set the options; subclasses connect and call `_prepare`."""
        self.url = url
        self.options = options
        self.owner = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"

    # -- reading -------------------------------------------------------------------------------

    def head(self, topic: str, id: str) -> Head | None:
        """Return the head of a journal; None: no entry."""
        return self.heads(topic, [id]).get(id)

    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        """Return the pointer of a partition and the head of a journal of it, of one moment."""
        return self.pointer(topic, partition), self.head(topic, id)

    @abstractmethod
    def heads(self, topic: str, ids: Sequence[str]) -> dict[str, Head]:
        """Return the heads of those of these journals that have one."""

    @abstractmethod
    def events(self, topic: str, id: str, from_seq_nr: int = 1) -> Iterator[EventRecord]:
        """Iterate over the events of a journal in order; those of its current incarnation.

        Events up to the head's `delete_to` are left out. Memory is bounded.
        """

    @abstractmethod
    def pointers(self, topic: str) -> dict[int, Pointer]:
        """Return the pointers of a topic's partitions that have one."""

    def pointer(self, topic: str, partition: int) -> Pointer | None:
        """Return the pointer of a partition; None: nothing is replicated."""
        return self.pointers(topic).get(partition)

    @abstractmethod
    def expired(self, topic: str, day: date) -> Iterator[tuple[str, Head]]:
        """Iterate over the journals with `expire_on` on this day (UTC) or earlier."""

    # -- writing -------------------------------------------------------------------------------

    @abstractmethod
    def apply(
        self, topic: str, partition: int, changes: Mapping[str, Change], pointer: Pointer
    ) -> None:
        """Store the changes of a batch, then the pointer.

        SQL stores do it in one transaction. Cassandra stores each change so that it can be
        repeated, and the pointer last.

        Raises:
            StoreLockedError: another replicator has taken the lock.
        """

    # -- lock ----------------------------------------------------------------------------------

    @abstractmethod
    def try_lock(self, name: str) -> str:
        """Take or renew a lock of the namespace; return its owner: `self.owner` if taken."""

    @abstractmethod
    def unlock(self, name: str) -> None:
        """Release a lock of this owner."""

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
        if found != SCHEMA_VERSION:
            raise EntityStoreError(
                f"namespace {self.options.namespace} of {self.url} has schema version "
                f"{found!r}: expected {SCHEMA_VERSION!r}; use another namespace, or the version of "
                "aerotape that created it",
                self.url,
            )


def is_dead(owner: str) -> bool:
    """Whether a lock's owner was a process of this host that has ended."""
    host, pid, _ = owner.rsplit("/", 2)
    if host != socket.gethostname() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
