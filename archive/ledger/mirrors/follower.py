"""The ledgers that this archive mirrors: replications of the recordings of their leaders.

After a crash of the leader, entries that were not confirmed may differ between leader and mirror. A
mirror that connects again therefore truncates its recording first: to the last add confirmed (LAC)
in its own entries, or to the confirmed position that the leader sent, whichever is higher. Entries
up to there are on the leader's storage; a leader that has lost them is not followed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from aerotape.archive.replication.request import ReplicationRequest
from aerotape.archive.waiting import Pause
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import (
    ArchiveError,
    LedgerClosedError,
    LedgerError,
    LedgerInUseError,
    UnknownLedgerError,
)
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.ledger.ledger_recordings import LedgerRecordings
    from aerotape.archive.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.replication.replications import Replications
    from aerotape.archive.waiting import Task
    from aerotape.qualified_id import QualifiedId


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """The recording that a mirror replicates.

    Attributes:
        control_channel: of the leader.
        control_stream_id: of the leader.
        recording_id: in the leader.
        confirmed_position: what the leader knows to be confirmed, bytes; -1: nothing.
        recorded_position: the end of that recording, bytes; None: a leader of an earlier version.
    """

    control_channel: str
    control_stream_id: int
    recording_id: int
    confirmed_position: int
    recorded_position: int | None = None


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
        recordings: LedgerRecordings,
        worker: LedgerWorker,
        errors: ErrorLog,
    ) -> None:
        """Create the service, without any replication."""
        self._errors = errors
        self._replications = replications
        self._recordings = recordings
        self._worker = worker
        self._followers: dict[QualifiedId, Follower] = {}

    def follow(self, metadata: LedgerMetadata, source: MirrorSource) -> Task[int]:
        """Replicate a ledger from its leader, from where the recordings of both are the same.

        Ends once the recording has begun. A replication of the ledger in progress ends before.

        Args:
            metadata: of the ledger, as the leader sent it; a new ledger is added with it.

        Returns:
            The recording in this archive.

        Raises:
            LedgerError: this archive has a ledger with this id that cannot follow the leader's.
            ArchiveError: the replication has failed.
        """
        ledger = metadata.ledger
        try:
            known = yield from self._recordings.metadata(ledger)
        except UnknownLedgerError:
            known, is_new = metadata, True
            yield from self._worker.create()
        else:
            is_new = False
            _check_same(known, metadata)
        if self._recordings.writer(ledger) is not None:
            raise LedgerInUseError.of_ledger(ledger)
        self.stop(ledger)
        if known.recording_id != NULL_VALUE:
            yield from self._cut(known, source)
        recording_id = yield from self._replicate(known, source, is_new=is_new)
        self._recordings.expect_writes(recording_id)
        return recording_id

    def stop(self, ledger: QualifiedId) -> None:
        """End the replication of a ledger. Idempotent."""
        follower = self._followers.pop(ledger, None)
        if follower is not None and not follower.is_done:
            self._replications.stop(follower.correlation_id)

    def _cut(self, metadata: LedgerMetadata, source: MirrorSource) -> Task[None]:
        """Truncate a recording to what is known to be confirmed, if the leader has that."""
        recording = yield from self._recordings.settle(metadata)
        stop_position = recording.descriptor.stop_position
        carried = yield from self._worker.call(lambda: recording.carried_end(stop_position))
        if source.recorded_position is not None and source.recorded_position < carried:
            lost = LedgerError(
                f"cannot mirror ledger {metadata.ledger}: its leader has lost entries: the leader's"
                f" recording ends at position {source.recorded_position}, and entries up to"
                f" {carried} are confirmed: restore the leader's directory, or recover the ledger"
                " in a mirror",
                metadata.ledger,
            )
            self._errors.record("mirror of a ledger failed", lost)
            raise lost
        position = max(carried, source.confirmed_position)
        if position < stop_position:
            yield from self._recordings.truncate(metadata, position)

    def _replicate(
        self, metadata: LedgerMetadata, source: MirrorSource, *, is_new: bool
    ) -> Task[int]:
        """Replicate until the recording has begun; return it.

        Args:
            is_new: the ledger is not in the database yet; it is added with its recording.
        """
        ledger, recording_id = metadata.ledger, metadata.recording_id
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
            yield Pause()
            if follower.recording_id != recording_id:
                recording_id = follower.recording_id
                yield from self._worker.set_recording(metadata, recording_id, is_new=is_new)
        if follower.failure is not None:
            raise ArchiveError(f"cannot mirror ledger {ledger}: {follower.failure}")
        return recording_id


def _check_same(known: LedgerMetadata, led: LedgerMetadata) -> None:
    """Refuse to follow a ledger with other metadata than this archive has (LedgerError)."""
    ledger = known.ledger
    if known.is_closed:
        raise LedgerClosedError(f"ledger {ledger} is closed in its mirror", ledger)
    same = replace(known, recording_id=NULL_VALUE, created_ms=led.created_ms)
    if same == led:
        return
    different = ", ".join(
        each.name.replace("_", " ")
        for each in fields(led)
        if getattr(same, each.name) != getattr(led, each.name)
    )
    raise LedgerError(
        f"the mirror has a ledger {ledger} of another kind ({different}) already: delete it in the"
        " mirror's archive",
        ledger,
    )
