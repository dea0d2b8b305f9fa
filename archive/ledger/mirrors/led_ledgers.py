"""The mirrors of the ledgers that this archive leads.

The leader's own storage is always part of the ack quorum: no entry is confirmed that it does not
have, so a leader that comes back after a crash needs no mirror to have what it confirmed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aerotape.archive.ledger.mirrors.link import MirrorLink
from aerotape.archive.ledger.quorum import last_add_confirmed
from aerotape.codecs.generated.ledger_control import LedgerType, MirrorLedgerRequest

if TYPE_CHECKING:
    from aerotape.archive.client.session.client_session import ClientSession
    from aerotape.archive.error_log import ErrorLog
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.waiting import Task
    from aerotape.qualified_id import QualifiedId

Opening = Callable[[str], "Task[ClientSession]"]
"""Returns the steps that open a session with the archive of a control channel."""


class MirroredLedger:
    """A ledger with mirrors, from when it has a writer or is being closed.

    Attributes:
        metadata: of the ledger, with its recording.
        links: the mirrors.
    """

    def __init__(self, metadata: LedgerMetadata, links: list[MirrorLink], confirmed: int) -> None:
        """Create the ledger, with the position that is known to be confirmed, bytes."""
        self.metadata = metadata
        self.links = links
        self._confirmed = self._acknowledged = confirmed

    @property
    def last_confirmed(self) -> int:
        """The position that `confirmed` has returned last."""
        return self._confirmed

    @property
    def is_active(self) -> bool:
        """Whether a mirror is to be followed."""
        return not all(link.is_done for link in self.links)

    @property
    def failure(self) -> str | None:
        """Why a mirror that cannot be replaced has failed; None: none has."""
        return next((link.failure for link in self.links if link.has_failed), None)

    @property
    def has_quorum(self) -> bool:
        """Whether enough mirrors follow: all, or for PD_JOURNAL those of the ack quorum."""
        following = 1 + sum(link.is_following or link.is_at_end for link in self.links)
        if self.metadata.type is LedgerType.PD_JOURNAL:
            return following >= self.metadata.ack_quorum
        return following == 1 + len(self.links)

    def problem(self) -> str:
        """Return why it has no quorum."""
        problems = [
            link.failure or f"mirror {link.channel} does not respond"
            for link in self.links
            if not link.is_following
        ]
        return "; ".join(problems) or "the mirrors have not confirmed"

    def confirmed(self, own: int) -> int:
        """Return up to where an ack quorum with this archive has synced; it never decreases."""
        values = (own, *(link.confirmed for link in self.links))
        self._confirmed = self._advanced(self._confirmed, own, values)
        return self._confirmed

    def acknowledged(self, own_recorded: int, own_confirmed: int) -> int:
        """Return the position up to which adds are acknowledged; it never decreases."""
        if self.metadata.type is LedgerType.PD_JOURNAL:
            return self.confirmed(own_confirmed)
        values = (own_recorded, *(link.recorded for link in self.links))
        self._acknowledged = self._advanced(self._acknowledged, own_recorded, values)
        return self._acknowledged

    def _advanced(self, previous: int, own: int, values: tuple[int, ...]) -> int:
        quorums = self.metadata.write_quorum, self.metadata.ack_quorum
        return last_add_confirmed(previous, own, values, *quorums)

    def sync(self, position: int) -> None:
        """Have the mirrors sync up to a position, bytes."""
        for link in self.links:
            link.sync_position = max(link.sync_position, position)

    def stopped(self, position: int) -> None:
        """Take the end of this archive's recording; links end when mirrors are there."""
        for link in self.links:
            link.end_position = position
        self.sync(position)

    def stay(self) -> None:
        """Stay connected to the mirrors at the end, until `close`."""
        for link in self.links:
            link.stays = True

    def close(self) -> None:
        """Close the ledger in the mirrors that are connected."""
        for link in self.links:
            link.closes = True


class Mirrors:
    """The ledgers of this archive that have mirrors and are in use. For the conductor's thread."""

    def __init__(
        self, opening: Opening, control_channel: str, control_stream_id: int, errors: ErrorLog
    ) -> None:
        """Create the service, without any ledger.

        Args:
            opening: returns the steps that connect to a mirror.
            control_channel: the channel by which mirrors connect to this archive.
            control_stream_id: the stream id of that channel.
            errors: receives what goes wrong with mirrors.
        """
        self._opening = opening
        self._control_channel = control_channel
        self._control_stream_id = control_stream_id
        self._errors = errors
        self._ledgers: dict[QualifiedId, MirroredLedger] = {}

    @property
    def is_active(self) -> bool:
        """Whether there is work to do."""
        return any(found.is_active for found in self._ledgers.values())

    def get(self, ledger: QualifiedId) -> MirroredLedger | None:
        """Return a ledger with mirrors; None if it was not used since the start."""
        return self._ledgers.get(ledger)

    def begin(self, metadata: LedgerMetadata, confirmed: int) -> MirroredLedger:
        """Connect to the mirrors of a ledger, which has a recording; again if they are connected.

        Args:
            confirmed: a position that is known to be confirmed, bytes.
        """
        before = self._ledgers.get(metadata.ledger)
        if before is not None:
            confirmed = max(confirmed, before.last_confirmed)
            self.end(metadata.ledger)
        links = [self._link(channel, metadata) for channel in metadata.mirrors]
        found = self._ledgers[metadata.ledger] = MirroredLedger(metadata, links, confirmed)
        return found

    def replace(self, ledger: QualifiedId, channel: str, replacement: str) -> None:
        """Connect to another mirror of a ledger in use instead of one."""
        found = self._ledgers.get(ledger)
        if found is None:
            return
        for index, link in enumerate(found.links):
            if link.channel == channel:
                link.close()
                found.links[index] = self._link(replacement, found.metadata)
                found.links[index].end_position = link.end_position

    def _link(self, channel: str, metadata: LedgerMetadata) -> MirrorLink:
        return MirrorLink(
            channel,
            metadata.ledger,
            metadata.type,
            opening=lambda: self._opening(channel),
            request=lambda: self._request(self._ledgers[metadata.ledger]),
            may_return=metadata.type is LedgerType.PD_JOURNAL,
        )

    def _request(self, mirrored: MirroredLedger) -> MirrorLedgerRequest:
        metadata = mirrored.metadata
        scope_id, ledger_id = metadata.ledger.signed
        return MirrorLedgerRequest(
            scope_id=scope_id,
            ledger_id=ledger_id,
            created_ms=metadata.created_ms,
            source_recording_id=metadata.recording_id,
            source_stream_id=self._control_stream_id,
            ledger_type=metadata.type,
            digest_type=metadata.digest_type,
            confirmed_position=mirrored.last_confirmed,
            password_hash=metadata.password_hash,
            source_channel=self._control_channel,
        )

    def end(self, ledger: QualifiedId) -> None:
        """Disconnect from the mirrors of a ledger. Idempotent."""
        found = self._ledgers.pop(ledger, None)
        if found is not None:
            for link in found.links:
                link.close()

    def do_work(self) -> None:
        """Advance each link by one step."""
        for found in self._ledgers.values():
            for link in found.links:
                before = link.failure
                link.do_work()
                if link.failure not in (before, None):
                    self._errors.record("mirror of a ledger failed", link.failure)

    def close(self) -> None:
        """Disconnect from all mirrors."""
        for ledger in list(self._ledgers):
            self.end(ledger)
