"""The recorded position of a partition: of a topic of type PD_JOURNAL, that on storage.

While the recording is live, a counter on the archive's media driver shows it, without a request.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from aerotape.counter_keys import CounterType, key_fields
from aerotape.entity.partition import Partition
from aerotape.errors import EntityError
from aerotape.protocol import NULL_POSITION

if TYPE_CHECKING:
    from aerotape.client.client import Client


class RecordedPosition:
    """The recorded position of one partition."""

    def __init__(self, client: Client, partition: Partition, recording_id: int) -> None:
        """Find the counter later, when the position is asked for."""
        self._client = client
        self._partition = partition
        self._recording_id = recording_id
        self._counters = client.aeron.counters()
        self._counter_type: int = (
            CounterType.CONFIRMED_POSITION
            if partition.is_persistent
            else CounterType.RECORDING_POSITION
        )
        self._counter_id: int | None = None

    def counter(self) -> int | None:
        """Return the value of the counter, bytes; None: it is not there, or not any more."""
        if self._counter_id is None:
            self._counter_id = self._find_counter()
        if self._counter_id is None:
            return None
        position = self._counters.value(self._counter_id)
        if self._is_counter(self._counter_id):
            return position
        self._counter_id = None
        return None

    def live(self) -> int:
        """Return the recorded position, bytes; -1 when the recording is not live.

        Raises:
            EntityError: it is of type PD_JOURNAL, and its counter is not on this media driver.
        """
        was_found = self._counter_id is not None
        position = self.counter()
        if position is not None:
            return position
        if was_found:
            return NULL_POSITION
        # An archive with another driver, or a stopped recording.
        position = self._client.recording_position(self._recording_id)
        if self._partition.is_persistent and position != NULL_POSITION:
            raise EntityError(
                f"recording {self._recording_id} of {self._partition} has no confirmed position: "
                "topics of type PD_JOURNAL need an aerotape archive on this media driver",
                self._partition.topic,
            )
        return position

    def end(self) -> int:
        """Return the recorded or the stop position, bytes (EntityError: as `live`)."""
        position = self.live()
        if position != NULL_POSITION:
            return position
        return self._client.max_recorded_position(self._recording_id)

    @property
    def has_ended(self) -> bool:
        """Whether the recording was live when the position was read last, and has ended."""
        return self._counter_id is not None and not self._is_counter(self._counter_id)

    def _find_counter(self) -> int | None:
        own = {"recording_id": self._recording_id, "archive_id": self._client.archive_id}
        for counter_id, type_id, key, *_ in self._counters.rows(self._counter_type):
            if own.items() <= key_fields(type_id, key).items():
                return counter_id
        return None

    def _is_counter(self, counter_id: int) -> bool:
        return (
            self._counters.state(counter_id) == 1
            and self._counters.type_id(counter_id) == self._counter_type
            and self._counters.key(counter_id)[:8] == struct.pack("<q", self._recording_id)
        )
