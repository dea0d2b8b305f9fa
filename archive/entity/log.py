"""Reading the log of a partition for one entity.

The end of a log that no store has yet is looked through once. Its appends are buffered up to a
limit, so that reading the events needs no second pass; past the limit the appends are read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.archive.entity.head_info import Appended, Empty, HeadInfo, Purged, fold
from aerotape.archive.entity.partition import Partition
from aerotape.archive.entity.records import EventRecord
from aerotape.codecs.entity.actions import ActionHeader, ActionKind, Append
from aerotape.codecs.entity.messages import Selector, decode, is_mark
from aerotape.codecs.entity.payload import events_of
from aerotape.errors import CodecError, EntityError, InvalidPositionError

if TYPE_CHECKING:
    from aerotape.archive.client.client import ArchiveClient

DEFAULT_BUFFER_LENGTH: Final = 16 << 20

_Found = tuple[ActionHeader, int, bytes]


@dataclass(slots=True)
class LogStatistics:
    """Counters of what readers of a topic read from its log.

    Attributes:
        passes: passes over a part of the log; a read without one used the store alone.
        records: records that were read.
        decoded_payloads: payloads of appends decoded.
    """

    passes: int = 0
    records: int = 0
    decoded_payloads: int = 0


class Tail:
    """The end of a partition's log, for one entity: from a position to a reader's mark.

    Attributes:
        info: the state of the journal in it.
        end: the position of the mark, bytes.
        marks_from: from here up to the mark `scan` found only marks.
    """

    def __init__(
        self,
        client: ArchiveClient,
        partition: Partition,
        recording_id: int,
        selector: Selector,
        end: int,
        statistics: LogStatistics,
        buffer_length: int = DEFAULT_BUFFER_LENGTH,
    ) -> None:
        """Create an empty tail; `scan` looks through the log, which is recorded up to `end`."""
        self.info: HeadInfo = Empty()
        self.marks_from = end
        self._client = client
        self._partition = partition
        self._recording_id = recording_id
        self._selector = selector
        self.end = end
        self._statistics = statistics
        self._buffer_length = buffer_length
        self._appends: list[tuple[int, bytes]] | None = []
        self._buffered = 0

    def scan(self, begin: int) -> None:
        """Look through the log from a position, bytes.

        Raises:
            EntityError: the log does not reach back so far, or has a record that is no action.
        """
        self.marks_from = begin
        for header, offset, message in self._pass(begin):
            self.info = fold(self.info, header, offset)
            if header.kind is ActionKind.APPEND:
                self._buffer(offset, message)
            elif isinstance(self.info, Purged):
                self._appends, self._buffered = [], 0

    def _buffer(self, offset: int, message: bytes) -> None:
        if self._appends is None:
            return
        self._buffered += len(message)
        if self._buffered > self._buffer_length:
            self._appends = None
        else:
            self._appends.append((offset, message))

    def events(self, from_seq_nr: int) -> Iterator[EventRecord]:
        """Iterate over the events in the log from a sequence number, strictly rising."""
        if not isinstance(self.info, Appended):
            return
        last = max(from_seq_nr - 1, self.info.delete_to or 0)
        for offset, message in self._each_append(self.info.offset):
            append = decode(message)
            assert isinstance(append, Append)
            if append.to_seq_nr <= last:
                continue
            for record in self._records(append, offset):
                if record.seq_nr > last:
                    last = record.seq_nr
                    yield record

    def _each_append(self, begin: int) -> Iterator[tuple[int, bytes]]:
        if self._appends is not None:
            yield from self._appends
            return
        for header, offset, message in self._pass(begin):
            if header.kind is ActionKind.APPEND:
                yield offset, message

    def _records(self, append: Append, offset: int) -> Iterator[EventRecord]:
        self._statistics.decoded_payloads += 1
        try:
            events = events_of(append)
        except CodecError as error:
            raise self._damaged(offset, error) from error
        for event in events.events:
            yield EventRecord(
                event,
                self._partition.index,
                offset,
                append.timestamp_ms,
                append.origin,
                append.version,
                append.metadata,
                events.metadata,
                events.expire_after_ns,
            )

    def _pass(self, begin: int) -> Iterator[_Found]:
        """Iterate over the entity's actions from a position to the mark."""
        statistics, header_of = self._statistics, self._selector.header
        statistics.passes += 1
        seen = 0
        try:
            with self._client.replay(self._recording_id, begin, self.end - begin) as messages:
                for message in messages:
                    seen += 1
                    try:
                        header = header_of(message.payload)
                    except CodecError as error:
                        raise self._damaged(message.position, error) from error
                    if not is_mark(message.payload):
                        self.marks_from = message.end_position
                    if header is not None:
                        yield header, message.position, message.payload
        except InvalidPositionError as error:
            raise EntityError(
                f"the log of {self._partition} is not replicated from {begin} on and has been "
                f"purged there: events are lost ({error})",
                self._partition.topic,
            ) from error
        finally:
            statistics.records += seen

    def _damaged(self, position: int, error: CodecError) -> EntityError:
        return EntityError(
            f"recording {self._recording_id} of {self._partition} has an invalid record at "
            f"{position}: {error}",
            self._partition.topic,
        )
