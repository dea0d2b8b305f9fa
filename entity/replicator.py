"""The replicator: follows the recordings of a topic and stores heads, events and pointers.

Each round replays, for each partition, what has been recorded since its pointer, and stores it in
batches. The pointer moves with a batch, so a replicator that ends anywhere is continued by the next
one. When the archive or the store goes away, it reconnects and resumes at the pointer.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.client.client import access
from aerotape.context import Closing
from aerotape.counter_keys import (
    CounterType,
    entity_replication_key,
    entity_replication_label,
)
from aerotape.entity.log.archive import LogArchive
from aerotape.entity.log.recording import PartitionRecording
from aerotape.entity.log.tail import of_another_log
from aerotape.entity.partition import Partition
from aerotape.entity.records import Pointer
from aerotape.entity.stores.base import REPLICATOR_LOCK, EntityStore
from aerotape.entity.topic import (
    check_topic,
    existing_recordings_of,
    recordings_of,
)
from aerotape.entity.transitions import Change, LoggedAction, collapse
from aerotape.errors import (
    AeronError,
    AeronTimeoutError,
    ClosedError,
    CodecError,
    EntityError,
    EntityStoreError,
    ReplayError,
    StoreLockedError,
)
from aerotape.waiting import Pause, Task, Until, pause, run

if TYPE_CHECKING:
    from aerotape._native import Counter
    from aerotape.client.client import Client
    from aerotape.message import Message

DEFAULT_BATCH_RECORDS: Final = 10_000
DEFAULT_BATCH_LENGTH: Final = 16 << 20
DEFAULT_RETRY_S: Final = 60.0
_POLL_NS: Final = 20_000_000
_LIST_S: Final = 1.0
_PAUSE_NS: Final = 200_000_000
# What an archive or a store that went away causes; another attempt may succeed.
_GONE: Final = (ClosedError, AeronTimeoutError, AeronError, ReplayError, EntityStoreError)


@dataclass(frozen=True, slots=True)
class Progress:
    """A stored batch.

    Attributes:
        partition: index of the partition.
        pointer: the partition's pointer after it.
        end_position: end of the recording when the round began, bytes.
        records: actions in the batch.
        events: events inserted.
    """

    partition: int
    pointer: Pointer
    end_position: int
    records: int
    events: int


class Replicator(Closing):
    """The replicator of one topic into one namespace of a store. For one thread."""

    def __init__(
        self,
        topic: str,
        connect: Callable[[], Client],
        open_store: Callable[[], EntityStore],
        *,
        batch_records: int = DEFAULT_BATCH_RECORDS,
        batch_length: int = DEFAULT_BATCH_LENGTH,
        retry_s: float = DEFAULT_RETRY_S,
        index_positions: bool | None = None,
    ) -> None:
        """Create it; `run` connects.

        Args:
            topic: the topic's name.
            connect: returns a new client of the archive.
            open_store: returns the store, newly opened.
            batch_records: the most actions in a batch.
            batch_length: messages of this length make a batch, bytes.
            retry_s: how long to retry after the archive or the store went away, seconds; 0: fail
                at once.
            index_positions: have the store index events by position, for those who follow the topic
                with it; None: if it can.

        Raises:
            ConfigurationError: it is not a topic's name.
        """
        self.topic = check_topic(topic)
        self._connect = connect
        self._open_store = open_store
        self._batch_records = batch_records
        self._batch_length = batch_length
        self._retry_s = retry_s
        self._index_positions = index_positions
        self._owner = ""
        self._has_started = False
        self._open: ExitStack | None = None
        self._recordings: dict[Partition, PartitionRecording] = {}
        self._counters: dict[int, Counter] = {}
        self._listed_at = 0.0
        self._renew_at = 0.0

    def run(self, until_caught_up: bool = False) -> Generator[Progress, None, None]:
        """Replicate, and yield the progress after each batch.

        Args:
            until_caught_up: end when all that is recorded now is stored; else follow for ever.

        Raises:
            StoreLockedError: another replicator serves the namespace.
            EntityStoreError: the store is gone, or refuses.
            EntityError: the topic has no recording, a record is no action or damaged, or records
                were purged before they were replicated.
            AerotapeError: the archive is gone.
        """
        failed_at: float | None = None
        try:
            while True:
                try:
                    count = 0
                    for progress in self._round(until_caught_up):
                        count += 1
                        failed_at = None
                        yield progress
                    failed_at = None
                    if until_caught_up:
                        return
                    if not count:
                        self._keep_lock()
                        run(self._news())
                except StoreLockedError as error:
                    # After an interruption, the lock may still be that of the lost connection.
                    if failed_at is None:
                        raise
                    failed_at = self._failed(error, failed_at)
                except _GONE as error:
                    failed_at = self._failed(error, failed_at)
        finally:
            self.close()

    def _failed(self, error: Exception, failed_at: float | None) -> float:
        """Disconnect after an error and pause, or raise it: at the start, or after `retry_s`."""
        self.close()
        now = time.monotonic()
        failed_at = now if failed_at is None else failed_at
        if not self._has_started or now - failed_at >= self._retry_s:
            raise error
        run(pause(_PAUSE_NS))
        return failed_at

    # -- a round -------------------------------------------------------------------------------

    def _round(self, must_exist: bool) -> Iterator[Progress]:
        self._ensure_open(must_exist)
        now = time.monotonic()
        if now >= self._listed_at + _LIST_S or must_exist:
            find = existing_recordings_of if must_exist else recordings_of
            found = find(self.topic, self._client.list_recordings())
            self._recordings = {
                part: PartitionRecording(self._archive, part, each.recording_id)
                for part, each in found.items()
            }
            self._listed_at = now
        for partition, recording in self._recordings.items():
            yield from self._replicate(partition, recording)

    def _news(self) -> Task[None]:
        """Wait until more is recorded, or a recording or the lock is due to be looked at."""
        yield Pause(_POLL_NS)
        wait_s = min(self._listed_at + _LIST_S, self._renew_at) - time.monotonic()
        deadline_ns = time.monotonic_ns() + int(max(wait_s, 0) * 1e9)
        yield Until(self._has_news, deadline_ns, _POLL_NS)

    def _has_news(self) -> bool:
        """Whether counters show that more is recorded, or one does not show it."""
        for partition, recording in self._recordings.items():
            position, pointer = recording.counted(), self._pointers.get(partition.index)
            if position is None or position > (0 if pointer is None else pointer.next_position):
                return True
        return False

    def _replicate(self, partition: Partition, recording: PartitionRecording) -> Iterator[Progress]:
        """Store what has been recorded of a partition since its pointer."""
        client, index, recording_id = self._client, partition.index, recording.id
        pointer = self._pointers.get(index)
        counter = self._counter(partition, recording_id, pointer)
        end = client.max_recorded_position(recording_id)
        if pointer is not None and pointer.next_position == end:
            return
        start = client.start_position(recording_id)
        begin = start if pointer is None else pointer.next_position
        if start > (0 if pointer is None else begin):
            has = "nothing of it" if pointer is None else f"it up to {begin}"
            raise EntityError(
                f"the log of partition {index} of topic {self.topic}, recording {recording_id}, "
                f"begins at {start}: records were purged before they were replicated, the store "
                f"has {has}; fill a new namespace from another store of the topic with `aerotape "
                "entity copy-store`",
                self.topic,
            )
        if begin > end:
            raise of_another_log(partition, recording_id, begin, end)
        if partition.is_persistent:
            # What is not on storage may be lost, and must not be in the store then.
            confirmed = recording.counted()
            end = end if confirmed is None else min(end, confirmed)
        if begin >= end:
            return
        with client.replay(recording_id, begin, end - begin, follow=False) as messages:
            for batch in self._batches(messages):
                last = batch[-1]
                pointer = Pointer(last.position, last.end_position)
                with _without_collector():
                    events = self._store_batch(index, batch, pointer)
                self._pointers[index] = pointer
                counter.set(pointer.next_position)
                yield Progress(index, pointer, end, len(batch), events)

    def _counter(self, partition: Partition, recording_id: int, pointer: Pointer | None) -> Counter:
        """Return the counter of what is stored of a partition's recording, bytes."""
        found = self._counters.get(recording_id)
        if found is None:
            client = self._client
            archive_id = client.archive_id
            found = client.aeron.native.add_counter(
                CounterType.ENTITY_REPLICATION,
                entity_replication_key(archive_id, recording_id),
                entity_replication_label(archive_id, recording_id, self.topic, partition.index),
            )
            found.set(0 if pointer is None else pointer.next_position)
            self._counters[recording_id] = found
        return found

    def _batches(self, messages: Iterator[Message]) -> Iterator[list[Message]]:
        batch: list[Message] = []
        length = 0
        for message in messages:
            batch.append(message)
            length += len(message.payload)
            if length >= self._batch_length or len(batch) >= self._batch_records:
                yield batch
                batch, length = [], 0
        if batch:
            yield batch

    def _store_batch(self, index: int, batch: list[Message], pointer: Pointer) -> int:
        """Store the changes of a batch and the pointer; return the number of events inserted."""
        actions: dict[bytes, list[LoggedAction]] = {}
        for message in batch:
            try:
                action = LoggedAction(index, message.position, message.payload)
            except CodecError as error:
                raise self._damaged(index, message.position, error) from error
            actions.setdefault(action.header.id, []).append(action)
        try:
            by_id = {id.decode(): each for id, each in actions.items()}
            heads = self._store.heads(self.topic, list(by_id))
            size = self._store.options.segment_size
            changes: dict[str, Change] = {
                id: collapse(heads.get(id), each, size) for id, each in by_id.items()
            }
            self._store.apply(self.topic, index, changes, pointer)
        except (CodecError, UnicodeDecodeError) as error:
            raise self._damaged(index, batch[0].position, error) from error
        self._renew_at = time.monotonic() + self._store.options.lease_ms / 3000
        return sum(each.count for change in changes.values() for each in change.insertions)

    def _damaged(self, index: int, position: int, error: Exception) -> EntityError:
        return EntityError(
            f"topic {self.topic}, partition {index}: invalid record in the log from position "
            f"{position} on: {error}",
            self.topic,
        )

    # -- connections ---------------------------------------------------------------------------

    def _ensure_open(self, must_exist: bool) -> None:
        if self._open is not None:
            return
        with ExitStack() as stack:
            self._client = stack.enter_context(self._connect())
            self._archive = LogArchive(access(self._client))
            if must_exist:  # else a store would be created for a mistyped topic
                existing_recordings_of(self.topic, self._client.list_recordings())
            self._store = stack.enter_context(self._open_store())
            # The lock survives a lost connection: it stays that of this replicator.
            self._owner = self._store.owner = self._owner or self._store.owner
            stack.enter_context(self._store.replicating())
            wanted = self._index_positions
            if self._store.orders_events if wanted is None else wanted:
                self._store.index_positions()
            self._pointers = self._store.pointers(self.topic)
            self._recordings, self._counters, self._listed_at = {}, {}, 0.0
            self._renew_at = 0.0
            self._open = stack.pop_all()
        self._has_started = True

    def _keep_lock(self) -> None:
        """Renew the lock while nothing is stored."""
        now = time.monotonic()
        if now < self._renew_at:
            return
        owner = self._store.try_lock(REPLICATOR_LOCK)
        if owner != self._store.owner:
            raise self._store.locked(owner)
        self._renew_at = now + self._store.options.lease_ms / 3000

    def close(self) -> None:
        """Release the lock and disconnect. Idempotent."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the collector of cycles: a batch has none, and a hundred thousand objects to visit."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
