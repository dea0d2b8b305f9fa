"""The sizes of quorums, and the position that a quorum of members has reached."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from aerotape.archive.features.ledger.protocol.member_record import Group, MemberState
from aerotape.errors import ConfigurationError
from aerotape.protocol import NULL_POSITION


class Quorums(NamedTuple):
    """The quorums of a ledger.

    Attributes:
        write: members that store each entry.
        acknowledge: members that must have synced it.
    """

    write: int
    acknowledge: int

    @property
    def electing(self) -> int:
        """The members of each group that have to promise: one of them has the confirmed entries."""
        return self.write - self.acknowledge + 1

    def confirming(self, size: int) -> int:
        """Return the number of members of a group that have the confirmed entries.

        Raises:
            ConfigurationError: not 1 <= ack quorum <= write quorum <= size.
        """
        if not 1 <= self.acknowledge <= self.write <= size:
            raise ConfigurationError(
                f"write quorum {self.write} and ack quorum {self.acknowledge} do not fit {size}"
                " archives: expected 1 <= ack quorum <= write quorum <= archives"
            )
        return size - self.write + self.acknowledge

    def reached(self, ends: Collection[int]) -> int:
        """Return up to where a confirming quorum of one group is; one value of each member."""
        return sorted(ends, reverse=True)[self.confirming(len(ends)) - 1]

    def end(self, groups: Iterable[Group], own: int, ends: Mapping[str, int]) -> int:
        """Return up to where a confirming quorum of each group is, and this archive; bytes.

        Args:
            own: where this archive is.
            ends: where each member is that has reported in this epoch, this archive included.
        """
        reached = [
            self.reached([ends.get(each, NULL_POSITION) for each in group]) for group in groups
        ]
        return min([own, *reached])

    def confirm(self, groups: Iterable[Group], members: Iterable[str]) -> bool:
        """Whether members are a confirming quorum of each group."""
        found = set(members)
        return all(len(found & set(group)) >= self.confirming(len(group)) for group in groups)

    def missing_to_elect(
        self, groups: Iterable[Group], states: Mapping[str, MemberState], *, serves: bool = True
    ) -> str | None:
        """Return the reason why members cannot elect a leader; None: they can.

        Args:
            serves: the leader serves a writer; to close the ledger, fewer members do.
        """
        groups = tuple(groups)
        sound = {each for each, state in states.items() if not state.member_record.forgets}
        informed = {each for each, state in states.items() if not state.is_blank}
        have_all = all(set(each) <= states.keys() for each in groups)
        for group in groups:
            found, counted = len(set(group) & states.keys()), len(set(group) & sound)
            confirm, of_all = self.confirming(len(group)), f"of its {len(group)} archives"
            if found < confirm and serves:
                return f"{found} {of_all} respond, and {confirm} are needed"
            if counted >= self.electing:
                continue
            if not have_all:
                return (
                    f"{counted} {of_all} respond that have lost nothing, and {self.electing} are"
                    " needed, or all archives"
                )
            if (known := len(set(group) & informed)) < self.electing:
                # One that was replaced, without knowing it, could elect itself.
                return f"{known} {of_all} know it, and {self.electing} are needed"
        return None
