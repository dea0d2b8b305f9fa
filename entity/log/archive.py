"""The archive as the log of a topic uses it: requests about recordings, and their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from aerotape.client import queries, recordings
from aerotape.client.channels import DEFAULT_REPLAY_STREAM_ID
from aerotape.client.replay.requests import ReplayTarget
from aerotape.client.replay.stream import ReplayStream, open_replay
from aerotape.client.session.exchange import exchange

if TYPE_CHECKING:
    from aerotape import _native
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.client.client import Access
    from aerotape.client.session.client_session import ClientSession
    from aerotape.client.session.request import Call
    from aerotape.entity.partition import Partition
    from aerotape.message import Message
    from aerotape.waiting import Task

T = TypeVar("T")


class LogArchive:
    """The connection to an archive, for tasks. Thread-safe.

    Attributes:
        id: the archive's id.
        timeout_ns: how long a request may take.
        aeron: the client of the media driver.
        counters: of the media driver.
    """

    def __init__(self, access: Access) -> None:
        """Use the connection of a client."""
        self._session, self._replay_channel = access
        self.id = self._session.archive_id
        self.timeout_ns = self._session.timeout_ns
        self.aeron: _native.AeronClient = self._session.aeron
        self.counters: _native.CountersReader = self.aeron.counters()

    def ask(self, call: Call[T]) -> Task[T]:
        """Perform a request and return its result."""
        return exchange(self._session, call)

    def recordings(self) -> Task[list[RecordingDescriptor]]:
        """Return all recordings."""
        return queries.recording_pages(
            self._session,
            lambda first, length: queries.listing_request(None, first, length),
            "list recordings",
            0,
            None,
        ).all()

    def recordings_of(self, partition: Partition) -> Task[list[RecordingDescriptor]]:
        """Return the recordings of a partition's channel and stream."""
        return queries.recording_pages_for_uri(
            self._session, f"alias={partition.alias}", partition.stream_id
        ).all()

    def find_recording(self, partition: Partition, session_id: int) -> Task[int]:
        """Return the id of the last recording of a session, -1 when there is none."""
        alias, stream_id = f"alias={partition.alias}", partition.stream_id
        return self.ask(queries.find_last_matching_recording(0, alias, stream_id, session_id))

    def start_position(self, recording_id: int) -> Task[int]:
        """Return the start position of a recording, bytes."""
        return self.ask(queries.start_position(recording_id))

    def stop_position(self, recording_id: int) -> Task[int]:
        """Return the stop position of a recording, bytes; -1 while it is live."""
        return self.ask(queries.stop_position(recording_id))

    def live_position(self, recording_id: int) -> Task[int]:
        """Return the recorded position of a live recording, bytes; -1 when it is not live."""
        return self.ask(queries.recording_position(recording_id))

    def last_position(self, recording_id: int) -> Task[int]:
        """Return the stop position of a recording or, while it is live, the recorded one, bytes."""
        return self.ask(queries.max_recorded_position(recording_id))

    def start_recording(self, channel: str, stream_id: int) -> Task[int]:
        """Record a publication until it ends; return the id of the recording subscription."""
        return self.ask(recordings.start_recording(channel, stream_id, "local", auto_stop=True))

    def extend_recording(self, recording_id: int, channel: str, stream_id: int) -> Task[int]:
        """As `start_recording`, at the end of a recording."""
        call = recordings.extend_recording(
            recording_id, channel, stream_id, "local", auto_stop=True
        )
        return self.ask(call)

    def stop_recording(self, subscription_id: int) -> Task[None]:
        """End a recording subscription."""
        return self.ask(recordings.stop_recording_subscription(subscription_id))

    def abandon_recording(self, subscription_id: int) -> None:
        """As `stop_recording`, without waiting for the response."""
        self._session.send_unanswered(recordings.stop_recording_subscription(subscription_id))

    def purge_recording(self, recording_id: int) -> Task[int]:
        """Delete a stopped recording."""
        return self.ask(recordings.purge_recording(recording_id))

    def purge_segments(self, recording_id: int, new_start_position: int) -> Task[int]:
        """Delete the segments up to one that begins at a position; return their number."""
        return self.ask(recordings.purge_segments(recording_id, new_start_position))

    def records(self, recording_id: int, begin: int, end: int) -> Records:
        """Return the records of a recording from one position to another, which is recorded.

        There are none if that is not higher: an archive that continues a recording adds its counter
        before it sets it.
        """
        return Records(self._session, self._replay_channel, recording_id, begin, end)


class Records:
    """Records of a recording, in batches."""

    def __init__(
        self, session: ClientSession, channel: str, recording_id: int, begin: int, end: int
    ) -> None:
        self._session = session
        self._channel = channel
        self._recording_id = recording_id
        self._begin, self._end = begin, end
        self._stream: ReplayStream | None = None

    def next(self) -> Task[list[Message]]:
        """Return the next records; none at the end.

        Raises:
            InvalidPositionError: the recording does not have its beginning.
            ReplayError: the archive has aborted the replay.
        """
        if self._begin >= self._end:
            return []
        if self._stream is None:
            self._stream = yield from open_replay(
                self._session,
                self._recording_id,
                ReplayTarget(self._channel, DEFAULT_REPLAY_STREAM_ID),
                position=self._begin,
                length=self._end - self._begin,
                follow=True,
                timeout_ns=self._session.timeout_ns,
            )
        yield from self._stream.fetch()
        return self._stream.backlog.messages()

    def close(self) -> None:
        """Stop the replay, without waiting for the archive. Idempotent."""
        if self._stream is not None:
            self._stream.abandon()
