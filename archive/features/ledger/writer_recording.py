"""A writer of a ledger: the recording of its stream, from the request to its end.

It observes that recording. Errors after the start go to the client of the writer; signals of the
recording do not, as the ledger's requests have responses.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from aerotape.codecs.generated.archive import RecordingSignal, SourceLocation
from aerotape.errors import ArchiveError, LedgerError
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.waiting import Task


class WriterRecording:
    """The recording of a writer's stream.

    Attributes:
        metadata: of the ledger.
        client: the control session of the writer.
        recording_id: NULL_VALUE before the recording has begun.
        refusal: the error code and the text of a recording that could not begin.
        failure: the error that ended the recording; empty without one.
        stop_position: where the recording stopped, bytes; None before.
    """

    def __init__(
        self, metadata: LedgerMetadata, client: ControlSession, correlation_id: int
    ) -> None:
        """Create the writer, without a recording.

        Args:
            correlation_id: of the request to attach.
        """
        self.metadata = metadata
        self.client = client
        self.correlation_id = correlation_id
        self.session_id = client.session_id
        self.recording_id = NULL_VALUE
        self.refusal: tuple[int, str] | None = None
        self.failure = ""
        self.stop_position: int | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the recording has begun or was refused."""
        return self.recording_id != NULL_VALUE or self.refusal is not None

    @property
    def is_active(self) -> bool:
        """Whether the stream is being recorded."""
        return self.recording_id != NULL_VALUE and self.stop_position is None

    def record(
        self,
        recordings: Recordings,
        stream_id: int,
        channel: str,
        source_location: SourceLocation,
        timeout_ns: int,
    ) -> Task[None]:
        """Wait until the stream is recorded, in the ledger's recording or in a new one.

        Args:
            channel: with the session of the writer.
            timeout_ns: how long the stream may take to arrive.

        Raises:
            ArchiveError: the recording is refused.
            LedgerError: no stream has arrived.
        """
        ledger, recording_id = self.metadata.ledger, self.metadata.recording_id
        deadline_ns = time.monotonic_ns() + timeout_ns
        try:
            subscription = recordings.start(
                self,
                stream_id=stream_id,
                channel=channel,
                source_location=source_location,
                auto_stop=True,
                extends=None if recording_id == NULL_VALUE else recording_id,
                durability=self.metadata.durability,
            )
        except ArchiveError as error:
            raise ArchiveError(f"its stream is not recorded: {error}", error.error_code) from error
        try:
            while not self.is_decided:
                if time.monotonic_ns() >= deadline_ns or self.client.is_done:
                    raise LedgerError(
                        f"no stream of a writer of ledger {ledger} within {timeout_ns / 1e9:g} s:"
                        f" publish to stream {stream_id} of {channel}",
                        ledger,
                    )
                yield Pause()
        finally:
            if self.recording_id == NULL_VALUE:
                recordings.stop_subscription(subscription.registration_id)
        if self.refusal is not None:
            code, message = self.refusal
            raise ArchiveError(f"its stream is not recorded: {message}", code)

    def on_subscribed(self, subscription_id: int) -> None:
        """Ignore the id of the subscription."""

    def on_failed(self, error_code: int, message: str) -> None:
        """Store why the recording did not start, or send the client why it has ended."""
        if self.recording_id == NULL_VALUE:
            self.refusal = error_code, message
        else:
            self.failure = message
            self.client.send_error(self.correlation_id, error_code, message)

    def on_signal(
        self, recording_id: int, subscription_id: int, position: int, signal: RecordingSignal
    ) -> None:
        """Store the begin and the end of the recording."""
        if signal in (RecordingSignal.START, RecordingSignal.EXTEND):
            self.recording_id = recording_id
            self.metadata = replace(self.metadata, recording_id=recording_id)
        elif signal is RecordingSignal.STOP:
            self.stop_position = position
