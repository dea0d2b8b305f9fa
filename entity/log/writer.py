"""Writing to one partition: a publication that all writers on a media driver share.

Their messages are one stream and one recording, which stops when the last writer closes its
publication.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from aerotape.aeron import ADMIN_ACTION, BACK_PRESSURED, NOT_CONNECTED, sending_error
from aerotape.context import Closing
from aerotape.entity.log.known_end import Known, KnownEnd
from aerotape.entity.partition import Partition
from aerotape.errors import AeronError, EntityError
from aerotape.frame_header import HEADER_LENGTH, align_frame
from aerotape.waiting import Attempt, Pause, Task

if TYPE_CHECKING:
    from aerotape import _native
    from aerotape._native import Effect
    from aerotape.codecs.entity.actions import ActionHeader
    from aerotape.entity.log.recording import PartitionRecording

_NOT_NOW: Final = (BACK_PRESSURED, ADMIN_ACTION, NOT_CONNECTED)
# How long a thread waits for room at a time, and the pauses between the attempts.
_ROOM_WAIT_NS: Final = 20_000_000
_MIN_PAUSE_NS: Final = 1_000_000
_MAX_PAUSE_NS: Final = 16_000_000


class RecordPosition(NamedTuple):
    """The place of a record in its partition.

    Attributes:
        partition: the partition's index.
        offset: where the record's first frame begins, bytes.
        next_position: where its last frame ends, bytes.
    """

    partition: int
    offset: int
    next_position: int


class Sent(NamedTuple):
    """A record that was sent; it is not recorded yet.

    Attributes:
        place: its place.
        outcome: what `KnownEnd.add` returned.
    """

    place: RecordPosition
    outcome: tuple[Effect, int] | None


class PartitionWriter(Closing):
    """A publication of one partition, recorded. Created by `open_writer`; thread-safe.

    Attributes:
        partition: what it writes to.
        recording: the partition's recording.
        max_length: the longest message, bytes.
        known_end: the end of the log as far as it is known; to be used with `lock`.
        lock: held while a record is sent.
    """

    def __init__(
        self,
        partition: Partition,
        publication: _native.Publication,
        recording: PartitionRecording,
        timeout_ns: int,
    ) -> None:
        """Write to a publication, and close it at the end."""
        self.partition = partition
        self.recording = recording
        self._publication = publication
        self._timeout_ns = timeout_ns
        self._max_payload_length = publication.max_payload_length
        self.max_length = publication.max_message_length
        self.lock = threading.Lock()
        self.known_end = KnownEnd()

    # -- sending -------------------------------------------------------------------------------

    def send(
        self, message: bytes, action: ActionHeader | None = None, base: Known | None = None
    ) -> Task[Sent]:
        """Send a record, waiting for room. One that is cancelled meanwhile is not sent.

        Args:
            message: the record.
            action: its kind and range; None: a mark.
            base: the journal as of a position in front of the record.

        Raises:
            EntityError: the message is too long.
            AeronTimeoutError: the archive does not record, or not fast enough.
            ClosedError: the publication is closed.
        """
        length = len(message)
        if length > self.max_length:
            raise EntityError(
                f"a record of {length} bytes is too long for {self.partition}: at most "
                f"{self.max_length}; append fewer events at once, or create the topic with a "
                "channel that has a longer term-length",
                self.partition.topic,
            )
        sent = self._offer(message, action, base, 0)
        if isinstance(sent, Sent):
            return sent
        deadline_ns = time.monotonic_ns() + self._timeout_ns
        pause_ns = _MIN_PAUSE_NS
        while True:
            offering = Attempt(partial(self._offer, message, action, base), _ROOM_WAIT_NS)
            yield offering
            if isinstance(offering.value, Sent):
                return offering.value
            if offering.value not in _NOT_NOW or time.monotonic_ns() >= deadline_ns:
                raise sending_error(self._publication, offering.value, self._timeout_ns)
            yield Pause(pause_ns)
            pause_ns = min(2 * pause_ns, _MAX_PAUSE_NS)

    def _offer(
        self, message: bytes, action: ActionHeader | None, base: Known | None, timeout_ns: int
    ) -> Sent | int:
        """Send a record if there is room in time; else return the negative result."""
        with self.lock:
            publication = self._publication
            end = (
                publication.offer_within(message, timeout_ns)
                if timeout_ns > 0
                else publication.offer(message)
            )
            if end <= 0:
                return end
            begin = end - self._stored_length(len(message))
            place = RecordPosition(self.partition.index, begin, end)
            return Sent(place, self.known_end.add(place, action, base))

    def end_of_log(self, mark: Callable[[], bytes]) -> Task[int]:
        """Return a position, bytes, that everything sent before the call precedes.

        Args:
            mark: returns a mark, which is sent unless the last record is known to be the last.
        """
        with self.lock:
            if 0 < self.known_end.end == self._publication.position:
                return self.known_end.end
        return (yield from self.send(mark())).place.offset

    @property
    def position(self) -> int:
        """The end of the log, bytes, records being sent included."""
        return self._publication.position

    def _stored_length(self, length: int) -> int:
        """Return the length of a message's frames, bytes."""
        if length <= self._max_payload_length:
            return align_frame(length + HEADER_LENGTH)
        whole, rest = divmod(length, self._max_payload_length)
        frames = whole * (self._max_payload_length + HEADER_LENGTH)
        return frames + (align_frame(rest + HEADER_LENGTH) if rest else 0)

    # -- the recording -------------------------------------------------------------------------

    def recorded(self, position: int) -> Task[None]:
        """Wait until the recording has reached a position: on storage, for a persistent topic.

        Raises:
            EntityError: it stopped at a lower one; what was sent may be lost.
            AeronTimeoutError: it has not in time.
        """
        if (yield from self.recording.reached(position, self._timeout_ns)):
            return
        self.close()
        stopped_at = yield from self.recording.end()
        raise EntityError(
            f"recording {self.recording.id} of {self.partition} stopped at {stopped_at}, "
            f"before {position}: records sent after that are lost; repeat the operation",
            self.partition.topic,
        )

    @property
    def is_open(self) -> bool:
        """Whether the publication is open and still recorded, as far as is known."""
        return self._publication.is_connected and not self.recording.has_ended

    def close(self) -> None:
        """Close the publication. Idempotent."""
        with suppress(AeronError):
            self._publication.close()
