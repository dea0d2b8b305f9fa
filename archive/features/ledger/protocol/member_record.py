"""The stored state of a member of a ledger, its reply to the others, and how both change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any, Final

from aerotape.errors import CodecError
from aerotape.protocol import NULL_VALUE

Epoch = tuple[int, str]
"""A number, and the member that has chosen it. A higher one fences all lower ones."""
Group = tuple[str, ...]
"""The members that store a ledger, by control channel; the one that created it is the first."""
Version = tuple[Epoch, int]
"""Of the groups: the epoch in which they were chosen, and a number."""
NO_EPOCH: Final[Epoch] = (0, "")
# Characters of a text in an error.
_SHOWN: Final = 100


class MirrorStep(IntEnum):
    """The steps that one member requests from another (MirrorLedgerRequest)."""

    QUERY = 1
    PROMISE = 2
    FOLLOW = 3
    ADOPT = 4
    CLOSE = 5
    CREATE = 6
    DISCARD = 7


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """The state of the protocol in one member.

    Attributes:
        own: this member; "": not known yet.
        groups: who stores the ledger: one group, or two while a member is being replaced; none for
            a ledger that only this archive stores.
        version: orders the groups: the epoch in which they were chosen, and a number.
        promised: the highest epoch that it has promised; it follows no leader of a lower one.
        adopted: the epoch of the last leader whose whole log it has had on storage.
        history: the epochs of the log with the position where each begins, in their order.
        forgets: whether it may have lost what it has acknowledged.
        boot: of the machine, when it last had the whole log of a leader.
        is_decided: whether a quorum of members has closed the ledger.
    """

    own: str = ""
    groups: tuple[Group, ...] = ()
    version: Version = (NO_EPOCH, 0)
    promised: Epoch = NO_EPOCH
    adopted: Epoch = NO_EPOCH
    history: tuple[tuple[Epoch, int], ...] = ()
    forgets: bool = False
    boot: str = ""
    is_decided: bool = False

    @property
    def members(self) -> tuple[str, ...]:
        """All members of the groups, each once."""
        return tuple(dict.fromkeys(each for group in self.groups for each in group))

    @property
    def others(self) -> tuple[str, ...]:
        """The members of the newest group without this one."""
        return tuple(each for each in self.groups[-1] if each != self.own) if self.groups else ()

    def named(self, own: str) -> MemberRecord:
        """Return it with the name of this member, which its creator did not know."""
        if self.own:
            return self
        groups = tuple(tuple(each or own for each in group) for group in self.groups)
        return replace(self, own=own, groups=groups)

    def follow(self, leader: MemberRecord) -> MemberRecord:
        """Return the state that this member stores before it copies the log of its leader."""
        return replace(
            self,
            own=leader.own,
            groups=leader.groups,
            version=leader.version,
            promised=leader.promised,
            history=leader.history,
            is_decided=False,
        )

    def epoch_at(self, end: int) -> Epoch:
        """Return the epoch of the last leader all of whose log, as it began, is in this log.

        That this log has what the leader wrote shows it; else that this member has adopted it.

        Args:
            end: of the log, bytes. One that was cut has lost the epochs that begin after its end.
        """
        begun = max((each for each, at in self.history if at <= end), default=NO_EPOCH)
        written = max((each for each, at in self.history if at < end), default=NO_EPOCH)
        return max(min(self.adopted, begun), written)

    def cut(self, end: int) -> MemberRecord:
        """The record of a member whose log continues from a position with that of another one.

        The epochs that it has lost do not return with the entries: that the ledger was closed in
        them does not either.
        """
        return replace(self, adopted=self.epoch_at(end), is_decided=False)

    def create(self) -> MemberRecord:
        """Return the state of a member of a new ledger, from that of its creator."""
        return replace(
            NOT_REPLICATED,
            own=self.own,
            groups=self.groups,
            version=self.version,
            promised=self.promised,
        )

    def join(self) -> MemberRecord:
        """Return the state of a member that does not know the ledger, while others do.

        It may have known it: its directory may have been lost.
        """
        return replace(self.create(), forgets=True)

    def encode(self) -> str:
        """Return it as JSON, without what has its default."""
        import json

        default = asdict(NOT_REPLICATED)
        return json.dumps({k: v for k, v in asdict(self).items() if v != default[k]})

    @classmethod
    def decode(cls, text: str | None) -> MemberRecord:
        """Return the state that was encoded (CodecError: it is none)."""
        try:
            return cls._decode(text or "{}")
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
            raise CodecError(
                f"not the JSON of a member_record: {error}: {(text or '')[:_SHOWN]!r}"
            ) from error

    @classmethod
    def _decode(cls, text: str) -> MemberRecord:
        import json

        found = json.loads(text)
        for name in ("promised", "adopted"):
            if name in found:
                found[name] = _epoch(found[name])
        if "version" in found:
            epoch, number = found["version"]
            found["version"] = (_epoch(epoch), int(number))
        if "groups" in found:
            found["groups"] = tuple(map(_group, found["groups"]))
        if "history" in found:
            found["history"] = tuple((_epoch(epoch), int(at)) for epoch, at in found["history"])
        member_record = cls(**found)
        _group((member_record.own, member_record.boot))
        return member_record


NOT_REPLICATED: Final = MemberRecord()
"""Of a ledger that only this archive stores."""
UNKNOWN: Final = MemberRecord(forgets=True)
"""Of a ledger that an archive does not know: it may have known it, and lost its directory."""


def _epoch(value: Any) -> Epoch:
    number, member = value
    return int(number), str(member)


def _group(members: Iterable[Any]) -> Group:
    group = tuple(members)
    if isinstance(members, str) or not all(isinstance(each, str) for each in group):
        raise TypeError(f"{group!r} are not texts")
    return group


@dataclass(frozen=True, slots=True)
class MemberState:
    """The reply of a member to another one.

    Attributes:
        member_record: what it stores; `own` is the channel by which it was asked.
        end: the end of its log, bytes.
        is_closed: whether the ledger is closed there.
        is_recording: whether its log grows: it leads, or follows a leader.
        archive_id: of the archive.
        recording_id: of the ledger there.
    """

    member_record: MemberRecord
    end: int
    is_closed: bool = False
    is_recording: bool = False
    archive_id: int = NULL_VALUE
    recording_id: int = NULL_VALUE

    @property
    def rank(self) -> tuple[bool, Epoch, int, bool]:
        """Which of two logs wins: the higher one. One whose end is decided is what all agree on."""
        return self.has_decided_end, self.epoch, self.end, self.is_closed

    @property
    def has_decided_end(self) -> bool:
        """Whether the log has the end that a quorum has decided."""
        return self.is_closed and self.member_record.is_decided and not self.member_record.forgets

    @property
    def epoch(self) -> Epoch:
        """The epoch of the last leader all of whose log it has had, and still has."""
        return self.member_record.epoch_at(self.end)

    @property
    def is_blank(self) -> bool:
        """Whether the member knows nothing of the ledger: it is new, or has lost its directory."""
        return self.member_record.forgets and self.member_record.adopted == NO_EPOCH
