"""Following a topic: the changes of all its partitions, as they are recorded.

Each round takes, partition by partition, what has been recorded since the last one, by a replay of
that part. So a subscription holds no replay while nothing is recorded, and at most a few at a time,
however many partitions there are.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Final, Literal

from aerotape.entity.following.changes import TopicChange
from aerotape.entity.following.partition_changes import PartitionChanges, Steps
from aerotape.entity.log.recording import PartitionRecording
from aerotape.entity.topic import recordings_of
from aerotape.errors import AeronTimeoutError, ConfigurationError
from aerotape.waiting import Pause, Task

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.entity.log.topic_log import TopicLog
    from aerotape.entity.partition import Partition

_POLL_NS: Final = 20_000_000
_LIST_S: Final = 1.0

From = Literal["beginning", "now"] | Mapping[int, int]
"""The begin of a subscription: also a mapping of partitions to positions, bytes."""


def follow(
    log: TopicLog,
    from_: From,
    tags: Collection[str],
    until_caught_up: bool,
    timeout_ns: int | None,
) -> Task[Following]:
    """Begin to follow a topic. `Entities.subscribe` documents the arguments."""
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
        raise ConfigurationError(f"tags={tags!r}: expected a tuple of texts", "tags")
    tags = tuple(dict.fromkeys(tags))
    if log.store is not None:
        # Refused if the store has no such order.
        log.store.events_between(log.topic, 0, 0, 0, tags)
    positions = dict.fromkeys(range(len(log.partitions)), 0)
    if from_ == "now":
        for partition, recording in (yield from _recordings(log)).items():
            end = PartitionRecording(log.archive, partition, recording.recording_id).end()
            positions[partition.index] = yield from end
    elif from_ != "beginning":
        positions |= _checked(from_, log)
    return Following(log, positions, tags, until_caught_up, timeout_ns)


class Following:
    """The state of a subscription. For one caller at a time.

    Attributes:
        positions: those to which the partitions have been followed, bytes: up to the change that
            was returned last, and records after it that are no changes.
        is_over: whether it is closed, or has caught up and was to end then.
    """

    def __init__(
        self,
        log: TopicLog,
        positions: dict[int, int],
        tags: Collection[str],
        until_caught_up: bool,
        timeout_ns: int | None,
    ) -> None:
        self.positions = positions
        self.is_over = False
        self._log = log
        self._tags = tags
        self._until_caught_up = until_caught_up
        self._timeout_ns = timeout_ns
        self._changes: dict[int, PartitionChanges] = {}
        self._listed_at = 0.0
        self._round: Steps[None] | None = None
        self._followed = dict(positions)
        # Found and not returned yet: a caller that is cancelled loses no change.
        self._found: list[TopicChange] = []

    def next(self) -> Task[TopicChange | None]:
        """Wait for the next change and return it; None at the end.

        Raises:
            AeronTimeoutError: there is none in time.
        """
        began_ns = time.monotonic_ns()
        while not (changes := (yield from self.take(1))):
            if self.is_over:
                return None
            waited_ns = time.monotonic_ns() - began_ns
            if self._timeout_ns is not None and waited_ns >= self._timeout_ns:
                raise AeronTimeoutError(
                    f"no change of topic {self._log.topic} within {self._timeout_ns / 1e9:g} s"
                )
            yield Pause(_POLL_NS)
        return changes[0]

    def take(self, limit: int) -> Task[list[TopicChange]]:
        """Return the changes that there are now, without waiting for more."""
        while len(self._found) < limit and not self.is_over:
            try:
                change = yield from self._change()
            except Exception:
                if not self._found:
                    raise
                break  # the next call fails, if the cause is still there
            if change is None:
                self.is_over = self._until_caught_up
                break
            self._found.append(change)
        found, self._found = self._found[:limit], self._found[limit:]
        self.positions = dict(found[-1].positions if self._found else self._followed)
        return found

    def _change(self) -> Task[TopicChange | None]:
        """Return the next change of a round; None at its end."""
        if self._round is None:
            self._round = self._each_partition()
        steps = self._round
        try:
            step = next(steps)
            while not isinstance(step, TopicChange):
                try:
                    yield step
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = next(steps)
            return step
        except StopIteration:
            self._round = None
            return None
        except BaseException:
            self._round = None
            steps.close()
            raise

    def close(self) -> None:
        """End it. Idempotent."""
        self.is_over = True
        self._found.clear()
        if self._round is not None:
            self._round.close()
            self._round = None

    # -- a round -------------------------------------------------------------------------------

    def _each_partition(self) -> Steps[None]:
        yield from self._find()
        for index, partition in self._changes.items():
            with closing(partition.new()) as steps:
                for step in steps:
                    if isinstance(step, TopicChange):
                        self._followed[index] = partition.position
                        step.positions = dict(self._followed)
                    yield step
            self._followed[index] = partition.position

    def _find(self) -> Task[None]:
        """Add the partitions whose recording has appeared."""
        now = time.monotonic()
        log = self._log
        if len(self._changes) == len(log.partitions) or now < self._listed_at + _LIST_S:
            return
        for partition, recording in (yield from _recordings(log)).items():
            index = partition.index
            if index not in self._changes:
                self._changes[index] = PartitionChanges(
                    log.archive, partition, recording, log.store, self._followed[index], self._tags
                )
        self._listed_at = now


def _recordings(log: TopicLog) -> Task[dict[Partition, RecordingDescriptor]]:
    return recordings_of(log.topic, (yield from log.archive.recordings()))


def _checked(from_: object, log: TopicLog) -> dict[int, int]:
    """Return the positions of a begin."""
    last = len(log.partitions) - 1
    if not isinstance(from_, Mapping):
        raise ConfigurationError(
            f"from_={from_!r}: expected 'beginning', 'now', or positions by partition",
            "from_",
        ).naming("from_")
    for index, position in from_.items():
        if type(index) is not int or not 0 <= index <= last:
            raise ConfigurationError(
                f"from_ with partition {index!r}: topic {log.topic} has the partitions 0 to "
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
