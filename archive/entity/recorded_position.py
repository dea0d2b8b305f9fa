"""How far the recording of a partition is: on storage, for a topic of type PD_JOURNAL."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from aerotape.archive.counters import CounterType
from aerotape.archive.entity.partition import Partition

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient


class RecordedPosition:
    """The counter of a live recording on the client's media driver."""

    def __init__(self, client: ArchiveClient, partition: Partition, recording_id: int) -> None:
        """Look for the counter when its value is needed."""
        self.counter_id: int | None = None
        self._counters = client.aeron.counters()
        self._archive_id = struct.pack("<q", client.archive_id)
        self._recording_id = struct.pack("<q", recording_id)
        # Of a persistent topic, recorded is what is on storage.
        self._type: int = (
            CounterType.LEDGER_CONFIRMED
            if partition.is_persistent
            else CounterType.RECORDING_POSITION
        )

    def value(self) -> int | None:
        """Return the position, bytes; None: there is no counter, or not any more."""
        if self.counter_id is None:
            self.counter_id = self._find()
        if self.counter_id is None:
            return None
        position = self._counters.value(self.counter_id)
        if self.is_live:
            return position
        self.counter_id = None
        return None

    @property
    def is_live(self) -> bool:
        """Whether the counter, if it was found, is still that of the recording."""
        counter_id = self.counter_id
        return counter_id is None or (
            self._counters.state(counter_id) == 1
            and self._counters.type_id(counter_id) == self._type
            and self._counters.key(counter_id)[:8] == self._recording_id
        )

    def _find(self) -> int | None:
        for row in self._counters.rows(self._type):
            if row[2][:8] == self._recording_id and self._archive_id in row[2]:
                return row[0]
        return None
