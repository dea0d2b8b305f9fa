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
from aerotape.archive.features.ledger.mirrors.following import Following
from aerotape.archive.features.ledger.protocol.logs import kept_end, stays_closed
from aerotape.archive.features.ledger.protocol.member_record import (
    UNKNOWN,
    MemberRecord,
    MemberState,
)
from aerotape.archive.features.ledger.role import Idle
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.codecs.generated.ledger_control import LedgerState
from aerotape.errors import (
    LedgerClosedError,
    LedgerError,
    LedgerInUseError,
    UnknownLedgerError,
)
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.waiting import Pause

if TYPE_CHECKING:
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.ledger import Ledger
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.following import LeaderRequest
    from aerotape.archive.replication.replications import Replications
    from aerotape.client.credentials import Login
    from aerotape.waiting import Task


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """The recording that a mirror replicates.

    Attributes:
        control_channel: of the other archive.
        control_stream_id: of the other archive.
        recording_id: in the other archive.
        end: of that recording when it was requested, bytes.
        member_record: what this archive has to store.
    """

    control_channel: str
    control_stream_id: int
    recording_id: int
    end: int
    member_record: MemberRecord


class Followers:
    """Follows the leaders of ledgers, and copies logs. For the conductor's thread."""

    def __init__(
        self,
        replications: Replications,
        login: Callable[[], Login] | None,
        worker: LedgerWorker,
        errors: ErrorLog,
    ) -> None:
        """Create the service.

        Args:
            login: as in ReplicationRequest.
        """
        self._errors = errors
        self._replications = replications
        self._login = login
        self._worker = worker

    def follow(
        self, ledger: Ledger, theirs: LedgerMetadata, source: MirrorSource, leader: LeaderRequest
    ) -> Task[int]:
        """Replicate a ledger from its leader, from where the recordings of both part.

        Ends once the recording has begun. A replication of the ledger in progress ends before.

        Args:
            ledger: that no other task changes.
            theirs: its metadata, as the leader sent it; a new ledger is added with it.
            leader: its session and request.

        Returns:
            The recording in this archive.

        Raises:
            LedgerError: this archive has a ledger with this id that cannot follow the leader's.
            LedgerClosedError: this archive has promised a higher epoch.
            ArchiveError: the replication has failed.
        """
        try:
            known = yield from ledger.metadata()
        except UnknownLedgerError:
            followed = UNKNOWN.follow(source.member_record)
            known, is_new = replace(theirs, member_record=followed), True
            yield from self._worker.create()
        else:
            is_new = False
            check_same(known, theirs)
        while (writer := ledger.log.writer) is not None:
            if not writer.failure:
                raise LedgerInUseError.of_ledger(ledger.id)
            yield Pause()
        following = Following(self._replications, leader)
        ledger.become(following)
        try:
            yield from ledger.await_ended()
            return (yield from self._follow(ledger, following, known, theirs, source, is_new))
        except Exception:
            following.close()
            raise

    def _follow(
        self,
        ledger: Ledger,
        following: Following,
        known: LedgerMetadata,
        theirs: LedgerMetadata,
        source: MirrorSource,
        is_new: bool,
    ) -> Task[int]:
        if known.member_record.is_decided:
            return self._decided(ledger, known, source)
        if not is_new:
            other = MemberState(source.member_record, source.end)
            if known.member_record.promised > source.member_record.promised:
                raise fenced(ledger.id, known.member_record.promised)
            known = yield from self._cut(ledger, known, other)
            member_record = known.member_record.follow(source.member_record)
            quorums = theirs.write_quorum, theirs.ack_quorum
            known = replace(known, member_record=member_record)
            is_closed = known.is_closed
            yield from ledger.log.store_member_record(known, member_record, is_closed=is_closed)
            yield from self._worker.change(lambda store: store.set_quorums(ledger.id, *quorums))
        if source.recording_id == NULL_VALUE:
            if is_new:
                yield from self._worker.change(lambda store: store.add(known))
                ledger.retain()
            return NULL_VALUE
        recording_id = yield from self._replicate(following, known, source, is_new=is_new)
        ledger.retain()
        ledger.log.forget_durable_end(replace(known, recording_id=recording_id))
        return recording_id

    def take_over(
        self, ledger: Ledger, metadata: LedgerMetadata, best: MemberState, stream_id: int
    ) -> Task[LedgerMetadata]:
        """Replace the log of this archive by that of another member, which is longer or newer.

        Args:
            ledger: that no other task changes.
            metadata: of the ledger, whose recording has stopped.
            best: of the other member, with its control channel; its recording has stopped.
            stream_id: the control stream of the other archive.

        Returns:
            The metadata with the recording, all of which is on storage.

        Raises:
            LedgerError: the other log lacks entries, or has not arrived whole.
            ArchiveError: the replication has failed.
        """
        log = ledger.log
        metadata = yield from self._cut(ledger, metadata, best)
        member_record = replace(metadata.member_record, history=best.member_record.history)
        metadata = replace(metadata, member_record=member_record)
        yield from log.store_member_record(metadata, member_record, is_closed=metadata.is_closed)
        source = MirrorSource(
            best.member_record.own, stream_id, best.recording_id, best.end, best.member_record
        )
        if log.end(metadata) < best.end:
            copying = Following(self._replications)
            ledger.become(copying)
            try:
                recording_id = yield from self._replicate(copying, metadata, source, is_new=False)
                metadata = replace(metadata, recording_id=recording_id)
                log.forget_durable_end(metadata)
                yield from copying.await_copied(metadata)
            finally:
                ledger.become(Idle())
            yield from ledger.await_ended()
            yield from log.await_durable_end(metadata)
        if log.end(metadata) != best.end:
            raise LedgerError(
                f"ledger {ledger.id} was not copied whole from {best.member_record.own}: up to"
                f" position {log.end(metadata)} of {best.end}: try again",
                ledger.id,
            )
        return metadata

    def adopt(
        self,
        ledger: Ledger,
        metadata: LedgerMetadata,
        member_record: MemberRecord,
        position: int,
        *,
        is_closed: bool,
    ) -> Task[int]:
        """Store that this archive has the log of its leader on storage up to a position.

        Args:
            ledger: that no other task changes.
            metadata: of the ledger, which this archive follows.
            member_record: what to store.
            position: how far the leader's recording was when this archive began to follow; the end
                of the recording if the ledger is closed.
            is_closed: whether to close the ledger.

        Returns:
            Up to where the recording is on storage, bytes.

        Raises:
            LedgerError: it is not up to there.
            LedgerClosedError: this archive has promised a higher epoch.
        """
        log = ledger.log
        if metadata.member_record.is_decided:
            if position <= (end := log.end(metadata)):
                return end
            raise LedgerClosedError(f"ledger {ledger.id} is closed at position {end}", ledger.id)
        if is_closed:
            yield from ledger.role.await_copied(metadata)
        if log.session(metadata.recording_id) is not None and not is_closed:
            synced = yield from log.sync(metadata)
        elif metadata.recording_id != NULL_VALUE:
            yield from log.await_durable_end(metadata)
            synced = log.end(metadata)
        else:
            synced = 0
        if synced < position or (is_closed and synced != position):
            raise LedgerError(
                f"ledger {ledger.id} is on storage up to position {synced}, not {position}",
                ledger.id,
            )
        stored = replace(member_record, boot=boot_id(), forgets=False)
        yield from log.store_member_record(metadata, stored, is_closed=is_closed, forced=synced)
        return synced

    @staticmethod
    def _decided(ledger: Ledger, known: LedgerMetadata, source: MirrorSource) -> int:
        """Return the recording of a ledger whose end is decided (LedgerError: not the leader's)."""
        end = ledger.log.end(known)
        if end != source.end:
            raise LedgerError(
                f"ledger {known.ledger} is closed at position {end}, and its leader's log ends at"
                f" {source.end}",
                known.ledger,
            )
        return known.recording_id

    def _cut(
        self, ledger: Ledger, metadata: LedgerMetadata, other: MemberState
    ) -> Task[LedgerMetadata]:
        """Truncate a recording to where it parts from another log; return the ledger then.

        If no epoch shows that, it is where the confirmed entries of this archive end. The ledger is
        open, unless both logs are the same.

        Raises:
            LedgerError: the other log lacks confirmed entries; nothing is truncated.
        """
        if metadata.recording_id == NULL_VALUE:
            return metadata if metadata.is_closed and other.end == 0 else _opened(metadata, 0)
        recording = yield from ledger.log.await_durable_end(metadata)
        end = recording.descriptor.stop_position
        carried = yield from self._worker.call(lambda: recording.confirmed_end(end))
        own = MemberState(metadata.member_record, end, metadata.is_closed)
        position = kept_end(own, carried, other)
        if position is None:
            lost = LedgerError(
                f"cannot mirror ledger {ledger.id}: its leader has lost entries: the logs part"
                f" before position {carried}, up to which entries are confirmed: restore the"
                " leader's directory, or recover the ledger in a mirror",
                ledger.id,
            )
            self._errors.record("mirror of a ledger failed", lost)
            raise lost
        if position < end:
            yield from ledger.log.truncate(metadata, position)
        if stays_closed(own, position, other):
            return metadata
        return _opened(metadata, position)

    def _replicate(
        self, following: Following, metadata: LedgerMetadata, source: MirrorSource, *, is_new: bool
    ) -> Task[int]:
        """Replicate until the recording has begun; return it.

        Args:
            is_new: the ledger is not in the database yet; it is added with its recording.
        """
        request = ReplicationRequest(
            src_recording_id=source.recording_id,
            src_control_channel=source.control_channel,
            src_control_stream_id=source.control_stream_id,
            dst_recording_id=metadata.recording_id,
            durability=metadata.durability,
            login=self._login,
        )

        def store(recording_id: int) -> Task[None]:
            return self._worker.set_recording(metadata, recording_id, is_new=is_new)

        return (yield from following.replicate(metadata, request, store))


def _opened(metadata: LedgerMetadata, end: int) -> LedgerMetadata:
    """Reopen a ledger whose log goes on at a position with that of another member."""
    return replace(
        metadata,
        member_record=metadata.member_record.cut(end),
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
        member_record=theirs.member_record,
    )
    if not known.member_record.groups:
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
