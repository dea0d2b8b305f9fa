"""What a request to record becomes: a subscription, and a session for each of its images.

The state of these; what happens to them is decided in `recordings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from aerotape.archive.protocol import NULL_VALUE, ErrorCode
from aerotape.codecs.archive import RecordingSignal

if TYPE_CHECKING:
    from aerotape._native import (
        Counter,
        Image,
        PendingCounter,
        Subscription,
    )
    from aerotape.archive.retrying import Retrying


class Requester(Protocol):
    """The control session that asked."""

    @property
    def session_id(self) -> int: ...
    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None: ...
    def send_error(
        self, correlation_id: int, error_code: ErrorCode | int, message: str
    ) -> None: ...
    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None: ...


class RecordingSubscription:
    """One request to record that is in force.

    Attributes:
        extends: the recording that its image is to go on with; None for a new one an image.
    """

    def __init__(
        self,
        requester: Requester,
        correlation_id: int,
        *,
        key: str,
        stream_id: int,
        original_channel: str,
        channel: str,
        stripped: str,
        auto_stop: bool,
        extends: int | None,
    ) -> None:
        self.requester = requester
        self.correlation_id = correlation_id
        self.key = key
        self.stream_id = stream_id
        self.original_channel = original_channel
        # As subscribed to: with a spy's prefix.
        self.channel = channel
        self.stripped_channel = stripped
        self.auto_stop = auto_stop
        self.extends = extends
        # Another one each time that the driver is asked.
        self.registration_id = NULL_VALUE
        self.pending: Retrying[Subscription] | None = None
        self.subscription: Subscription | None = None
        self.references = 1
        # Set by a stop: images that still come are not recorded.
        self.is_stopping = False

    def close(self) -> None:
        self.is_stopping = True
        if self.pending is not None:
            self.pending.cancel()
            self.pending = None
        if self.subscription is not None:
            self.subscription.close()
            self.subscription = None


# Path, header, whether it is begun anew, nanoseconds and bytes between its points.
TimeIndexRequest = tuple[str, bytes, bool, int, int]


class RecordingSession:
    """One image being recorded.

    Attributes:
        start_position: the recording's, bytes.
        join_position: where in the recording the image begins: its start, or where it stopped
            before it was extended.
    """

    def __init__(
        self,
        source: RecordingSubscription,
        image: Image,
        recording_id: int,
        *,
        start_position: int,
        segment_file_length: int,
        pending_counter: PendingCounter,
    ) -> None:
        self.source = source
        self.recording_id = recording_id
        self.start_position = start_position
        self.join_position = image.join_position
        self.segment_file_length = segment_file_length
        # As the recorder wants it; None when none is to be written.
        self.time_index: TimeIndexRequest | None = None
        # Until the recorder has taken it over.
        self.image: Image | None = image
        self.pending_counter: PendingCounter | None = pending_counter
        self.counter: Counter | None = None
        # Whether the client has had its START or EXTEND.
        self.is_begin_told = False
        self.is_stopping = False

    @property
    def position(self) -> int:
        """How far the stream has been recorded, bytes."""
        return self.join_position if self.counter is None else self.counter.get()
