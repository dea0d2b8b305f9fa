"""The role of an archive that follows the log of another member: a replication of its recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.metadata import fenced
from aerotape.archive.features.ledger.role import Role
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import ArchiveError
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.replication.replications import Replications
    from aerotape.waiting import Task

LeaderRequest = tuple["ControlSession", int]
"""The session of a leader, and the id of its request to follow."""


class Following(Role):
    """A ledger whose log this archive copies from another member. It observes the replication.

    Attributes:
        correlation_id: the id of the replication.
        recording_id: in this archive, NULL_VALUE before there is one.
    """

    session_id = NULL_VALUE

    def __init__(self, replications: Replications, leader: LeaderRequest | None = None) -> None:
        """Create it, without a replication.

        Args:
            leader: that is followed; None: the log of a member is copied for an election.
        """
        self.correlation_id = replications.next_id()
        self.recording_id = NULL_VALUE
        self._replications = replications
        self._leader = leader
        # Of the recordings of the replay.
        self._subscriptions: set[int] = set()
        self._is_begun = False
        self._is_done = True
        self._is_closed = False
        self._failure: str | None = None

    def is_attached(self, leader: ControlSession, correlation_id: int) -> bool:
        return not self._is_closed and self._leader == (leader, correlation_id)

    def sync(self, metadata: LedgerMetadata, position: int) -> Task[int]:
        # The leader needs what this archive has.
        yield from ()
        return position

    def replicate(
        self,
        metadata: LedgerMetadata,
        request: ReplicationRequest,
        on_recording: Callable[[int], Task[None]],
    ) -> Task[int]:
        """Replicate until the recording has begun; return it.

        Args:
            metadata: of the ledger.
            request: the replication.
            on_recording: stores the recording of this archive if it is a new one.

        Raises:
            LedgerFencedError: the role has ended.
            ArchiveError: the replication has failed.
        """
        self._check(metadata)
        recording_id = self.recording_id = request.dst_recording_id
        self._replications.start(self.correlation_id, self, request)
        self._is_done = False
        while not (self._is_begun or self._is_done):
            yield Pause()
            if self.recording_id != recording_id:
                recording_id = self.recording_id
                yield from on_recording(recording_id)
        self._check(metadata)
        self._check_failure(metadata)
        return recording_id

    def await_copied(self, metadata: LedgerMetadata) -> Task[None]:
        while not self._is_done and not self._is_closed:
            yield Pause()
        self._check(metadata)
        self._check_failure(metadata)

    @property
    def has_ended(self) -> bool:  # type: ignore[override]
        # An image that had arrived is still recorded after the replication has ended.
        subscription = self._replications.recordings.subscriptions.get
        return self._is_done and not any(subscription(each) for each in self._subscriptions)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if not self._is_done:
                self._replications.stop(self.correlation_id)

    def _check(self, metadata: LedgerMetadata) -> None:
        if self._is_closed:
            raise fenced(metadata.ledger, metadata.member_record.promised)

    def _check_failure(self, metadata: LedgerMetadata) -> None:
        if self._failure is not None:
            raise ArchiveError(f"cannot mirror ledger {metadata.ledger}: {self._failure}")

    # ---- the replication ----------------------------------------------------------------------

    def on_subscribed(self, subscription_id: int) -> None:
        """Store the id of the subscription to the replay."""
        self._subscriptions.add(subscription_id)

    def on_failed(self, error_code: int, message: str) -> None:
        """Store why it has ended."""
        self._failure = message

    def on_signal(
        self, recording_id: int, subscription_id: int, position: int, signal: RecordingSignal
    ) -> None:
        """Store its progress."""
        if signal in (RecordingSignal.REPLICATE, RecordingSignal.EXTEND):
            self.recording_id = recording_id
        if signal is RecordingSignal.EXTEND:
            self._is_begun = True
        if signal is RecordingSignal.REPLICATE_END:
            self._is_done = True
