"""Writing to one partition: a publication that all writers on a media driver share.

Their messages are one stream and one recording. The first writer creates the recording, or extends
it after a pause; the recording stops when the last writer closes its publication.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from aerotape.aeron import Publication
from aerotape.catalog.descriptor import extension_channel
from aerotape.channel_uri import with_session_id
from aerotape.context import Closing
from aerotape.entity.log.known_end import Known, KnownEnd
from aerotape.entity.log.recorded_position import RecordedPosition
from aerotape.entity.partition import Partition
from aerotape.entity.topic import recordings_of
from aerotape.errors import (
    ActiveRecordingError,
    ActiveSubscriptionError,
    AeronError,
    AeronTimeoutError,
    AerotapeError,
    ArchiveError,
    EntityError,
    InvalidExtensionError,
)
from aerotape.frame_header import HEADER_LENGTH, align_frame
from aerotape.protocol import NULL_POSITION

if TYPE_CHECKING:
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.client.client import Client
    from aerotape.codecs.entity.actions import ActionHeader
    from aerotape.entity.fold import Effect

_RETRY_S: Final = 0.01
_ATTEMPT_NS: Final = 1_000_000_000
_YIELDS: Final = 200
_SLEEP_S: Final = 0.00005


class _BusyError(Exception):
    """Another writer has the partition's stream, perhaps only for a moment."""


# What other writers can do between the look-up of the recording and our request.
_RACES: Final = (_BusyError, ActiveRecordingError, ActiveSubscriptionError, InvalidExtensionError)


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


