"""Requests that ask what is recorded: descriptors and positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from aerotape.archive.client.requests import Requests
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.codecs import archive as codecs

_PAGE: Final = 100
_MAX_COUNT: Final = (1 << 31) - 1


class QueryRequests(Requests):
    """Asking for recordings and their positions."""

    def list_recordings(
        self, from_recording_id: int = 0, count: int | None = None
    ) -> Iterator[RecordingDescriptor]:
        """Iterate over the recordings in the order of their ids, asking page by page.

        Args:
            from_recording_id: the first id to be listed.
            count: at most so many; None: all.
        """

        def page(from_id: int, page_count: int) -> list[codecs.RecordingDescriptor]:
            request = codecs.ListRecordingsRequest(
                from_recording_id=from_id, record_count=page_count
            )
            return self._session.request_descriptors(request, page_count, "list recordings")

        return _pages(page, from_recording_id, count)

    def list_recordings_for_uri(
        self,
        channel_fragment: str,
        stream_id: int,
        from_recording_id: int = 0,
        count: int | None = None,
    ) -> Iterator[RecordingDescriptor]:
        """As `list_recordings`, of one stream id and with channels that hold a text.

        Args:
            channel_fragment: any part of the recording's channel without the parameters that
                do not identify the stream, for example ``endpoint=localhost:20121``.
        """

        def page(from_id: int, page_count: int) -> list[codecs.RecordingDescriptor]:
            request = codecs.ListRecordingsForUriRequest(
                from_recording_id=from_id,
                record_count=page_count,
                stream_id=stream_id,
                channel=channel_fragment,
            )
            what = f"list recordings of {channel_fragment!r} stream {stream_id}"
            return self._session.request_descriptors(request, page_count, what)

        return _pages(page, from_recording_id, count)

    def list_recording(self, recording_id: int) -> RecordingDescriptor | None:
        """Return a recording's descriptor, None when there is no such recording."""
        request = codecs.ListRecordingRequest(recording_id=recording_id)
        what = f"list recording {recording_id}"
        found = self._session.request_descriptors(request, 1, what)
        return _descriptor(found[0]) if found else None

    def find_last_matching_recording(
        self, min_recording_id: int, channel_fragment: str, stream_id: int, session_id: int
    ) -> int:
        """Return the id of the last recording of a session, -1 when there is none.

        Args:
            min_recording_id: the least id that counts.
            channel_fragment: as in `list_recordings_for_uri`.
        """
        request = codecs.FindLastMatchingRecordingRequest(
            min_recording_id=min_recording_id,
            session_id=session_id,
            stream_id=stream_id,
            channel=channel_fragment,
        )
        return self._ask(request, f"find a recording of {channel_fragment!r} stream {stream_id}")

    def start_position(self, recording_id: int) -> int:
        """Return where a recording starts, bytes."""
        request = codecs.StartPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the start position of recording {recording_id}")

    def stop_position(self, recording_id: int) -> int:
        """Return where a recording stopped, bytes; -1 while it is live."""
        request = codecs.StopPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the stop position of recording {recording_id}")

    def recording_position(self, recording_id: int) -> int:
        """Return how far a live recording has come, bytes; -1 when it is not live."""
        request = codecs.RecordingPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the position of recording {recording_id}")

    def max_recorded_position(self, recording_id: int) -> int:
        """Return where a recording stopped or, live, how far it has come, bytes."""
        request = codecs.MaxRecordedPositionRequest(recording_id=recording_id)
        return self._ask(request, f"ask for the last position of recording {recording_id}")


def _pages(
    page: Callable[[int, int], list[codecs.RecordingDescriptor]],
    from_recording_id: int,
    count: int | None,
) -> Iterator[RecordingDescriptor]:
    remaining = _MAX_COUNT if count is None else count
    while remaining > 0:
        page_count = min(_PAGE, remaining)
        found = page(from_recording_id, page_count)
        yield from map(_descriptor, found)
        if len(found) < page_count:
            return
        remaining -= len(found)
        from_recording_id = found[-1].recording_id + 1


def _descriptor(message: codecs.RecordingDescriptor) -> RecordingDescriptor:
    return RecordingDescriptor(
        recording_id=message.recording_id,
        start_timestamp_ms=message.start_timestamp,
        stop_timestamp_ms=message.stop_timestamp,
        start_position=message.start_position,
        stop_position=message.stop_position,
        initial_term_id=message.initial_term_id,
        segment_file_length=message.segment_file_length,
        term_buffer_length=message.term_buffer_length,
        mtu_length=message.mtu_length,
        session_id=message.session_id,
        stream_id=message.stream_id,
        stripped_channel=message.stripped_channel,
        original_channel=message.original_channel,
        source_identity=message.source_identity,
    )
