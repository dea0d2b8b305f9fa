"""A ledger that this archive leads: how far its quorum is, from this archive and its mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aerotape.archive.ledger.quorum import last_add_confirmed
from aerotape.codecs.generated.ledger_control import LedgerType

if TYPE_CHECKING:
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.ledger.mirrors.link import MirrorLink
    from aerotape.archive.ledger.writer_recording import WriterRecording


class MirroredLedger:
    """A ledger with mirrors, from when it has a writer, is looked up or is being closed.

    Attributes:
        metadata: of the ledger, with its recording.
        links: the mirrors.
        writer: the writer for which the mirrors are connected; None once it has stopped.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        links: list[MirrorLink],
        confirmed: int,
        writer: WriterRecording | None,
    ) -> None:
        """Create the ledger, with the position that is known to be confirmed, bytes."""
        self.metadata = metadata
        self.links = links
        self.writer = writer
        self._confirmed = self._recorded = confirmed

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
        """Return up to where an ack quorum with this archive has synced; it never decreases.

        Args:
            own: up to where this archive has, bytes.

        Returns:
            The position, bytes; NULL_POSITION before enough mirrors have responded.
        """
        values = (own, *(link.confirmed for link in self.links))
        self._confirmed = self._advance(self._confirmed, own, values)
        return self._confirmed

    def recorded(self, own: int) -> int:
        """Return up to where an ack quorum has recorded, as `confirmed` does for what is synced."""
        values = (own, *(link.recorded for link in self.links))
        self._recorded = self._advance(self._recorded, own, values)
        return self._recorded

    def _advance(self, previous: int, own: int, values: tuple[int, ...]) -> int:
        quorums = self.metadata.write_quorum, self.metadata.ack_quorum
        return last_add_confirmed(previous, own, values, *quorums)

    def sync(self, position: int) -> None:
        """Have the mirrors sync up to a position, bytes."""
        for link in self.links:
            link.sync_position = max(link.sync_position, position)

    def end(self, position: int) -> None:
        """Take the end of this archive's recording; links end when mirrors are there."""
        self.writer = None
        for link in self.links:
            link.end_position = position
        self.sync(position)

    def hold(self) -> None:
        """Stay connected to the mirrors at the end, until `close`."""
        for link in self.links:
            link.stays = True

    def close(self) -> None:
        """Close the ledger in the mirrors that are connected."""
        for link in self.links:
            link.closes = True

    def disconnect(self) -> None:
        """Disconnect from the mirrors. Their recordings end."""
        for link in self.links:
            link.close()
