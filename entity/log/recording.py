"""The recording of a partition: how far it is.

While it is live, a counter on the archive's media driver shows that, without a request. Of a topic
of type PD_JOURNAL it is the position up to which the recording is on storage.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from aerotape.counter_keys import CounterType, key_fields
from aerotape.errors import AeronTimeoutError, EntityError
from aerotape.protocol import NULL_POSITION
from aerotape.waiting import SLICE_NS, CounterValue, Pause, Task

if TYPE_CHECKING:
    from aerotape.entity.log.archive import LogArchive
    from aerotape.entity.partition import Partition

_ASK_EVERY_NS: Final = 1_000_000
_ALLOCATED: Final = 1


class PartitionRecording:
    """The recording of one partition. Thread-safe.

    Attributes:
        id: the recording's id.
        counter: id and registration id of its counter; None until it was found.
    """

    def __init__(self, archive: LogArchive, partition: Partition, recording_id: int) -> None:
        """Find the counter later, when the position is asked for."""
        self.id = recording_id
        self.counter: tuple[int, int] | None = None
        self._archive = archive
        self._partition = partition
        self._counter_type: int = (
            CounterType.CONFIRMED_POSITION
            if partition.is_persistent
            else CounterType.RECORDING_POSITION
        )

    def counted(self) -> int | None:
        """Return the value of the counter, bytes; None: it is not there, or not any more."""
        if self.counter is None:
            self.counter = self._find_counter()
        if self.counter is None:
            return None
        position = self._archive.counters.value(self.counter[0])
        return None if self.has_ended else position

    def live(self) -> Task[int]:
        """Return the recorded position, bytes; -1 when the recording is not live.

        Raises:
            EntityError: it is of type PD_JOURNAL, and its counter is not on this media driver.
        """
        position = self.counted()
        if position is not None:
            return position
        if self.counter is not None:
            return NULL_POSITION
        # An archive with another driver, or a stopped recording.
        position = yield from self._archive.live_position(self.id)
        if self._partition.is_persistent and position != NULL_POSITION:
            raise EntityError(
                f"recording {self.id} of {self._partition} has no confirmed position: "
                "topics of type PD_JOURNAL need an aerotape archive on this media driver",
                self._partition.topic,
            )
        return position

    def end(self) -> Task[int]:
        """Return the recorded or the stop position, bytes (EntityError: as `live`)."""
        position = yield from self.live()
        if position == NULL_POSITION:
            self.counter = None  # the recording may be extended, with another counter
            position = yield from self._archive.last_position(self.id)
        return position

    def reached(self, position: int, timeout_ns: int) -> Task[bool]:
        """Wait until the recording has reached a position; return False if it stopped before.

        Raises:
            AeronTimeoutError: it has not in time.
            EntityError: as `live`.
        """
        deadline_ns = time.monotonic_ns() + timeout_ns
        while True:
            counter = self.counter
            recorded: int | None
            if counter is None:
                recorded = yield from self.live()
            else:
                left_ns = max(deadline_ns - time.monotonic_ns(), 0)
                reaching = CounterValue(
                    self._archive.counters, counter, position, min(left_ns, SLICE_NS)
                )
                yield reaching
                recorded = reaching.value
            if recorded is None or recorded == NULL_POSITION:
                return (yield from self._archive.last_position(self.id)) >= position
            if recorded >= position:
                return True
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(
                    f"{self._partition} is recorded up to {recorded} and not to {position} within "
                    f"{timeout_ns / 1e9:g} s"
                )
            if self.counter is None:
                yield Pause(_ASK_EVERY_NS)

    @property
    def has_ended(self) -> bool:
        """Whether the recording was live when the counter was found, and has ended."""
        if self.counter is None:
            return False
        counters, (counter_id, registration_id) = self._archive.counters, self.counter
        return (
            counters.state(counter_id) != _ALLOCATED
            or counters.registration_id(counter_id) != registration_id
        )

    def _find_counter(self) -> tuple[int, int] | None:
        own = {"recording_id": self.id, "archive_id": self._archive.id}
        for row in self._archive.counters.rows(self._counter_type):
            counter_id, type_id, key, _, registration_id, *_ = row
            if own.items() <= key_fields(type_id, key).items():
                return counter_id, registration_id
        return None
