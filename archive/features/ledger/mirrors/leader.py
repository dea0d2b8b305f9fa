"""How this archive comes to lead ledgers, and what it does for those that have no writer.

A leader is elected first (`election.py`): it has all that an earlier leader has acknowledged, and
serves once that is confirmed in its own epoch. A mirror that has promised a higher epoch ends it.
From then on the role of the ledger is `Leading`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aerotape.archive.features.ledger.mirrors.creation import Creation
from aerotape.archive.features.ledger.mirrors.election import Elections
from aerotape.archive.features.ledger.mirrors.leading import Connecting, Leading, check_replacement
from aerotape.archive.features.ledger.status import LedgerStatus
from aerotape.errors import ArchiveError, ConfigurationError
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.features.ledger.ledger import Ledger
    from aerotape.archive.features.ledger.ledger_worker import LedgerWorker
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.follower import Followers
    from aerotape.archive.features.ledger.mirrors.members import Opening
    from aerotape.qualified_id import QualifiedId
    from aerotape.waiting import Task


# After an election without a quorum, wait this long before the next one.
_RETRY_NS: Final = 5_000_000_000


class Leader:
    """Leads ledgers that have mirrors. For the conductor's thread."""

    def __init__(
        self,
        *,
        worker: LedgerWorker,
        followers: Followers,
        opening: Opening,
        config: ArchiveConfig,
        archive_id: int,
        errors: ErrorLog,
    ) -> None:
        """Create the service.

        Args:
            opening: returns the task that connects to a mirror.
            errors: receives what goes wrong with mirrors.
        """
        # So that our error arrives before the request of a client times out.
        self._timeout_ns = config.connect_timeout_ns * 4 // 5
        self._lookup_timeout_ns = config.connect_timeout_ns // 4
        self._elections = Elections(
            worker=worker,
            followers=followers,
            connecting=Connecting(
                opening=opening,
                archive_id=archive_id,
                control_stream_id=config.control_stream_id,
                timeout_ns=self._timeout_ns,
                errors=errors,
            ),
            own_channel=config.control_channel if config.control_channel_enabled else None,
        )
        self._creation = Creation(opening, archive_id)

    def own_channel(self, ledger: QualifiedId) -> str:
        """Return the channel by which mirrors reach this archive (ConfigurationError: none)."""
        return self._elections.own_channel(ledger)

    def create(self, metadata: LedgerMetadata) -> Task[LedgerMetadata]:
        """Create a ledger in its mirrors, as `Creation.create`; return what to store here."""
        return self._creation.create(metadata, self._timeout_ns)

    def discard(self, metadata: LedgerMetadata) -> Task[None]:
        """Remove a ledger from its mirrors that was not created here."""
        return self._creation.discard(metadata, metadata.mirrors)

    def lead(
        self, ledger: Ledger, metadata: LedgerMetadata, *, may_fence: bool
    ) -> Task[LedgerMetadata]:
        """Take over the log of a ledger, to serve a writer; raises as `Elections.lead`.

        Nothing is done for a ledger without mirrors.

        Args:
            ledger: that no other task changes.
            metadata: of the ledger, which has no writer here.
            may_fence: whether to take it over from a leader that is active.

        Returns:
            The metadata afterwards; the ledger is closed if its log was.
        """
        if not metadata.mirrors:
            return metadata
        leading = yield from self._serve(ledger, metadata, may_fence=may_fence)
        return leading.metadata

    def _serve(
        self, ledger: Ledger, metadata: LedgerMetadata, *, may_fence: bool = True
    ) -> Task[Leading]:
        ledger.role.disconnect()
        leading, _ = yield from self._elections.lead(
            ledger, metadata, self._timeout_ns, may_fence=may_fence
        )
        return leading

    def close(self, ledger: Ledger, metadata: LedgerMetadata) -> Task[int]:
        """Stop the writer of a ledger, sync and close it; return its last entry id."""
        if metadata.is_closed and (not metadata.mirrors or metadata.member_record.is_decided):
            return metadata.last_entry_id
        if can_close := ledger.role.can_close:
            ledger.role.hold()
        writer = ledger.log.writer
        if writer is not None:
            yield from ledger.log.stop_writer(writer)
        if not can_close:
            metadata = yield from self._lead_to_end(ledger, metadata)
            if metadata.member_record.is_decided:
                return metadata.last_entry_id
        if metadata.recording_id != NULL_VALUE:
            yield from ledger.log.await_durable_end(metadata)
        yield from ledger.role.await_end(metadata, ledger.log.end(metadata))
        end = yield from ledger.log.close(metadata)
        yield from ledger.role.close_mirrors(metadata)
        return end.entry_id

    def _lead_to_end(self, ledger: Ledger, metadata: LedgerMetadata) -> Task[LedgerMetadata]:
        """Take over the log of a ledger, as `lead`, with fewer members; connect to the mirrors."""
        if not metadata.mirrors:
            return metadata
        return (yield from self._connected(ledger, metadata)).metadata

    def _connected(self, ledger: Ledger, metadata: LedgerMetadata) -> Task[Leading]:
        ledger.role.disconnect()
        leading, electors = yield from self._elections.lead(
            ledger, metadata, self._timeout_ns // 2, serves=False
        )
        leading.connect(leading.metadata, electors=electors)
        return leading

    def status(
        self, ledger: Ledger, metadata: LedgerMetadata, *, with_entries: bool = True
    ) -> Task[LedgerStatus]:
        """Return positions that hold now, and the entries that end there."""
        if metadata.is_closed or metadata.recording_id == NULL_VALUE:
            return LedgerStatus.of_metadata(metadata)
        if self._finds_confirmed(ledger, metadata):
            yield from ledger.lock()
            try:
                metadata = yield from ledger.stored()
                if self._finds_confirmed(ledger, metadata):
                    yield from self._find_confirmed(ledger, metadata)
            finally:
                ledger.unlock()
            metadata = yield from ledger.metadata()
            if metadata.is_closed:
                return LedgerStatus.of_metadata(metadata)
        yield from ledger.log.await_live_or_durable(metadata)
        positions = ledger.positions(metadata)
        if self._is_unknown(ledger, metadata):
            # The end of the recording may be in no other archive.
            carried = yield from ledger.log.confirmed_end(metadata)
            positions = replace(positions, confirmed_position=carried)
        if not with_entries:
            return positions
        return (yield from ledger.log.find_entries(metadata, positions))

    def _finds_confirmed(self, ledger: Ledger, metadata: LedgerMetadata) -> bool:
        """Whether `_find_confirmed` has to be called before positions of a ledger are returned."""
        return (
            self._is_unknown(ledger, metadata)
            and not metadata.is_closed
            and metadata.recording_id != NULL_VALUE
            and metadata.member_record.own == metadata.member_record.promised[1]
            and time.monotonic_ns() >= ledger.retry_ns
        )

    @staticmethod
    def _is_unknown(ledger: Ledger, metadata: LedgerMetadata) -> bool:
        """Whether this archive has led a ledger, and does not know what is confirmed of it."""
        return (
            bool(metadata.mirrors)
            and metadata.member_record.own == metadata.member_record.adopted[1]
            and not ledger.role.is_connected
            and ledger.log.session(metadata.recording_id) is None
        )

    def _find_confirmed(self, ledger: Ledger, metadata: LedgerMetadata) -> Task[None]:
        """Lead a ledger without a writer again that this archive has led, after a restart.

        What was confirmed is known then. While too few members respond, or if another archive leads
        the ledger, it is what the entries carry.

        Args:
            ledger: that no other task changes.
        """
        try:
            leading, _ = yield from self._elections.lead(
                ledger, metadata, self._lookup_timeout_ns, may_fence=False
            )
        except (ArchiveError, ConfigurationError):
            ledger.retry_ns = time.monotonic_ns() + _RETRY_NS
            return
        metadata = leading.metadata
        limit = ledger.log.end(metadata)
        leading.connect(metadata)
        leading.end(limit)
        if metadata.is_closed:
            leading.begin_to_decide()
        yield from leading.await_confirmed(limit, self._lookup_timeout_ns)

    def replace(
        self,
        ledger: Ledger,
        metadata: LedgerMetadata,
        mirror: str,
        replacement: str,
        *,
        is_lost: bool,
    ) -> Task[None]:
        """Have another archive mirror a ledger.

        Both are members until a quorum of the old and of the new group have the log and know the
        new group. A mirror that is lost for good is not waited for.

        Args:
            ledger: that no other task changes.

        Raises:
            LedgerError: mirrors of this ledger cannot be replaced.
            ConfigurationError: `mirror` is not one of its mirrors, or `replacement` is.
        """
        check_replacement(metadata, mirror, replacement)
        leading = ledger.role
        if not isinstance(leading, Leading) or leading.writer is None:
            if is_lost:
                leading = yield from self._connected(ledger, metadata)
            else:
                leading = yield from self._serve(ledger, metadata)
                leading.connect(leading.metadata)
            leading.end(ledger.log.end(leading.metadata))
            # Another archive may have closed it meanwhile, or replaced a mirror.
            check_replacement(leading.metadata, mirror, replacement)
        yield from leading.replace(mirror, replacement, is_lost=is_lost)
