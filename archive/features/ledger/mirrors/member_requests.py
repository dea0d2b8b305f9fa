"""The requests of other archives that store the same ledgers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.metadata import LedgerMetadata, fenced
from aerotape.archive.features.ledger.mirrors.follower import Followers, MirrorSource, check_same
from aerotape.archive.features.ledger.protocol.member_record import NO_EPOCH, UNKNOWN
from aerotape.archive.features.ledger.role import Idle
from aerotape.archive.features.ledger.status import descriptor_message
from aerotape.errors import LedgerExistsError, UnknownLedgerError
from aerotape.protocol import NULL_VALUE
from aerotape.waiting import Pause, Task

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.ledgers import Ledgers


class MemberRequests:
    """The steps that other members of a ledger request, as tasks. For the conductor's thread.

    `theirs` is the ledger as the other archive has it.
    """

    def __init__(
        self, ledgers: Ledgers, worker: LedgerWorker, followers: Followers, archive_id: int
    ) -> None:
        """Create the service.

        Args:
            archive_id: of this archive.
        """
        self._ledgers = ledgers
        self._worker = worker
        self._followers = followers
        self._archive_id = archive_id

    def promise(self, theirs: LedgerMetadata, *, is_stored: bool) -> Task[None]:
        """Promise the epoch of another archive, and stop what is done in a lower one.

        Args:
            theirs: of the ledger, as the other archive has it; the epoch is
                `member_record.promised`.
            is_stored: whether this archive stops to follow a leader, and adds a ledger that is not
                known here.

        Raises:
            LedgerClosedError: a higher epoch has been promised.
            LedgerError: this archive has another ledger with this id.
        """
        ledger, epoch = self._ledgers.of(theirs.ledger), theirs.member_record.promised
        try:
            known = yield from ledger.stored()
        except UnknownLedgerError:
            if is_stored:
                new = replace(theirs, member_record=theirs.member_record.join())
                yield from self._worker.change(lambda store: store.add(new))
            return
        check_same(known, theirs)
        stored = yield from self._worker.promise(ledger.id, epoch, theirs.member_record.own)
        if stored.promised != epoch:
            raise fenced(ledger.id, stored.promised)
        # Whatever this archive leads, it does in a lower epoch.
        ledger.depose()
        if is_stored:
            ledger.become(Idle())

    def send_state(
        self, client: ControlSession, correlation_id: int, theirs: LedgerMetadata
    ) -> Task[None]:
        """Send the state of this archive, also of a ledger that it does not know."""
        ledger = self._ledgers.of(theirs.ledger)
        try:
            metadata = yield from ledger.stored()
        except UnknownLedgerError:
            metadata = replace(theirs, member_record=replace(UNKNOWN, own=theirs.member_record.own))
        else:
            forgets = metadata.may_have_forgotten
            stored = replace(metadata.member_record, forgets=forgets)
            metadata = replace(metadata, member_record=stored)
        status = replace(
            ledger.positions(metadata), recorded_position=ledger.log.end(metadata)
        )
        client.send(
            descriptor_message(
                client.session_id, correlation_id, metadata, status, archive_id=self._archive_id
            )
        )

    def create_mirror(
        self, client: ControlSession, correlation_id: int, theirs: LedgerMetadata
    ) -> Task[None]:
        """Add a ledger that another archive creates, and send the state of this archive.

        Raises:
            LedgerExistsError: this archive has the ledger already.
            LedgerError: this archive has another ledger with this id.
        """
        ledger = self._ledgers.of(theirs.ledger)
        new = replace(theirs, member_record=theirs.member_record.create())
        try:
            known = yield from ledger.stored()
        except UnknownLedgerError:
            yield from self._worker.add(new)
        else:
            check_same(known, theirs)
            if not self._is_creation(known, theirs):
                raise LedgerExistsError(
                    f"the mirror has ledger {ledger} already: choose another id, or delete it in"
                    " the mirror's archive",
                    ledger.id,
                )
        yield from self.send_state(client, correlation_id, theirs)

    def discard_mirror(
        self, client: ControlSession, correlation_id: int, theirs: LedgerMetadata
    ) -> Task[None]:
        """Remove a ledger that another archive has begun to create; send the state then."""
        with suppress(UnknownLedgerError):
            ledger = self._ledgers.of(theirs.ledger)
            known = yield from ledger.stored()
            if self._is_creation(known, theirs):
                yield from ledger.remove(known)
        yield from self.send_state(client, correlation_id, theirs)

    @staticmethod
    def _is_creation(known: LedgerMetadata, theirs: LedgerMetadata) -> bool:
        """Whether a ledger is here by the same creation, and nothing has followed."""
        member_record = known.member_record
        return (
            member_record.promised == theirs.member_record.promised
            and member_record.adopted == NO_EPOCH
            and known.recording_id == NULL_VALUE
        )

    def send_settled_state(
        self, client: ControlSession, correlation_id: int, theirs: LedgerMetadata
    ) -> Task[None]:
        """Send the state of this archive once its log has stopped, and is on storage."""
        ledger = self._ledgers.of(theirs.ledger)
        metadata = yield from ledger.stored()
        while ledger.log.writer is not None:
            yield Pause()
        yield from ledger.await_ended()
        if metadata.recording_id != NULL_VALUE:
            yield from ledger.log.await_durable_end(metadata)
        yield from self.send_state(client, correlation_id, theirs)

    def follow(
        self,
        client: ControlSession,
        correlation_id: int,
        theirs: LedgerMetadata,
        source: MirrorSource,
    ) -> Task[int]:
        """Replicate a ledger that another archive leads; return the recording once it has begun."""
        ledger = self._ledgers.of(theirs.ledger)
        leader = client, correlation_id
        return (yield from self._followers.follow(ledger, theirs, source, leader))

    def adopt(self, theirs: LedgerMetadata, position: int, *, is_closed: bool) -> Task[int]:
        """Store that this archive has the log of the leader up to a position, bytes.

        Returns:
            Up to where it is on storage, bytes.
        """
        ledger = self._ledgers.of(theirs.ledger)
        metadata = yield from ledger.stored()
        return (
            yield from self._followers.adopt(
                ledger, metadata, theirs.member_record, position, is_closed=is_closed
            )
        )
