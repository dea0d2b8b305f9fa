"""The state of a leader: the reports of the other members, and the confirmed position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aerotape.archive.features.ledger.protocol.member_record import MemberRecord, Version
from aerotape.archive.features.ledger.protocol.quorums import Quorums
from aerotape.protocol import NULL_POSITION


@dataclass(slots=True)
class Report:
    """The last report of a member to its leader.

    Attributes:
        recorded: position up to which it has recorded; NULL_POSITION: not reported.
        confirmed: position up to which that is on its storage, likewise.
        has_adopted: whether it has adopted the epoch of its leader.
        has_closed: whether it has closed the ledger.
        version: of the groups that it has stored; None: not reported.
    """

    recorded: int = NULL_POSITION
    confirmed: int = NULL_POSITION
    has_adopted: bool = False
    has_closed: bool = False
    version: Version | None = None

    def disconnect(self) -> None:
        """Forget what holds only while the member is connected: a ledger may be opened again."""
        self.recorded = self.confirmed = NULL_POSITION
        self.has_adopted = self.has_closed = False
        self.version = None

    def adopt(self, position: int, version: Version) -> None:
        """Take that the member has adopted the epoch.

        Args:
            position: up to where it has the log on storage, bytes.
            version: of the groups that it was sent.
        """
        self.recorded = max(self.recorded, position)
        self.confirmed = max(self.confirmed, position)
        self.version = version
        self.has_adopted = True


class Leadership:
    """The confirmed position of a ledger that a member leads.

    Attributes:
        member_record: what the leader stores.
        quorums: of the ledger.
        reports: of the other members; the caller adds and removes them.
    """

    def __init__(
        self, member_record: MemberRecord, quorums: Quorums, confirmed: int = NULL_POSITION
    ) -> None:
        """Create it, without reports.

        Args:
            confirmed: up to where the log is known to be confirmed, bytes.
        """
        self.member_record = member_record
        self.quorums = quorums
        self.reports: dict[str, Report] = {}
        self._confirmed = self._recorded = confirmed

    def confirmed(self, own: int) -> int:
        """Return up to where a quorum with this archive has synced; it never decreases.

        Args:
            own: up to where this archive has, bytes.

        Returns:
            The position, bytes; NULL_POSITION before enough members have responded.
        """
        self._confirmed = max(self._confirmed, self._synced(own))
        return self._confirmed

    def recorded(self, own: int) -> int:
        """Return up to where a quorum has recorded, as `confirmed` does for what is synced."""
        ends = {name: each.recorded for name, each in self.reports.items() if each.has_adopted}
        self._recorded = max(self._recorded, self._end(own, ends))
        return self._recorded

    def has_quorum(self, *, of_all: bool) -> bool:
        """Whether enough members have the log: all, or a quorum."""
        adopted = {name for name, each in self.reports.items() if each.has_adopted}
        return adopted == self.reports.keys() if of_all else self.is_quorum(adopted)

    def has_agreed(self, own: int) -> bool:
        """Whether a quorum of each group has the newest groups, and all that was confirmed.

        What was confirmed before a member is replaced may be on the first group alone.

        Args:
            own: up to where this archive has synced, bytes.
        """
        return self._synced(own) >= self._confirmed and self.is_quorum(
            name
            for name, each in self.reports.items()
            if each.has_adopted and each.version == self.member_record.version
        )

    @property
    def is_closed(self) -> bool:
        """Whether a quorum has closed the ledger, this archive included."""
        return self.is_quorum(name for name, each in self.reports.items() if each.has_closed)

    def _synced(self, own: int) -> int:
        ends = {name: each.confirmed for name, each in self.reports.items() if each.has_adopted}
        return self._end(own, ends)

    def _end(self, own: int, ends: Mapping[str, int]) -> int:
        record = self.member_record
        return self.quorums.end(record.groups, own, {**ends, record.own: own})

    def is_quorum(self, others: Iterable[str]) -> bool:
        """Whether this archive and others are a confirming quorum of each group."""
        return self.quorums.confirm(self.member_record.groups, {self.member_record.own, *others})
