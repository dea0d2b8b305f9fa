"""Requests that start and stop recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from aerotape.aeron import Publication
from aerotape.archive.client import channels
from aerotape.archive.client.requests import Requests
from aerotape.archive.protocol import ErrorCode
from aerotape.codecs import archive as codecs
from aerotape.errors import ArchiveError, ConfigurationError

SourceLocationName = Literal["local", "remote"]


class RecordingRequests(Requests):
    """Starting and stopping recordings."""

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
                are recorded without a detour over the network. Else "remote".
            auto_stop: stop when the first stream ends.

        Returns:
            The id of the recording subscription, for `stop_recording_subscription`.

        Raises:
            ArchiveError: ACTIVE_SUBSCRIPTION when it is being recorded already, MAX_RECORDINGS.
        """
        request = codecs.StartRecordingRequest2(
            stream_id=stream_id,
            source_location=_source_location(source_location),
            auto_stop=codecs.BooleanType(auto_stop),
            channel=channel,
        )
        return self._ask(request, f"start recording {channel} stream {stream_id}")

    def add_recorded_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> Publication:
        """Add a publication and record its session.

        Raises:
            ArchiveError: as `start_recording`; the publication is closed again.
        """
        publication = self._aeron.add_publication(channel, stream_id, self._session.timeout_ns)
        try:
            own = channels.with_session_id(channel, publication.session_id)
            self.start_recording(own, stream_id, "local", auto_stop=auto_stop)
        except BaseException:
            publication.close()
            raise
        return publication

    def stop_recording(self, channel: str, stream_id: int) -> None:
        """Stop what `start_recording` with this channel and stream id has started.

        Raises:
            ArchiveError: UNKNOWN_SUBSCRIPTION when nothing is.
        """
        request = codecs.StopRecordingRequest(stream_id=stream_id, channel=channel)
        self._ask(request, f"stop recording {channel} stream {stream_id}")

    def try_stop_recording(self, channel: str, stream_id: int) -> bool:
        """As `stop_recording`, but return False when there was nothing to stop."""
        return _unless_unknown_subscription(lambda: self.stop_recording(channel, stream_id))

    def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop the recording subscription with this id.

        Raises:
            ArchiveError: UNKNOWN_SUBSCRIPTION when there is none.
        """
        request = codecs.StopRecordingSubscriptionRequest(subscription_id=subscription_id)
        self._ask(request, f"stop recording subscription {subscription_id}")

    def try_stop_recording_subscription(self, subscription_id: int) -> bool:
        """As `stop_recording_subscription`, but return False when there is none."""
        return _unless_unknown_subscription(
            lambda: self.stop_recording_subscription(subscription_id)
        )

    def stop_recording_by_identity(self, recording_id: int) -> bool:
        """Stop a live recording by its id; return False when it was not live.

        Raises:
            ArchiveError: UNKNOWN_RECORDING.
        """
        request = codecs.StopRecordingByIdentityRequest(recording_id=recording_id)
        return self._ask(request, f"stop recording {recording_id}") != 0


def _source_location(
    location: codecs.SourceLocation | SourceLocationName,
) -> codecs.SourceLocation:
    if isinstance(location, codecs.SourceLocation):
        return location
    try:
        return codecs.SourceLocation[location.upper()]
    except KeyError:
        raise ConfigurationError(
            f'source location must be "local" or "remote", not {location!r}', "source_location"
        ) from None


def _unless_unknown_subscription(stop: Callable[[], None]) -> bool:
    try:
        stop()
    except ArchiveError as error:
        if error.error_code != ErrorCode.UNKNOWN_SUBSCRIPTION:
            raise
        return False
    return True
