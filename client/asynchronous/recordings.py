"""Requests of the asyncio client that start, stop and change recordings."""

from __future__ import annotations

from functools import partial

from aerotape.aeron import ExclusivePublication, Publication
from aerotape.channel_uri import with_session_id
from aerotape.client import arguments, recordings
from aerotape.client.arguments import SourceLocationName
from aerotape.client.event_loop import AsyncRequests
from aerotape.client.queries import stop_recording_by_identity
from aerotape.client.session.request import Call, nothing, relevant_id
from aerotape.codecs.generated import archive as codecs
from aerotape.driver_tasks import add, add_publication
from aerotape.errors import UnknownSubscriptionError


class AsyncRecordingMethods(AsyncRequests):
    """Recordings: starting, stopping, changing."""

    async def start_recording(
        self,
        channel: str,
        stream_id: int,
        source_location: codecs.SourceLocation | SourceLocationName = "local",
        *,
        auto_stop: bool = False,
    ) -> int:
        """Record each stream that is published on a channel and stream id, now or later.

        >>> subscription_id = await client.start_recording("aeron:ipc", 2001)
        >>> await client.stop_recording("aeron:ipc", 2001)

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
        return await self._run(
            recordings.start_recording(channel, stream_id, source_location, auto_stop=auto_stop)
        )

    async def extend_recording(
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
        return await self._run(
            recordings.extend_recording(
                recording_id, channel, stream_id, source_location, auto_stop=auto_stop
            )
        )

    async def stop_recording(self, channel: str, stream_id: int) -> None:
        """Stop the recording that `start_recording` started with this channel and stream id.

        Raises:
            UnknownSubscriptionError: there is no such recording subscription.
        """
        request = codecs.StopRecordingRequest(
            stream_id=arguments.any_int32("stream_id", stream_id),
            channel=arguments.channel("channel", channel),
        )
        return await self._run(
            Call(request, f"stop recording {channel} stream {stream_id}", nothing)
        )

    async def try_stop_recording(self, channel: str, stream_id: int) -> bool:
        """As `stop_recording`, but return False when there is no such subscription."""
        try:
            await self.stop_recording(channel, stream_id)
        except UnknownSubscriptionError:
            return False
        return True

    async def stop_recording_session(self, channel: str, stream_id: int, session_id: int) -> None:
        """Stop recording one session, as of a publication of `add_recorded_publication`.

        Raises:
            UnknownSubscriptionError: there is no recording subscription for this session alone.
        """
        arguments.channel("channel", channel)
        arguments.any_int32("session_id", session_id)
        own = with_session_id(channel, session_id)
        await self.stop_recording(own, stream_id)

    async def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop the recording subscription with this id.

        Raises:
            UnknownSubscriptionError: there is none.
        """
        return await self._run(recordings.stop_recording_subscription(subscription_id))

    async def try_stop_recording_subscription(self, subscription_id: int) -> bool:
        """As `stop_recording_subscription`, but return False when there is none."""
        try:
            await self.stop_recording_subscription(subscription_id)
        except UnknownSubscriptionError:
            return False
        return True

    async def stop_recording_by_identity(self, recording_id: int) -> bool:
        """Stop a live recording by its id; return False when it was not live.

        Raises:
            UnknownRecordingError: there is no such recording.
        """
        return await self._run(stop_recording_by_identity(recording_id))

    async def truncate_recording(self, recording_id: int, position: int) -> int:
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
        request = codecs.TruncateRecordingRequest(
            recording_id=arguments.natural("recording_id", recording_id),
            position=arguments.natural("position", position),
        )
        return await self._run(
            Call(request, f"truncate recording {recording_id} at {position}", relevant_id)
        )

    async def purge_recording(self, recording_id: int) -> int:
        """Delete a stopped recording with all its segment files.

        Returns:
            How many segment files were deleted.

        Raises:
            UnknownRecordingError: there is no such recording.
            ActiveRecordingError: it has not stopped.
            ArchiveError: it is being replayed.
        """
        return await self._run(recordings.purge_recording(recording_id))

    async def update_channel(self, recording_id: int, channel: str) -> None:
        """Change the channel in a recording's descriptor; the recorded data is unchanged.

        Raises:
            UnknownRecordingError: there is no such recording.
        """
        request = codecs.UpdateChannelRequest(
            recording_id=arguments.natural("recording_id", recording_id),
            channel=arguments.channel("channel", channel),
        )
        return await self._run(
            Call(request, f"update the channel of recording {recording_id} to {channel}", nothing)
        )

    async def add_recorded_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> Publication:
        """Add a publication and record its session.

        Raises:
            ArchiveError: as `start_recording`; the publication is closed again.
        """
        _check(channel, stream_id)
        session = self._session
        begin = partial(session.aeron.async_add_publication, channel, stream_id)
        adding = add(begin, f"a publication to {channel} stream {stream_id}", session.timeout_ns)
        publication = Publication(await self._run(adding))
        await self._record(publication, auto_stop)
        return publication

    async def add_recorded_exclusive_publication(
        self, channel: str, stream_id: int, *, auto_stop: bool = False
    ) -> ExclusivePublication:
        """As `add_recorded_publication`, for an exclusive publication."""
        _check(channel, stream_id)
        session = self._session
        adding = add_publication(session.aeron, channel, stream_id, session.timeout_ns)
        publication = ExclusivePublication(await self._run(adding))
        await self._record(publication, auto_stop)
        return publication

    async def _record(
        self, publication: Publication | ExclusivePublication, auto_stop: bool
    ) -> None:
        try:
            own = with_session_id(publication.channel, publication.session_id)
            await self.start_recording(own, publication.stream_id, auto_stop=auto_stop)
        except BaseException:
            publication.close()
            raise


def _check(channel: str, stream_id: int) -> None:
    arguments.channel("channel", channel)
    arguments.any_int32("stream_id", stream_id)