class PartitionWriter(Closing):
    """A publication of one partition, recorded. Thread-safe.

    Attributes:
        partition: what it writes to.
        recording_id: the partition's recording.
        max_length: the longest message, bytes.
        known_end: the end of the log as far as it is known; to be used with `lock`.
        lock: held while a record is sent.
    """

    def __init__(
        self, client: Client, partition: Partition, channel: str, timeout_ns: int
    ) -> None:
        """Join the partition's stream, or begin it.

        Args:
            client: of the archive that records.
            channel: of the publication, without the alias.
            timeout_ns: how long to wait for the driver, the archive and other writers.

        Raises:
            EntityError: a writer on another media driver is writing to the partition.
            ArchiveError: the archive refuses.
            AeronTimeoutError: no recording in time.
        """
        self._client = client
        self.partition = partition
        self._channel = partition.channel(channel)
        self._timeout_ns = timeout_ns
        self._deadline_ns = time.monotonic_ns() + timeout_ns
        self._publication, self.recording_id = self._open()
        self._max_payload_length = self._publication.max_payload_length
        self.max_length = self._publication.max_message_length
        self._recorded_position = RecordedPosition(client, partition, self.recording_id)
        self.lock = threading.Lock()
        self.known_end = KnownEnd()

    # -- opening -------------------------------------------------------------------------------

    def _open(self) -> tuple[Publication, int]:
        while True:
            recording = self._find_recording()
            try:
                publication = self._published(recording)
                try:
                    recording_id = self._start_recording(publication, recording)
                    if recording is None:
                        self._check_first(publication, recording_id)
                    return publication, recording_id
                except BaseException:
                    publication.close()
                    raise
            except _RACES as error:
                if time.monotonic_ns() >= self._deadline_ns:
                    raise EntityError(
                        f"cannot write to {self.partition}: {error}", self.partition.topic
                    ) from error
            time.sleep(_RETRY_S)

    def _find_recording(self) -> RecordingDescriptor | None:
        """Return the partition's recording, None when there is none yet."""
        partition, client = self.partition, self._client
        own = client.list_recordings_for_uri(f"alias={partition.alias}", partition.stream_id)
        recording = recordings_of(partition.topic, own).get(partition)
        if recording is None:
            for other in recordings_of(partition.topic, client.list_recordings()):
                if replace(other, index=partition.index) != partition:
                    now, then = (
                        f"{each.count} partitions of type {each.type}"
                        for each in (other, partition)
                    )
                    raise EntityError(
                        f"topic {other.topic} has {now} by now, not {then}; open it again",
                        other.topic,
                    )
        return recording

    def _published(self, recording: RecordingDescriptor | None) -> Publication:
        """Add the publication: shared, new, or at the end of the recording."""
        add, stream_id = self._client.aeron.add_publication, self.partition.stream_id
        if recording is not None and not recording.is_active:
            channel = extension_channel(recording, self._channel)
            try:
                publication = add(channel, stream_id, self._timeout_ns)
            except AeronError as error:
                raise _BusyError(f"cannot continue at the end of its recording: {error}") from error
            now = self._find_recording()
            if now is None or now.stop_position != recording.stop_position:
                publication.close()
                raise _BusyError(f"another writer has continued recording {recording.recording_id}")
            return publication
        publication = add(self._channel, stream_id, self._timeout_ns)
        if recording is not None and publication.session_id != recording.session_id:
            publication.close()
            # Or the last writer of this driver has just left, and the recording stops in a moment.
            raise _BusyError(
                f"a writer on another media driver or channel is writing to recording "
                f"{recording.recording_id}; use that driver and channel, or close the writer"
            )
        return publication

    def _start_recording(
        self, publication: Publication, recording: RecordingDescriptor | None
    ) -> int:
        """Record the publication unless it is, and return the recording's id."""
        client, stream_id = self._client, self.partition.stream_id
        own = with_session_id(self._channel, publication.session_id)
        own = self.partition.recorded_channel(own)
        subscription_id = None
        if recording is None:
            subscription_id = client.start_recording(own, stream_id, "local", auto_stop=True)
        elif not recording.is_active:
            subscription_id = client.extend_recording(
                recording.recording_id, own, stream_id, "local", auto_stop=True
            )
        try:
            return self._await_recording(publication)
        except BaseException:
            if subscription_id is not None:
                with contextlib.suppress(AerotapeError):
                    client.try_stop_recording_subscription(subscription_id)
            raise

    def _await_recording(self, publication: Publication) -> int:
        """Wait until the publication is recorded, and return the recording's id."""
        client, alias = self._client, f"alias={self.partition.alias}"
        attempt_ends_ns = time.monotonic_ns() + _ATTEMPT_NS
        while True:
            recording_id = client.find_last_matching_recording(
                0, alias, self.partition.stream_id, publication.session_id
            )
            if recording_id >= 0 and client.recording_position(recording_id) != NULL_POSITION:
                return recording_id
            if time.monotonic_ns() >= self._deadline_ns:
                raise AeronTimeoutError(
                    f"the archive does not record {self.partition} within "
                    f"{self._timeout_ns / 1e9:g} s: is this client on the archive's media driver?"
                )
            if time.monotonic_ns() >= attempt_ends_ns:  # stopped just before we joined
                raise _BusyError("its recording has stopped")
            time.sleep(_RETRY_S)

    def _check_first(self, publication: Publication, recording_id: int) -> None:
        """Check that no other writer has begun the partition; delete our recording if so.

        Every writer of a new recording does this before it sends, so it is empty.
        """
        first = self._find_recording()
        if first is None or first.recording_id == recording_id:
            return
        publication.close()
        client = self._client
        while client.recording_position(recording_id) != NULL_POSITION:
            if time.monotonic_ns() >= self._deadline_ns:
                break
            time.sleep(_RETRY_S)
        with contextlib.suppress(ArchiveError):
            if client.stop_position(recording_id) == client.start_position(recording_id):
                client.purge_recording(recording_id)
        raise _BusyError("another writer has begun it at the same time")

    # -- writing -------------------------------------------------------------------------------

    def send(
        self, message: bytes, action: ActionHeader | None = None, base: Known | None = None
    ) -> tuple[RecordPosition, tuple[Effect, int] | None]:
        """Send a record; it is not recorded yet.

        Args:
            message: the record.
            action: its kind and range; None: a mark.
            base: the journal as of a position in front of the record.

        Returns:
            Its place, and what `KnownEnd.add` returns: the effect.

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
        with self.lock:
            end = self._publication.offer(message)
            if end <= 0:
                end = self._publication.send(message, self._timeout_ns)
            place = RecordPosition(self.partition.index, end - self._stored_length(length), end)
            return place, self.known_end.add(place, action, base)

    def end_of_log(self, mark: Callable[[], bytes]) -> int:
        """Return a position, bytes, that everything sent before the call precedes.

        Args:
            mark: returns a mark, which is sent unless the last record is known to be the last.
        """
        with self.lock:
            if 0 < self.known_end.end == self._publication.position:
                return self.known_end.end
        return self.send(mark())[0].offset

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

    def await_recorded(self, position: int) -> None:
        """Wait until the recording has reached a position: on storage, for a persistent topic.

        Raises:
            EntityError: it stopped at a lower one; what was sent may be lost.
            AeronTimeoutError: it has not in time.
        """
        yields = 0
        deadline_ns = time.monotonic_ns() + self._timeout_ns
        while (recorded := self._recorded_position.live()) < position:
            if recorded == NULL_POSITION:
                self._check_stopped(position)
                return
            if time.monotonic_ns() >= deadline_ns:
                raise AeronTimeoutError(
                    f"{self.partition} is recorded up to {recorded} and not to {position} within "
                    f"{self._timeout_ns / 1e9:g} s"
                )
            yields += 1
            time.sleep(0 if yields <= _YIELDS else _SLEEP_S)

    def _check_stopped(self, position: int) -> None:
        stopped_at = self._client.max_recorded_position(self.recording_id)
        if stopped_at < position:
            self.close()
            raise EntityError(
                f"recording {self.recording_id} of {self.partition} stopped at {stopped_at}, "
                f"before {position}: records sent after that are lost; repeat the operation",
                self.partition.topic,
            )

    @property
    def is_open(self) -> bool:
        """Whether the publication is open and still recorded, as far as is known."""
        if not self._publication.is_connected:
            return False
        return not self._recorded_position.has_ended

    def close(self) -> None:
        """Close the publication. Idempotent."""
        with contextlib.suppress(AeronError):
            self._publication.close()
