"""A ledger that this archive leads: how far its quorum is, from this archive and its mirrors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from aerotape.archive.ledger.mirrors.replica import confirming, quorum_end
from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.protocol import NULL_POSITION

if TYPE_CHECKING:
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.archive.ledger.mirrors.link import MirrorLink
    from aerotape.archive.ledger.writer_recording import WriterRecording


class MirroredLedger:
    """A ledger with mirrors, from when it has a writer, is looked up or is being closed.

    Attributes:
        metadata: of the ledger, with its recording, as this archive leads it.
        links: the mirrors.
        writer: the writer for which the mirrors are connected; None once it has stopped.
        is_closing: whether the ledger is being closed.
        electors: the members that have elected this archive to close the ledger.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        links: list[MirrorLink],
        writer: WriterRecording | None,
    ) -> None:
        """Create the ledger; nothing is known to be confirmed."""
        self.metadata = metadata
        self.links = links
        self.writer = writer
        self.electors: frozenset[str] = frozenset()
        self.is_closing = False
        self._confirmed = self._recorded = NULL_POSITION

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
        """Whether enough mirrors have the log: all, or for PD_JOURNAL a quorum."""
        if self.metadata.type is LedgerType.VD_JOURNAL:
            return all(link.has_adopted for link in self.links)
        return self._is_quorum(link.channel for link in self.links if link.has_adopted)

    def problem(self) -> str:
        """Return why it has no quorum."""
        problems = [
            link.failure or f"mirror {link.channel} does not respond"
            for link in self.links
            if not link.has_adopted
        ]
        return "; ".join(problems) or "the mirrors have not confirmed"

    def confirmed(self, own: int) -> int:
        """Return up to where a quorum with this archive has synced; it never decreases.

        Args:
            own: up to where this archive has, bytes.

        Returns:
            The position, bytes; NULL_POSITION before enough mirrors have responded.
        """
        self._confirmed = self._synced(self._confirmed, own)
        return self._confirmed

    def recorded(self, own: int) -> int:
        """Return up to where a quorum has recorded, as `confirmed` does for what is synced."""
        ends = {link.channel: link.recorded for link in self.links if link.has_adopted}
        self._recorded = self._quorum_end(self._recorded, own, ends)
        return self._recorded

    def _synced(self, previous: int, own: int) -> int:
        ends = {link.channel: link.confirmed for link in self.links if link.has_adopted}
        return self._quorum_end(previous, own, ends)

    def _quorum_end(self, previous: int, own: int, ends: dict[str, int]) -> int:
        ends[self.metadata.replica.own] = own
        return quorum_end(self.metadata, self.metadata.replica.groups, previous, own, ends)

    def has_agreed(self, own: int) -> bool:
        """Whether a quorum of each group has the newest groups, and all that was confirmed.

        What was confirmed before a member is replaced may be on the first group alone.

        Args:
            own: up to where this archive has synced, bytes.
        """
        version = self.metadata.replica.version
        return self._synced(NULL_POSITION, own) >= self._confirmed and self._is_quorum(
            link.channel for link in self.links if link.has_adopted and link.version == version
        )

    @property
    def is_closed(self) -> bool:
        """Whether a quorum has closed the ledger, this archive included."""
        return self._is_quorum(link.channel for link in self.links if link.has_closed)

    @property
    def has_few(self) -> bool:
        """Whether this archive was elected to close the ledger by fewer members than a quorum."""
        return bool(self.electors) and not self._is_quorum(self.electors)

    def have_electors(self, condition: Callable[[MirrorLink], bool]) -> bool:
        """Whether a condition holds for the mirrors that have elected this archive."""
        return all(condition(link) for link in self.links if link.channel in self.electors)

    def _is_quorum(self, others: Iterable[str]) -> bool:
        metadata = self.metadata
        found = {metadata.replica.own, *others}
        return all(
            len(found & set(group))
            >= confirming(len(group), metadata.write_quorum, metadata.ack_quorum)
            for group in metadata.replica.groups
        )

    def add(self, link: MirrorLink) -> None:
        """Add a mirror."""
        if self.links:
            first = self.links[0]
            link.end_position, link.sync_position = first.end_position, first.sync_position
            link.stays, link.closes = first.stays, first.closes
        self.links.append(link)

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
        self.is_closing = True
        for link in self.links:
            link.closes = True

    def disconnect(self) -> None:
        """Disconnect from the mirrors. Their recordings end."""
        for link in self.links:
            link.close()
