"""The ledgers that this archive mirrors: replications of the recordings of their leaders.

After a crash of the leader, entries that were not confirmed may differ between leader and mirror. A
mirror that connects again therefore truncates its recording first: to the last add confirmed (LAC)
in its own entries, or to the confirmed position that the leader sent, whichever is higher. Entries
up to there are on the leader's storage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aerotape.archive.background_tasks import outcome
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import ArchiveError
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.background_tasks import Task
    from aerotape.archive.ledger.entry_lookup import LedgerRecording
    from aerotape.archive.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.recording.segments.deletion import Deletion
    from aerotape.archive.replication.replications import Replications
    from aerotape.qualified_id import QualifiedId

Truncate = Callable[[int, int], "Deletion"]
"""Ends a recording at a position."""


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """The recording that a mirror replicates.

    Attributes:
        control_channel: of the leader.
        control_stream_id: of the leader.
        recording_id: in the leader.
        confirmed_position: what the leader knows to be confirmed, bytes; -1: nothing.
    """

    control_channel: str
    control_stream_id: int
    recording_id: int
    confirmed_position: int


class Follower:
    """Observes one replication.

    Attributes:
        correlation_id: the id of the replication.
        recording_id: in this archive, NULL_VALUE before there is one.
        is_begun: whether the recording has begun.
        is_done: whether the replication has ended.
        failure: the error that ended it.
    """

    session_id = NULL_VALUE

    def __init__(self, replication_id: int, recording_id: int) -> None:
        self.correlation_id = replication_id
        self.recording_id = recording_id
        self.is_begun = False
        self.is_done = False
        self.failure: str | None = None

    def on_subscribed(self, subscription_id: int) -> None:
        """Ignore the id of the subscription to the replay."""

    def on_failed(self, error_code: int, message: str) -> None:
        """Store why it has ended."""
        self.failure = message

    def on_signal(
        self, recording_id: int, subscription_id: int, position: int, signal: RecordingSignal
    ) -> None:
        """Store its progress."""
        if signal in (RecordingSignal.REPLICATE, RecordingSignal.EXTEND):
            self.recording_id = recording_id
        if signal is RecordingSignal.EXTEND:
            self.is_begun = True
        if signal is RecordingSignal.REPLICATE_END:
            self.is_done = True


class Followers:
    """All ledgers that are being mirrored. For the conductor's thread."""

    def __init__(
        self,
        replications: Replications,
        worker: LedgerWorker,
        truncate: Truncate,
        settled: Callable[[LedgerMetadata], Task[LedgerRecording]],
    ) -> None:
        """Create the service, without any replication.

        Args:
            settled: waits until the recording of a ledger has stopped and is on storage.
        """
        self._replications = replications
        self._worker = worker
        self._truncate = truncate
        self._settled = settled
        self._followers: dict[QualifiedId, Follower] = {}

    def follow(self, metadata: LedgerMetadata, source: MirrorSource, *, is_new: bool) -> Task[None]:
        """Replicate from the leader, from where the recording of the ledger is common to both.

        Ends once the recording has begun. A replication of the ledger in progress ends before.

        Args:
            is_new: the ledger is not in the database yet; it is added with its recording.

        Raises:
            ArchiveError: the replication has failed.
        """
        ledger, recording_id = metadata.ledger, metadata.recording_id
        self.stop(ledger)
        if recording_id != NULL_VALUE:
            yield from self._cut(metadata, source.confirmed_position)
        replication_id = self._replications.next_id()
        follower = self._followers[ledger] = Follower(replication_id, recording_id)
        request = ReplicationRequest(
            src_recording_id=source.recording_id,
            src_control_channel=source.control_channel,
            src_control_stream_id=source.control_stream_id,
            dst_recording_id=recording_id,
            durability=metadata.durability,
            is_mirroring=True,
        )
        self._replications.start(replication_id, follower, request)
        while not (follower.is_begun or follower.is_done):
            yield
            if follower.recording_id != recording_id:
                recording_id = follower.recording_id
                yield from self._worker.set_recording(metadata, recording_id, is_new=is_new)
        if follower.failure is not None:
            raise ArchiveError(f"cannot mirror ledger {ledger}: {follower.failure}")

    def stop(self, ledger: QualifiedId) -> None:
        """End the replication of a ledger. Idempotent."""
        follower = self._followers.pop(ledger, None)
        if follower is not None and not follower.is_done:
            self._replications.stop(follower.correlation_id)

    def _cut(self, metadata: LedgerMetadata, confirmed_position: int) -> Task[None]:
        recording = yield from self._settled(metadata)
        stop_position = recording.descriptor.stop_position
        carried = yield from self._worker.call(lambda: recording.carried_end(stop_position))
        position = max(carried, confirmed_position)
        if position < stop_position:
            try:
                yield from outcome(self._truncate(metadata.recording_id, position).deleted)
            except ArchiveError as error:
                raise ArchiveError(
                    f"cannot mirror ledger {metadata.ledger}: {error}", error.error_code
                ) from error
