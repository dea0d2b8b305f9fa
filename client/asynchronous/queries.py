"""Requests of the asyncio client for recordings, recording subscriptions and positions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.client import arguments, queries
from aerotape.client.event_loop import AsyncRequests
from aerotape.client.queries import Pages, RecordingSubscription, list_scopes
from aerotape.client.session.exchange import poll, send_keep_alive
from aerotape.client.session.request import Listing, get_archive_id
from aerotape.codecs.generated import archive as codecs
from aerotape.errors import ArchiveError


class AsyncQueryMethods(AsyncRequests):
    """Requests about recordings, subscriptions and the session."""

    def list_recordings(
        self, from_recording_id: int = 0, count: int | None = None, *, scope_id: int | None = None
    ) -> AsyncIterator[RecordingDescriptor]:
        """Iterate over the recordings in the order of their ids, page by page.

        >>> async for recording in client.list_recordings():
        ...     print(recording.recording_id, recording.stream_id, recording.stop_position)
        0 1001 192

        Args:
            from_recording_id: the first id to be listed.
            count: the maximum number; None: no limit.
            scope_id: list the recordings of this scope, which the archive has imported; None or 0:
                its own.

        Raises:
            IllegalOperationError: the archive knows no other scope than its own.
        """
        scope = queries.check_scope(self._session, scope_id)
        ask = partial(queries.listing_request, scope)
        return self._each(
            queries.recording_pages(self._session, ask, "list recordings", from_recording_id, count)
        )

    def list_recordings_for_uri(
        self,
        channel_fragment: str,
        stream_id: int,
        from_recording_id: int = 0,
        count: int | None = None,
    ) -> AsyncIterator[RecordingDescriptor]:
        """As `list_recordings`, of one stream id and of channels that contain a text.

        Args:
            channel_fragment: any part of the recording's channel without the parameters that
                do not identify the stream, for example ``endpoint=localhost:20121``.
        """
        return self._each(
            queries.recording_pages_for_uri(
                self._session, channel_fragment, stream_id, from_recording_id, count
            )
        )

    async def list_recording(
        self, recording_id: int, *, scope_id: int | None = None
    ) -> RecordingDescriptor | None:
        """Return a recording's descriptor, None when there is no such recording.

        Args:
            scope_id: as for `list_recordings`.

        Raises:
            IllegalOperationError: the archive knows no other scope than its own.
        """
        return await self._run(queries.list_recording(self._session, recording_id, scope_id))

    def list_recording_subscriptions(
        self,
        channel_fragment: str = "",
        stream_id: int | None = None,
        *,
        from_index: int = 0,
        count: int | None = None,
    ) -> AsyncIterator[RecordingSubscription]:
        """Iterate over what the archive records or waits to record, page by page.

        Args:
            channel_fragment: any part of the channel, as in `list_recordings_for_uri`; empty: any.
            stream_id: None: any.
            from_index: how many matches to skip.
            count: the maximum number; None: no limit.
        """
        arguments.text("channel_fragment", channel_fragment)
        arguments.count("from_index", from_index)
        stream = 0 if stream_id is None else arguments.any_int32("stream_id", stream_id)

        def ask(index: int, length: int) -> Listing:
            request = codecs.ListRecordingSubscriptionsRequest(
                pseudo_index=index,
                subscription_count=length,
                apply_stream_id=codecs.BooleanType(stream_id is not None),
                stream_id=stream,
                channel=channel_fragment,
            )
            return Listing(request, "list recording subscriptions", length)

        def key_after(index: int, _: RecordingSubscription, length: int) -> int:
            return index + length

        return self._each(
            Pages(self._session, ask, queries.subscription_of, key_after, from_index, count)
        )

    async def find_last_matching_recording(
        self, min_recording_id: int, channel_fragment: str, stream_id: int, session_id: int
    ) -> int:
        """Return the id of the last recording of a session, -1 when there is none.

        Args:
            min_recording_id: the least id that counts.
            channel_fragment: as in `list_recordings_for_uri`.
        """
        return await self._run(
            queries.find_last_matching_recording(
                min_recording_id, channel_fragment, stream_id, session_id
            )
        )

    async def start_position(self, recording_id: int) -> int:
        """Return the start position of a recording, bytes."""
        return await self._run(queries.start_position(recording_id))

    async def stop_position(self, recording_id: int) -> int:
        """Return the stop position of a recording, bytes; -1 while it is live."""
        return await self._run(queries.stop_position(recording_id))

    async def recording_position(self, recording_id: int) -> int:
        """Return the recorded position of a live recording, bytes; -1 when it is not live."""
        return await self._run(queries.recording_position(recording_id))

    async def max_recorded_position(self, recording_id: int) -> int:
        """Return the stop position of a recording or, while it is live, the recorded one, bytes."""
        return await self._run(queries.max_recorded_position(recording_id))

    async def get_archive_id(self) -> int:
        """Return the archive's id."""
        return await self._run(get_archive_id())

    async def scopes(self) -> list[int]:
        """Return the scopes that have recordings or ledgers, ascending and unsigned.

        That of the archive's own recordings is always one of them. Scope 0 is that if the archive
        has no id, and not listed otherwise, though it may have ledgers.

        Raises:
            IllegalOperationError: the archive knows no other scope than its own.
        """
        return await self._run(list_scopes(self._session))

    async def ping(self) -> int:
        """Return the round-trip time of a request to the archive, nanoseconds."""
        begin_ns = time.monotonic_ns()
        await self.get_archive_id()
        return time.monotonic_ns() - begin_ns

    async def poll_for_errors(self) -> list[ArchiveError]:
        """Return the errors that belong to no pending request, oldest first.

        Raises:
            ClosedError: the archive went away.
        """
        await self._run(poll(self._session, "poll for errors"))
        return self._session.take_errors()

    async def keep_alive(self) -> None:
        """Send a keep-alive to the archive."""
        what = "keep the session alive"
        await self._run(poll(self._session, what))
        await self._run(send_keep_alive(self._session, what))
