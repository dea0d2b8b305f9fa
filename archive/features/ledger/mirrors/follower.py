"""The ledgers that this archive mirrors: replications of the recordings of their leaders.

Two members may have different entries after the last common one, which no quorum has confirmed. A
member that follows a leader, or takes over the log of another member, first truncates its recording
to where the two logs part (`logs.common_end`): never below the last add confirmed (LAC) in its own
entries. A member whose log lacks confirmed entries is not followed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.metadata import fenced
from aerotape.archive.features.ledger.protocol.logs import kept_end, stays_closed
from aerotape.archive.features.ledger.protocol.replica import UNKNOWN, MemberState, Replica
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.codecs.generated.ledger_control import LedgerState
from aerotape.errors import (
    ArchiveError,
    LedgerClosedError,
    LedgerError,
    LedgerInUseError,
    UnknownLedgerError,
)
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.ledger_recordings import LedgerRecordings
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.replication.replications import Replications
    from aerotape.client.credentials import Login
    from aerotape.qualified_id import QualifiedId
    from aerotape.waiting import Task


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """The recording that a mirror replicates.

    Attributes:
        control_channel: of the other archive.
        control_stream_id: of the other archive.
        recording_id: in the other archive.
        end: of that recording when it was requested, bytes.
        replica: what this archive has to store.
    """

    control_channel: str
    control_stream_id: int
    recording_id: int
    end: int
    replica: Replica


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
        login: Callable[[], Login] | None,
        recordings: LedgerRecordings,
        worker: LedgerWorker,
        errors: ErrorLog,
    ) -> None:
        """Create the service, without any replication."""
        self._errors = errors
        self._replications = replications
        self._login = login
        self._recordings = recordings
        self._worker = worker
        self._followers: dict[QualifiedId, Follower] = {}
        # The sessions of the leaders, and the ids of their requests to follow.
        self._leaders: dict[QualifiedId, tuple[ControlSession, int]] = {}

    def follow(self, theirs: LedgerMetadata, source: MirrorSource) -> Task[int]:
        """Replicate a ledger from its leader, from where the recordings of both part.

        Ends once the recording has begun. A replication of the ledger in progress ends before.

        Args:
            theirs: of the ledger, as the leader sent it; a new ledger is added with it.

        Returns:
            The recording in this archive.

        Raises:
            LedgerError: this archive has a ledger with this id that cannot follow the leader's.
            LedgerClosedError: this archive has promised a higher epoch.
            ArchiveError: the replication has failed.
        """
        ledger = theirs.ledger
        try:
            known = yield from self._recordings.metadata(ledger)
        except UnknownLedgerError:
            known, is_new = replace(theirs, replica=UNKNOWN.follow(source.replica)), True
            yield from self._worker.create()
        else:
            is_new = False
            check_same(known, theirs)
        while (writer := self._recordings.writer(ledger)) is not None:
            if not writer.failure:
                raise LedgerInUseError.of_ledger(ledger)
            yield Pause()
        self.stop(ledger)
        if known.replica.is_decided:
            return self._decided(known, source)
        if not is_new:
            other = MemberState(source.replica, source.end)
            if known.replica.promised > source.replica.promised:
                raise fenced(ledger, known.replica.promised)
            known = yield from self._cut(known, other)
            replica = known.replica.follow(source.replica)
            quorums = theirs.write_quorum, theirs.ack_quorum
            known = replace(known, replica=replica)
            is_closed = known.is_closed
            yield from self._recordings.store_replica(known, replica, is_closed=is_closed)
            yield from self._worker.change(lambda store: store.set_quorums(ledger, *quorums))
        if source.recording_id == NULL_VALUE:
            if is_new:
                yield from self._worker.change(lambda store: store.add(known))
            return NULL_VALUE
        recording_id = yield from self._replicate(known, source, is_new=is_new)
        self._recordings.forget_durable_end(replace(known, recording_id=recording_id))
        return recording_id

    def take_over(
        self, metadata: LedgerMetadata, best: MemberState, stream_id: int
    ) -> Task[LedgerMetadata]:
        """Replace the log of this archive by that of another member, which is longer or newer.

        Args:
            metadata: of the ledger, whose recording has stopped.
            best: of the other member, with its control channel; its recording has stopped.
            stream_id: the control stream of the other archive.

        Returns:
            The metadata with the recording, all of which is on storage.

        Raises:
            LedgerError: the other log lacks entries, or has not arrived whole.
            ArchiveError: the replication has failed.
        """
        ledger = metadata.ledger
        metadata = yield from self._cut(metadata, best)
        replica = replace(metadata.replica, history=best.replica.history)
        metadata = replace(metadata, replica=replica)
        yield from self._recordings.store_replica(metadata, replica, is_closed=metadata.is_closed)
        source = MirrorSource(
            best.replica.own, stream_id, best.recording_id, best.end, best.replica
        )
        if self._recordings.end(metadata) < best.end:
            try:
                recording_id = yield from self._replicate(metadata, source, is_new=False)
                metadata = replace(metadata, recording_id=recording_id)
                self._recordings.forget_durable_end(metadata)
                yield from self._await_end(ledger)
            finally:
                self.stop(ledger)
            yield from self._recordings.await_durable_end(metadata)
        if self._recordings.end(metadata) != best.end:
            raise LedgerError(
                f"ledger {ledger} was not copied whole from {best.replica.own}: up to position"
                f" {self._recordings.end(metadata)} of {best.end}: try again",
                ledger,
            )
        return metadata

    def adopt(
        self, metadata: LedgerMetadata, replica: Replica, position: int, *, is_closed: bool
    ) -> Task[int]:
        """Store that this archive has the log of its leader on storage up to a position.

        Args:
            metadata: of the ledger, which this archive follows.
            replica: what to store.
            position: how far the leader's recording was when this archive began to follow; the end
                of the recording if the ledger is closed.
            is_closed: whether to close the ledger.

        Returns:
            Up to where the recording is on storage, bytes.

        Raises:
            LedgerError: it is not up to there.
            LedgerClosedError: this archive has promised a higher epoch.
        """
        ledger = metadata.ledger
        if metadata.replica.is_decided:
            if position <= (end := self._recordings.end(metadata)):
                return end
            raise LedgerClosedError(f"ledger {ledger} is closed at position {end}", ledger)
        if is_closed:
            yield from self._await_end(ledger)
        if self._recordings.session(metadata.recording_id) is not None and not is_closed:
            synced = yield from self._recordings.sync(metadata)
        elif metadata.recording_id != NULL_VALUE:
            yield from self._recordings.await_durable_end(metadata)
            synced = self._recordings.end(metadata)
        else:
            synced = 0
        if synced < position or (is_closed and synced != position):
            raise LedgerError(
                f"ledger {ledger} is on storage up to position {synced}, not {position}", ledger
            )
        stored = replace(replica, boot=boot_id(), forgets=False)
        yield from self._recordings.store_replica(
            metadata, stored, is_closed=is_closed, forced=synced
        )
        return synced

    def attach(self, ledger: QualifiedId, leader: ControlSession, correlation_id: int) -> None:
        """Note by which request of its leader a ledger is followed, until `stop`."""
        self._leaders[ledger] = leader, correlation_id

    def is_attached(self, ledger: QualifiedId, leader: ControlSession, correlation_id: int) -> bool:
        """Whether a ledger is followed by this request."""
        return self._leaders.get(ledger) == (leader, correlation_id)

    def stop(self, ledger: QualifiedId) -> None:
        """End the replication of a ledger. Idempotent."""
        self._leaders.pop(ledger, None)
        follower = self._followers.pop(ledger, None)
        if follower is not None and not follower.is_done:
            self._replications.stop(follower.correlation_id)

    def _decided(self, known: LedgerMetadata, source: MirrorSource) -> int:
        """Return the recording of a ledger whose end is decided (LedgerError: not the leader's)."""
        end = self._recordings.end(known)
        if end != source.end:
            raise LedgerError(
                f"ledger {known.ledger} is closed at position {end}, and its leader's log ends at"
                f" {source.end}",
                known.ledger,
            )
        return known.recording_id

    def _cut(self, metadata: LedgerMetadata, other: MemberState) -> Task[LedgerMetadata]:
        """Truncate a recording to where it parts from another log; return the ledger then.

        If no epoch shows that, it is where the confirmed entries of this archive end. The ledger is
        open, unless both logs are the same.

        Raises:
            LedgerError: the other log lacks confirmed entries; nothing is truncated.
        """
        ledger = metadata.ledger
        if metadata.recording_id == NULL_VALUE:
            return metadata if metadata.is_closed and other.end == 0 else _opened(metadata, 0)
        recording = yield from self._recordings.await_durable_end(metadata)
        end = recording.descriptor.stop_position
        carried = yield from self._worker.call(lambda: recording.confirmed_end(end))
        own = MemberState(metadata.replica, end, metadata.is_closed)
        position = kept_end(own, carried, other)
        if position is None:
            lost = LedgerError(
                f"cannot mirror ledger {ledger}: its leader has lost entries: the logs part before"
                f" position {carried}, up to which entries are confirmed: restore the leader's"
                " directory, or recover the ledger in a mirror",
                ledger,
            )
            self._errors.record("mirror of a ledger failed", lost)
            raise lost
        if position < end:
            yield from self._recordings.truncate(metadata, position)
        if stays_closed(own, position, other):
            return metadata
        return _opened(metadata, position)

    def _await_end(self, ledger: QualifiedId) -> Task[None]:
        """Wait until the replication of a ledger has ended, if there is one (ArchiveError)."""
        follower = self._followers.get(ledger)
        while follower is not None and not follower.is_done:
            yield Pause()
            if self._followers.get(ledger) is not follower:
                raise ArchiveError(f"ledger {ledger} is no longer copied: try again")
        if follower is not None and follower.failure is not None:
            raise ArchiveError(f"cannot mirror ledger {ledger}: {follower.failure}")

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
            login=self._login,
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


def _opened(metadata: LedgerMetadata, end: int) -> LedgerMetadata:
    """Reopen a ledger whose log goes on at a position with that of another member."""
    return replace(
        metadata,
        replica=metadata.replica.cut(end),
        state=LedgerState.OPEN,
        last_entry_id=NULL_VALUE,
        length=0,
        end_position=NULL_POSITION,
    )


def check_same(known: LedgerMetadata, theirs: LedgerMetadata) -> None:
    """Refuse to follow a ledger with other metadata than this archive has (LedgerError)."""
    same = replace(
        _opened(known, 0),
        recording_id=NULL_VALUE,
        created_ms=theirs.created_ms,
        replica=theirs.replica,
    )
    if not known.replica.groups:
        # It does not know them yet.
        same = replace(same, write_quorum=theirs.write_quorum, ack_quorum=theirs.ack_quorum)
    if same == theirs:
        return
    different = ", ".join(
        each.name.replace("_", " ")
        for each in fields(theirs)
        if getattr(same, each.name) != getattr(theirs, each.name)
    )
    raise LedgerError(
        f"the mirror has a ledger {known.ledger} of another kind ({different}) already: delete it"
        " in the mirror's archive",
        known.ledger,
    )
