"""The role of an archive in one of its ledgers: it leads it, follows its leader, or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.metadata import fenced

if TYPE_CHECKING:
    from aerotape.archive.control.control_session import ControlSession
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.status import LedgerStatus
    from aerotape.archive.features.ledger.writer_recording import WriterRecording
    from aerotape.waiting import Task


class Role:
    """The role of an archive in a ledger; this one has no work. For the conductor's thread.

    `Leading` and `Following` are the others. Without mirrors a ledger is always `Idle`: positions
    are those of this archive, and there is nothing to wait for.

    Attributes:
        is_leading: whether this archive leads the ledger.
        is_connected: whether it has connected to the mirrors for that.
        can_close: whether it is connected to a quorum, and all mirrors are not at the end yet.
        is_active: whether it has work to do.
        has_ended: whether it changes the log no more, after `close`.
    """

    is_leading = False
    is_connected = False
    can_close = False
    is_active = False
    has_ended = True

    def do_work(self) -> None:
        """Do one duty cycle."""

    def close(self) -> None:
        """End the role and cancel its tasks. Idempotent."""

    # ---- positions ----------------------------------------------------------------------------

    def confirmed(self, own: int) -> int:
        """Return up to where a quorum has synced the log; `own`: this archive has. Both bytes."""
        return own

    def recorded(self, own: int) -> int:
        """Return the position up to which a quorum has recorded the log; `own`: this archive."""
        return own

    def status(self, own: LedgerStatus) -> LedgerStatus:
        """Return a status of this archive's recording with what a quorum has confirmed."""
        return own

    # ---- steps of a leader --------------------------------------------------------------------

    def is_prepared(self, metadata: LedgerMetadata) -> bool:
        """Whether this archive leads an open ledger, with nothing in the log yet of its epoch."""
        return False

    def start(self, writer: WriterRecording) -> Task[None]:
        """Connect to the mirrors for a writer; wait for those that are necessary.

        Raises:
            LedgerFencedError: this archive does not lead the ledger any more.
            LedgerError: not enough mirrors have responded in time.
        """
        self._check_no_mirrors(writer.metadata)
        yield from ()

    def sync(self, metadata: LedgerMetadata, position: int) -> Task[int]:
        """Have the mirrors sync up to a position, too; return what is confirmed of it.

        Raises:
            LedgerFencedError: this archive does not lead the ledger any more.
        """
        self._check_no_mirrors(metadata)
        yield from ()
        return position

    def disconnect(self) -> None:
        """Disconnect from the mirrors. Idempotent."""

    def hold(self) -> None:
        """Stay connected to the mirrors of a ledger that ends, until it is closed in them."""

    def await_end(self, metadata: LedgerMetadata, position: int) -> Task[None]:
        """Wait until a quorum has all of a ledger that this archive leads (LedgerError).

        Args:
            position: where its recording has ended, bytes.
        """
        self._check_no_mirrors(metadata)
        yield from ()

    def close_mirrors(self, metadata: LedgerMetadata) -> Task[None]:
        """Close a ledger, which is closed here, in its mirrors; wait for a quorum (LedgerError).

        If fewer members have elected this archive, these are waited for; the others close it once
        they return.
        """
        self._check_no_mirrors(metadata)
        yield from ()

    @staticmethod
    def _check_no_mirrors(metadata: LedgerMetadata) -> None:
        if metadata.mirrors:
            raise fenced(metadata.ledger, metadata.member_record.promised)

    # ---- steps of a follower ------------------------------------------------------------------

    def is_attached(self, leader: ControlSession, correlation_id: int) -> bool:
        """Whether the leader is followed by this request of this session."""
        return False

    def await_copied(self, metadata: LedgerMetadata) -> Task[None]:
        """Wait until the replication of the log has ended, if there is one (ArchiveError)."""
        yield from ()


class Idle(Role):
    """The archive neither leads the ledger nor follows a leader."""
