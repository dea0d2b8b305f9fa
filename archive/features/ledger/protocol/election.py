"""The election of a leader of a ledger: it asks the members, and takes over the best log.

    Query -> Promise -> Copy -> Adopt
       |        |
       +--------+-> Refused

Nothing changes before enough members have responded to the query. A step that fails leaves what a
crash there would leave: another election, by any member, repairs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from aerotape.archive.features.ledger.protocol.logs import begin_epoch
from aerotape.archive.features.ledger.protocol.member_record import (
    NO_EPOCH,
    Epoch,
    Group,
    MemberRecord,
    MemberState,
)
from aerotape.archive.features.ledger.protocol.quorums import Quorums


class Refusal(Enum):
    """The reason why a member is not elected."""

    TOO_FEW = auto()
    """Too few members respond."""
    IN_USE = auto()
    """Another one leads the ledger, which may not be fenced."""
    FENCED = auto()
    """A higher epoch was promised meanwhile."""
    TWICE = auto()
    """One archive is a member under two names."""


@dataclass(frozen=True, slots=True)
class Query:
    """Ask members for their states; nothing changes there."""

    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Promise:
    """Promise an epoch, stop the own log, and then have the members do the same."""

    epoch: Epoch
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Copy:
    """Replace the own log by that of another member."""

    source: MemberState


@dataclass(frozen=True, slots=True)
class Adopt:
    """Store that this member leads.

    Attributes:
        member_record: what to store.
        is_closed: whether the log ends with the ledger.
        electors: the members that have elected it.
    """

    member_record: MemberRecord
    is_closed: bool
    electors: frozenset[str]


@dataclass(frozen=True, slots=True)
class Refused:
    """The member is not elected."""

    why: Refusal
    text: str = ""


Step = Query | Promise | Copy | Adopt | Refused
FIRST: Final = 1
"""The number of the epoch of the member that creates a ledger; the others promise it then."""


class Election:
    """One election. The caller carries out `step`, reports the outcome, and repeats.

    Attributes:
        is_fenced: whether this member has promised a higher epoch.
    """

    def __init__(
        self, own: MemberState, quorums: Quorums, *, serves: bool = True, may_fence: bool = True
    ) -> None:
        """Begin it.

        Args:
            own: the state of this member.
            quorums: of the ledger.
            serves: whether to serve a writer; to close the ledger, fewer members do.
            may_fence: whether to take the ledger over from a leader that is active.
        """
        self._own = own
        self._quorums = quorums
        self._serves = serves
        self._may_fence = may_fence
        self._queried = {own.member_record.own: own}
        self._promised: dict[str, MemberState] = {}
        self._silent: set[str] = set()
        self._epoch = NO_EPOCH
        self._is_copied = False
        self.is_fenced = False

    # ---- events ---------------------------------------------------------------------------------

    def reply(self, member: str, state: MemberState) -> None:
        """Take the state with which a member has replied to what it was asked last."""
        (self._queried if self._epoch == NO_EPOCH else self._promised)[member] = state

    def give_up(self, member: str) -> None:
        """Take that a member does not reply to what it was asked last."""
        self._silent.add(member)

    def promise(self, own: MemberState) -> None:
        """Take that this member has promised the epoch, with its log stopped."""
        self._epoch, self._own, self._silent = own.member_record.promised, own, set()
        self._promised[own.member_record.own] = own

    def copied(self) -> None:
        """Take that the own log is that of the source of `Copy`, on storage."""
        self._is_copied = True

    def fence(self) -> None:
        """Take that this member has promised a higher epoch."""
        self.is_fenced = True

    # ---- decisions ------------------------------------------------------------------------------

    @property
    def has_enough(self) -> bool:
        """Whether those that have replied to the last question are enough."""
        states = self._queried if self._epoch == NO_EPOCH else self._promised
        return self._missing(states, serves=True) is None

    def step(self) -> Step:
        """Return the next step."""
        if self.is_fenced:
            return Refused(Refusal.FENCED)
        if self._epoch == NO_EPOCH:
            return self._query()
        asked = self._queried.keys() - {self._own.member_record.own}
        if waiting := asked - self._promised.keys() - self._silent:
            return Promise(self._epoch, frozenset(waiting))
        if missing := self._missing(self._promised, self._serves):
            return Refused(Refusal.TOO_FEW, missing)
        # Its own log, of two that are the same: the first one wins.
        best = max(self._promised.values(), key=lambda state: state.rank)
        if best is not self._own and not self._is_copied:
            return Copy(best)
        newest = max(self._promised.values(), key=lambda state: state.member_record.version)
        return self._adopt(self._epoch, best, newest, frozenset(self._promised))

    def _query(self) -> Query | Promise | Refused:
        """Ask all members of all groups that any of them knows."""
        states = self._queried
        known = {each for group in self._groups for each in group}
        if waiting := known - states.keys() - self._silent:
            return Query(frozenset(waiting))
        by_id: dict[int, str] = {}
        for name, state in states.items():
            other = by_id.setdefault(state.archive_id, name)
            if other != name:
                return Refused(Refusal.TWICE, f"{other} and {name} are the same")
        if missing := self._missing(states, self._serves):
            return Refused(Refusal.TOO_FEW, missing)
        own = self._own.member_record.own
        if not self._may_fence and any(
            # A member may still follow this archive as it was before its restart.
            state.is_recording and state.member_record.promised[1] != own
            for state in states.values()
        ):
            return Refused(Refusal.IN_USE)
        number = max(state.member_record.promised[0] for state in states.values()) + 1
        return Promise((number, own), frozenset(states.keys() - {own}))

    def _missing(self, states: Mapping[str, MemberState], serves: bool) -> str | None:
        return self._quorums.missing_to_elect(self._groups, states, serves=serves)

    def _adopt(
        self, epoch: Epoch, best: MemberState, newest: MemberState, electors: frozenset[str]
    ) -> Adopt:
        member_record = replace(
            self._own.member_record,
            groups=newest.member_record.groups or self._own.member_record.groups,
            version=newest.member_record.version,
            promised=epoch,
            adopted=epoch,
            history=begin_epoch(best.member_record.history, epoch, best.end),
            forgets=False,
            is_decided=best.is_closed and best.member_record.is_decided,
        )
        return Adopt(member_record, best.is_closed, electors)

    @property
    def _groups(self) -> set[Group]:
        """All groups that any member has named.

        Also one that has learned of a group between the query and its promise: another leader may
        have replaced a member meanwhile, and confirm entries with the new group alone.
        """
        states = (*self._queried.values(), *self._promised.values())
        return {group for state in states for group in state.member_record.groups}
