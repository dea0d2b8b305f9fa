"""A subscription to a topic: the changes of all its partitions, as they are recorded.

Each round takes, partition by partition, what has been recorded since the last one, by a replay of
that part. So a subscription holds no replay while nothing is recorded, and at most a few at a time,
however many partitions there are.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from aerotape.context import Closing
from aerotape.entity.following.changes import TopicChange
from aerotape.entity.following.partition_changes import PartitionChanges
from aerotape.entity.log.recorded_position import RecordedPosition
from aerotape.entity.partition import Partition
from aerotape.entity.topic import recordings_of
from aerotape.errors import AeronTimeoutError, ConfigurationError

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.client.client import Client
    from aerotape.entity.stores.store import Store

POLL_S: Final = 0.02
_LIST_S: Final = 1.0

From = Literal["beginning", "now"] | Mapping[int, int]
"""The begin of a subscription: also a mapping of partitions to positions, bytes."""


class Subscription(Iterator[TopicChange], Closing):
    """The changes of the journals of a topic. Created by `Entities.subscribe`; for one thread.

    Iterating waits for the next change. It raises `AeronTimeoutError` when there is none in time,
    and other errors when the archive or the store does not respond: iterate again to continue.
    """

    def __init__(
        self,
        client: Client,
        partitions: Sequence[Partition],
        store: Store | None,
        from_: From,
        tags: Collection[str],
        until_caught_up: bool,
        timeout_ns: int | None,
    ) -> None:
        """Create it. Use `Entities.subscribe`, which documents the arguments."""
        if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
            raise ConfigurationError(f"tags={tags!r}: expected a tuple of texts", "tags")
        self._client = client
        self._partitions = partitions
        self._topic = partitions[0].topic
        self._store = store
        self._tags = tuple(dict.fromkeys(tags))
        self._until_caught_up = until_caught_up
        self._timeout_ns = timeout_ns
        self._changes: dict[int, PartitionChanges] = {}
        self._listed_at = 0.0
        self._round: Generator[TopicChange, None, None] | None = None
        self._is_over = False
        if store is not None:
            # Refused if the store has no such order.
            store.events_between(self._topic, 0, 0, 0, self._tags)
        self._positions = dict.fromkeys(range(len(partitions)), 0) | self._begin(from_)

    @property
    def positions(self) -> dict[int, int]:
        """The position to which each partition has been followed, bytes.

        A subscription from there continues after the change that was returned last. Positions also
        move with records that are no changes, or have none of the tags.
        """
        return dict(self._positions)

    @property
    def is_over(self) -> bool:
        """Whether it is closed, or has caught up and was to end then."""
        return self._is_over

    def __next__(self) -> TopicChange:
        began_ns = time.monotonic_ns()
        while not (changes := self.take(1)):
            if self._is_over:
                raise StopIteration
            waited_ns = time.monotonic_ns() - began_ns
            if self._timeout_ns is not None and waited_ns >= self._timeout_ns:
                raise AeronTimeoutError(
                    f"no change of topic {self._topic} within {self._timeout_ns / 1e9:g} s"
                )
            time.sleep(POLL_S)
        return changes[0]

    def take(self, limit: int) -> list[TopicChange]:
        """Return the changes that there are now, without waiting for more.

        Args:
            limit: the most changes.

        Raises:
            EntityError: the log is damaged, or purged where it is needed, or not that of the
                positions or the store.
            EntityStoreError: the store does not respond.
            AerotapeError: the archive is gone.
        """
        if self._is_over:
            return []
        if self._round is None:
            self._round = self._each_partition()
        found: list[TopicChange] = []
        try:
            for change in islice(self._round, limit):
                found.append(change)
        except Exception:
            self._round = None
            if not found:
                raise  # else the next call fails, if the cause is still there
        else:
            if len(found) < limit:
                self._round = None
                self._is_over = self._until_caught_up
        return found

    def close(self) -> None:
        """End it. Idempotent."""
        self._is_over = True
        if self._round is not None:
            self._round.close()
            self._round = None

    # -- a round -------------------------------------------------------------------------------

    def _each_partition(self) -> Generator[TopicChange, None, None]:
        self._find()
        for index, partition in self._changes.items():
            for change in partition.new():
                self._positions[index] = partition.position
                change.positions = self.positions
                yield change
            self._positions[index] = partition.position

    def _find(self) -> None:
        """Add the partitions whose recording has appeared."""
        now = time.monotonic()
        if len(self._changes) == len(self._partitions) or now < self._listed_at + _LIST_S:
            return
        for partition, recording in self._recordings().items():
            index = partition.index
            if index not in self._changes:
                self._changes[index] = PartitionChanges(
                    self._client,
                    partition,
                    recording,
                    self._store,
                    self._positions[index],
                    self._tags,
                )
        self._listed_at = now

    def _recordings(self) -> dict[Partition, RecordingDescriptor]:
        return recordings_of(self._topic, self._client.list_recordings())

    def _begin(self, from_: From) -> dict[int, int]:
        """Return the positions at which it begins, of partitions that do not begin at 0."""
        if from_ == "beginning":
            return {}
        if from_ == "now":
            return {
                partition.index: RecordedPosition(
                    self._client, partition, recording.recording_id
                ).end()
                for partition, recording in self._recordings().items()
            }
        last = len(self._partitions) - 1
        if not isinstance(from_, Mapping):
            raise ConfigurationError(
                f"from_={from_!r}: expected 'beginning', 'now', or positions by partition",
                "from_",
            ).naming("from_")
        for index, position in from_.items():
            if type(index) is not int or not 0 <= index <= last:
                raise ConfigurationError(
                    f"from_ with partition {index!r}: topic {self._topic} has the partitions 0 to "
                    f"{last}",
                    "from_",
                ).naming("from_")
            if type(position) is not int or position < 0:
                raise ConfigurationError(
                    f"from_ with position {position!r} of partition {index}: expected bytes, from "
                    "0",
                    "from_",
                ).naming("from_")
        return dict(from_)
