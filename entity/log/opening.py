"""Opening a partition to write: joining its stream, or beginning it.

The first writer creates the recording, or extends it after a pause.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from aerotape.catalog.descriptor import extension_channel
from aerotape.channel_uri import with_session_id
from aerotape.driver_tasks import add
from aerotape.entity.log.recording import PartitionRecording
from aerotape.entity.log.writer import PartitionWriter
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
from aerotape.protocol import NULL_POSITION
from aerotape.waiting import Pause, Task

if TYPE_CHECKING:
    from aerotape import _native
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.entity.log.archive import LogArchive
    from aerotape.entity.partition import Partition

_RETRY_NS: Final = 10_000_000
_ATTEMPT_NS: Final = 1_000_000_000


class _BusyError(Exception):
    """Another writer has the partition's stream, perhaps only for a moment."""


# What other writers can do between the look-up of the recording and our request.
_RACES: Final = (_BusyError, ActiveRecordingError, ActiveSubscriptionError, InvalidExtensionError)


def open_writer(
    archive: LogArchive, partition: Partition, channel: str, timeout_ns: int
) -> Task[PartitionWriter]:
    """Publish to a partition, recorded.

    Args:
        archive: that records.
        partition: the partition.
        channel: of the publication, without the alias.
        timeout_ns: how long to wait for the driver, the archive and other writers.

    Raises:
        EntityError: a writer on another media driver is writing to the partition.
        ArchiveError: the archive refuses.
        AeronTimeoutError: no recording in time.
    """
    return _Opening(archive, partition, channel, timeout_ns).run()


class _Opening:
    """The opening of one writer."""

    def __init__(
        self, archive: LogArchive, partition: Partition, channel: str, timeout_ns: int
    ) -> None:
        self._archive = archive
        self._partition = partition
        self._channel = partition.channel(channel)
        self._timeout_ns = timeout_ns
        self._deadline_ns = time.monotonic_ns() + timeout_ns

    def run(self) -> Task[PartitionWriter]:
        archive, partition = self._archive, self._partition
        while True:
            recording = yield from self._find_recording()
            try:
                publication = yield from self._published(recording)
                try:
                    recording_id = yield from self._start_recording(publication, recording)
                    if recording is None:
                        yield from self._check_first(publication, recording_id)
                    own = PartitionRecording(archive, partition, recording_id)
                    return PartitionWriter(partition, publication, own, self._timeout_ns)
                except BaseException:
                    publication.close()
                    raise
            except _RACES as error:
                if self._is_late():
                    raise EntityError(
                        f"cannot write to {partition}: {error}", partition.topic
                    ) from error
            yield Pause(_RETRY_NS)

    def _is_late(self) -> bool:
        return time.monotonic_ns() >= self._deadline_ns

    def _find_recording(self) -> Task[RecordingDescriptor | None]:
        """Return the partition's recording, None when there is none yet."""
        partition, archive = self._partition, self._archive
        own = yield from archive.recordings_of(partition)
        recording = recordings_of(partition.topic, own).get(partition)
        if recording is None:
            for other in recordings_of(partition.topic, (yield from archive.recordings())):
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

    def _published(self, recording: RecordingDescriptor | None) -> Task[_native.Publication]:
        """Add the publication: shared, new, or at the end of the recording."""
        if recording is not None and not recording.is_active:
            try:
                publication = yield from self._add(extension_channel(recording, self._channel))
            except AeronError as error:
                raise _BusyError(f"cannot continue at the end of its recording: {error}") from error
            now = yield from self._checked(publication)
            if now is None or now.stop_position != recording.stop_position:
                publication.close()
                raise _BusyError(f"another writer has continued recording {recording.recording_id}")
            return publication
        publication = yield from self._add(self._channel)
        if recording is not None and publication.session_id != recording.session_id:
            publication.close()
            # Or the last writer of this driver has just left, and the recording stops in a moment.
            raise _BusyError(
                f"a writer on another media driver or channel is writing to recording "
                f"{recording.recording_id}; use that driver and channel, or close the writer"
            )
        return publication

    def _add(self, channel: str) -> Task[_native.Publication]:
        stream_id, begin = self._partition.stream_id, self._archive.aeron.async_add_publication
        what = f"a publication to {channel} stream {stream_id}"
        return add(partial(begin, channel, stream_id), what, self._timeout_ns)

    def _checked(self, publication: _native.Publication) -> Task[RecordingDescriptor | None]:
        """As `_find_recording`; after an error, or if it is cancelled, close the publication."""
        try:
            return (yield from self._find_recording())
        except BaseException:
            publication.close()
            raise

    def _start_recording(
        self, publication: _native.Publication, recording: RecordingDescriptor | None
    ) -> Task[int]:
        """Record the publication unless it is, and return the recording's id."""
        archive, stream_id = self._archive, self._partition.stream_id
        own = with_session_id(self._channel, publication.session_id)
        own = self._partition.recorded_channel(own)
        subscription_id = None
        if recording is None:
            subscription_id = yield from archive.start_recording(own, stream_id)
        elif not recording.is_active:
            subscription_id = yield from archive.extend_recording(
                recording.recording_id, own, stream_id
            )
        try:
            return (yield from self._await_recording(publication))
        except Exception:
            if subscription_id is not None:
                with suppress(AerotapeError):
                    yield from archive.stop_recording(subscription_id)
            raise
        except GeneratorExit:  # cancelled
            if subscription_id is not None:
                archive.abandon_recording(subscription_id)
            raise

    def _await_recording(self, publication: _native.Publication) -> Task[int]:
        """Wait until the publication is recorded, and return the recording's id."""
        archive, partition = self._archive, self._partition
        attempt_ends_ns = time.monotonic_ns() + _ATTEMPT_NS
        while True:
            recording_id = yield from archive.find_recording(partition, publication.session_id)
            if recording_id >= 0:
                position = yield from archive.live_position(recording_id)
                if position != NULL_POSITION:
                    return recording_id
            if self._is_late():
                raise AeronTimeoutError(
                    f"the archive does not record {partition} within "
                    f"{self._timeout_ns / 1e9:g} s: is this client on the archive's media driver?"
                )
            if time.monotonic_ns() >= attempt_ends_ns:  # stopped just before we joined
                raise _BusyError("its recording has stopped")
            yield Pause(_RETRY_NS)

    def _check_first(self, publication: _native.Publication, recording_id: int) -> Task[None]:
        """Check that no other writer has begun the partition; delete our recording if so.

        Every writer of a new recording does this before it sends, so it is empty.
        """
        first = yield from self._find_recording()
        if first is None or first.recording_id == recording_id:
            return
        publication.close()
        archive = self._archive
        while (yield from archive.live_position(recording_id)) != NULL_POSITION:
            if self._is_late():
                break
            yield Pause(_RETRY_NS)
        with suppress(ArchiveError):
            end = yield from archive.stop_position(recording_id)
            if end == (yield from archive.start_position(recording_id)):
                yield from archive.purge_recording(recording_id)
        raise _BusyError("another writer has begun it at the same time")
