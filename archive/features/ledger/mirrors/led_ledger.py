"""A ledger that this archive leads: how far its quorum is, from this archive and its mirrors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aerotape.archive.features.ledger.protocol.leadership import Leadership
from aerotape.codecs.generated.ledger_control import LedgerType

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.metadata import LedgerMetadata
    from aerotape.archive.features.ledger.mirrors.link import MirrorLink
    from aerotape.archive.features.ledger.writer_recording import WriterRecording


class LedLedger:
    """A ledger with mirrors, from when it has a writer, is looked up or is being closed.

    Attributes:
        links: the mirrors.
        leadership: what is confirmed.
        writer: the writer for which the mirrors are connected; None once it has stopped.
        is_closing: whether the ledger is being closed.
        electors: the members that have elected this archive to close the ledger.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        links: list[MirrorLink],
        writer: WriterRecording | None,
        confirmed: int,
    ) -> None:
        """Create the ledger.

        Args:
            confirmed: up to where its entries show that it is confirmed, bytes.
        """
        self._metadata = metadata
        self.links = links
        self.leadership = Leadership(metadata.replica, metadata.quorums, confirmed)
        self.leadership.reports = {link.channel: link.report for link in links}
        self.writer = writer
        self.electors: frozenset[str] = frozenset()
        self.is_closing = False

    @property
    def metadata(self) -> LedgerMetadata:
        """The metadata of the ledger, with its recording, as this archive leads it."""
        return self._metadata

    @metadata.setter
    def metadata(self, metadata: LedgerMetadata) -> None:
        self._metadata, self.leadership.replica = metadata, metadata.replica

    @property
    def is_active(self) -> bool:
        """Whether a mirror is to be followed."""
        return not all(link.is_done for link in self.links)

    @property
    def failure(self) -> str | None:
        """The failure of a mirror that cannot be replaced; None: none has failed."""
        return next((link.failure for link in self.links if link.has_failed), None)

    @property
    def has_quorum(self) -> bool:
        """Whether enough mirrors have the log: all, or for PD_JOURNAL a quorum."""
        return self.leadership.has_quorum(of_all=self.metadata.type is LedgerType.VD_JOURNAL)

    def problem(self) -> str:
        """Return the reason why it has no quorum."""
        problems = [
            link.failure or f"mirror {link.channel} does not respond"
            for link in self.links
            if not link.report.has_adopted
        ]
        return "; ".join(problems) or "the mirrors have not confirmed"

    @property
    def has_few(self) -> bool:
        """Whether this archive was elected to close the ledger by fewer members than a quorum."""
        return bool(self.electors) and not self.leadership.is_quorum(self.electors)

    def have_electors(self, condition: Callable[[MirrorLink], bool]) -> bool:
        """Whether a condition holds for the mirrors that have elected this archive."""
        return all(condition(link) for link in self.links if link.channel in self.electors)

    def add(self, link: MirrorLink) -> None:
        """Add a mirror."""
        if self.links:
            first = self.links[0]
            link.end_position, link.sync_position = first.end_position, first.sync_position
            link.stays, link.closes = first.stays, first.closes
        self.links.append(link)
        self.leadership.reports[link.channel] = link.report

    def remove(self, link: MirrorLink) -> None:
        """Disconnect from a mirror that is no longer a member."""
        link.close()
        self.links.remove(link)
        del self.leadership.reports[link.channel]

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
