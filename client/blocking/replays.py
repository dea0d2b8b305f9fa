# Generated from asynchronous/replays.py: do not edit.
# Regenerate: python -m aerotape.client.generate
"""Replays of the blocking client."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Self

from aerotape.client import arguments, channels
from aerotape.client.blocking_requests import BlockingRequests
from aerotape.client.replay import requests
from aerotape.client.replay.requests import ReplayTarget
from aerotape.client.replay.stream import ReplayProperties, ReplayStream, open_replay
from aerotape.client.session.request import Call, nothing
from aerotape.codecs.generated import archive as codecs
from aerotape.context import Closing
from aerotape.message import Message


class Replay(ReplayProperties, Iterator[Message], Closing):
    """The messages of a replay, in order. Iterate it once, in one reader.

    The iteration ends at the recording's stop position or the given length; a replay of a live
    recording follows it until it stops. A message of which the replay holds only a part (begun
    before the start, or cut by the length) is skipped.

    Iterating raises `ReplayError` when the archive aborts the replay, `AeronTimeoutError` when
    no message arrives in time (iterate again to continue) and `ClosedError` when the archive
    goes away. A reader that is interrupted or cancelled loses no message: iterate again to
    continue. Leaving the `with` block, or `close`, stops the replay.
    """

    def __init__(self, stream: ReplayStream, requests: BlockingRequests) -> None:
        """Read an open stream. Created by `ArchiveClient.replay`."""
        super().__init__(stream)
        self._requests = requests

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        backlog = self._stream.backlog
        if not backlog:
            self._requests._run(self._stream.fetch())
            if not backlog:
                raise StopIteration
        return backlog.next_message()

    def close(self) -> None:
        """Stop the replay if it has not ended, and close its subscription. Idempotent."""
        self._requests._run(self._stream.stop())


class ReplayMethods(BlockingRequests):
    """Replays: to a reader, or to a channel."""

    _replay_channel: str

    def start_replay(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        *,
        position: int | None = None,
        length: int | None = None,
        limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
        subscription_id: int | None = None,
        scope_id: int | None = None,
    ) -> int:
        """Replay a recording to a channel and stream of the caller.

        Args:
            position: from where, bytes: the beginning of a frame. None: from the start.
            length: how much, bytes. None (or Aeron's -1), or more than there is: to the end,
                following a recording that is live until it stops. Aeron's -2: to where the
                recording is when the archive reads the request.
            limit_counter_id: replay up to the value of this counter of the media driver.
            file_io_max_length: the longest single read of the archive, bytes.
            subscription_id: on a response channel (``control-mode=response``), the registration id
                of the subscription that receives the replay.
            scope_id: replay a recording of this scope, which the archive has imported; None or 0:
                a recording of the archive itself.

        Returns:
            The replay's id, for `stop_replay`. Its low 32 bits are the session id of the
            publication.

        Raises:
            UnknownRecordingError: there is no such recording.
            LimitError: the archive has reached its maximum number of requests.
            InvalidPositionError: no frame begins there, or it is not within the recording.
            EmptyRecordingError: nothing is recorded yet.
            IllegalOperationError: the archive knows no other scope than its own.
            ConfigurationError: `channel` is not a channel URI.
        """
        target = ReplayTarget(channel, stream_id, limit_counter_id, file_io_max_length, scope_id)
        answer = self._run(
            requests.start_replay(
                self._session,
                recording_id,
                target,
                position=position,
                length=length,
                subscription_id=subscription_id,
            )
        )
        return answer.relevant_id

    def start_bounded_replay(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        limit_counter_id: int,
        *,
        position: int | None = None,
        length: int | None = None,
        file_io_max_length: int | None = None,
        subscription_id: int | None = None,
    ) -> int:
        """As `start_replay`, up to the value of a counter of the media driver.

        Args:
            limit_counter_id: the counter's id.
        """
        return self.start_replay(
            recording_id,
            channel,
            stream_id,
            position=position,
            length=length,
            limit_counter_id=arguments.count("limit_counter_id", limit_counter_id),
            file_io_max_length=file_io_max_length,
            subscription_id=subscription_id,
        )

    def stop_replay(self, replay_session_id: int) -> bool:
        """Stop a replay, if it has not ended already.

        Returns:
            False when no replay with this id was running. The Java archive does not report that:
            then the result is True.
        """
        return self._run(requests.stop_replay(replay_session_id))

    def stop_all_replays(self, recording_id: int | None = None) -> None:
        """Stop all replays of a recording, or of all recordings, of every client."""
        request = codecs.StopAllReplaysRequest(
            recording_id=arguments.optional_natural("recording_id", recording_id)
        )
        return self._run(Call(request, "stop all replays", nothing))

    def replay(
        self,
        recording_id: int,
        position: int | None = None,
        length: int | None = None,
        *,
        channel: str | None = None,
        stream_id: int = channels.DEFAULT_REPLAY_STREAM_ID,
        follow: bool = True,
        limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
        timeout_ns: int | None = None,
        scope_id: int | None = None,
    ) -> Replay:
        """Replay a recording and return its messages.

        >>> with client.replay(0) as messages:
        ...     for message in messages:
        ...         print(message.position, message.payload)
        0 b'first'
        64 b'second'
        128 b'third'

        Args:
            position: the start, bytes: the beginning of a frame. None: the start of the recording.
            length: the length, bytes. None (or Aeron's -1), or more than there is: to the end.
                Aeron's -2 is -1 with `follow` off.
            channel: where the archive replays to. Default: as the control responses.
            stream_id: stream on that channel.
            follow: whether a live recording is followed until it stops (or to `length`); else
                the replay ends where the recording is now.
            limit_counter_id: replay up to the value of this counter of the media driver;
                the replay then ends at `length` or when the counter is closed.
            file_io_max_length: the longest single read of the archive, bytes.
            timeout_ns: how long to wait for the next message. Default: the client's timeout
                when one must arrive, no limit when following.
            scope_id: replay a recording of this scope, which the archive has imported; None or 0:
                a recording of the archive itself.

        Raises:
            ArchiveError: UNKNOWN_RECORDING, MAX_REPLAYS, INVALID_POSITION, …
            IllegalOperationError: the archive knows no other scope than its own.
            ConfigurationError: the channel is invalid.
            AerotapeError: the recording has an invalid start position.
        """
        target = ReplayTarget(
            channel or self._replay_channel,
            stream_id,
            limit_counter_id,
            file_io_max_length,
            scope_id,
        )
        begin = partial(
            open_replay,
            self._session,
            recording_id,
            target,
            position=position,
            length=length,
            follow=follow,
            timeout_ns=timeout_ns,
        )
        return self._open(begin, partial(Replay, requests=self))
