# Generated from asynchronous/recordings.py: do not edit.
# Regenerate: python -m aerotape.archive.client.generate
"""Requests of the blocking client that start, stop and change recordings."""

from __future__ import annotations

from aerotape.aeron import ExclusivePublication, Publication
from aerotape.archive.client.arguments import SourceLocationName
from aerotape.archive.client.blocking_requests import BlockingRequests
from aerotape.archive.client.requests import recordings
from aerotape.codecs.generated import archive as codecs


class RecordingMethods(BlockingRequests):
    """Recordings: starting, stopping, changing."""

    def start_recording(
        self,
        channel: str,
        stream_id: int,
        source_location: codecs.SourceLocation | SourceLocationName = "local",
        *,
        auto_stop: bool = False,
    ) -> int:
        """Record each stream that is published on a channel and stream id, now or later.

        Args:
            channel: with a ``session-id`` parameter, only that session is recorded.
            source_location: "local" when the publications use the archive's media driver: they
                are recorded directly, not over the network. Else "remote".
            auto_stop: stop when the first stream ends.

        Returns:
            The id of the recording subscription, for `stop_recording_subscription`.

        Raises:
            ActiveSubscriptionError: the stream is already being recorded.
            LimitError: the archive has reached its maximum number of recordings.
            StorageSpaceError: the archive is low on storage space.
        """
        return self._run(
            recordings.start_recording(channel, stream_id, source_location, auto_stop=auto_stop)
        )

    def extend_recording(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        source_location: codecs.SourceLocation | SourceLocationName = "local",
        *,
        auto_stop: bool = False,
    ) -> int:
        """Extend a stopped recording.

        The publication must begin where the recording ends: `extension_channel` returns its
        channel.

        Args:
            channel: this and the following as in `start_recording`.

        Returns:
            The id of the recording subscription, for `stop_recording_subscription`.

        Raises:
            UnknownRecordingError: there is no such recording.
            ActiveRecordingError: it has not stopped.
            InvalidExtensionError: the stream is not the recording's.
        """
        return self._run(
            recordings.extend_recording(
                recording_id, channel, stream_id, source_location, auto_stop=auto_stop
            )
        )

    def stop_recording(self, channel: str, stream_id: int) -> None:
        """Stop the recording that `start_recording` started with this channel and stream id.

        Raises:
            UnknownSubscriptionError: there is no such recording subscription.
        """
        return self._run(recordings.stop_recording(channel, stream_id))

    def try_stop_recording(self, channel: str, stream_id: int) -> bool:
        """As `stop_recording`, but return False when there is no such subscription."""
        return self._run(recordings.try_stop_recording(channel, stream_id))

    def stop_recording_session(self, channel: str, stream_id: int, session_id: int) -> None:
        """Stop recording one session, as of a publication of `add_recorded_publication`.

        Raises:
            UnknownSubscriptionError: there is no recording subscription for this session alone.
        """
        return self._run(recordings.stop_recording_session(channel, stream_id, session_id))

    def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop the recording subscription with this id.

        Raises:
            UnknownSubscriptionError: there is none.
        """
        return self._run(recordings.stop_recording_subscription(subscription_id))

    def try_stop_recording_subscription(self, subscription_id: int) -> bool:
        """As `stop_recording_subscription`, but return False when there is none."""
        return self._run(recordings.try_stop_recording_subscription(subscription_id))

    def stop_recording_by_identity(self, recording_id: int) -> bool:
        """Stop a live recording by its id; return False when it was not live.

        Raises:
            UnknownRecordingError: there is no such recording.
        """
        return self._run(recordings.stop_recording_by_identity(recording_id))

    def truncate_recording(self, recording_id: int, position: int) -> int:
        """Cut a stopped recording off at a position; the data past it is lost.

        Replays of it are stopped first.

        Args:
            position: the new stop position, bytes: the beginning of a frame.

        Returns:
            How many segment files were deleted.

        Raises:
            UnknownRecordingError: there is no such recording.
            ActiveRecordingError: it has not stopped.
            InvalidPositionError: no frame begins there, or it is not within the recording.
        """
        return self._run(recordings.truncate_recording(recording_id, position))

    def purge_recording(self, recording_id: int) -> int:
        """Delete a stopped recording with all its segment files.

        Returns:
            How many segment files were deleted.

        Raises:
            UnknownRecordingError: there is no such recording.
            ActiveRecordingError: it has not stopped.
            ArchiveError: it is being replayed.
        """
        return self._run(recordings.purge_recording(recording_id))

    def update_channel(self, recording_id: int, channel: str) -> None:
        """Change the channel in a recording's descriptor; the recorded data is unchanged.

        Raises:
            UnknownRecordingError: there is no such recording.
        """
        return self._run(recordings.update_channel(recording_id, channel))

    def add_recorded_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> Publication:
        """Add a publication and record its session.

        Raises:
            ArchiveError: as `start_recording`; the publication is closed again.
        """
        return self._run(
            recordings.add_recorded_publication(
                self._session, channel, stream_id, auto_stop=auto_stop
            )
        )

    def add_recorded_exclusive_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> ExclusivePublication:
        """As `add_recorded_publication`, for an exclusive publication."""
        return self._run(
            recordings.add_recorded_exclusive_publication(
                self._session, channel, stream_id, auto_stop=auto_stop
            )
        )
