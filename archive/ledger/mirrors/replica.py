"""What an archive stores of a ledger that several archives store, and the rules between them.

The protocol is in docs/ledger-protocol.md; its model, which random histories run against, is
`tests/support/ledger/protocol_model.py`. The archives of a ledger are its members, each named by
its control channel. Positions are bytes of the ledger's recording, the same in all members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.archive.ledger.quorum import last_add_confirmed
from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.errors import CodecError, LedgerFencedError
from aerotape.protocol import NULL_POSITION, NULL_VALUE

if TYPE_CHECKING:
    from aerotape.archive.ledger.metadata import LedgerMetadata
    from aerotape.qualified_id import QualifiedId

Epoch = tuple[int, str]
"""A number, and the member that has chosen it. A higher one fences all lower ones."""
Group = tuple[str, ...]
"""The members that store a ledger, by control channel; the one that created it is the first."""
NO_EPOCH: Final[Epoch] = (0, "")
# Characters of a text in an error.
_SHOWN: Final = 100
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class MirrorStep(IntEnum):
    """What one member requests from another (MirrorLedgerRequest)."""

    QUERY = 1
    PROMISE = 2
    FOLLOW = 3
    ADOPT = 4
    CLOSE = 5


@dataclass(frozen=True, slots=True)
class Replica:
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
    version: tuple[Epoch, int] = (NO_EPOCH, 0)
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

    def named(self, own: str) -> Replica:
        """Return it with the name of this member, which its creator did not know."""
        if self.own:
            return self
        groups = tuple(tuple(each or own for each in group) for group in self.groups)
        return replace(self, own=own, groups=groups)

    def as_new(self) -> Replica:
        """Return what a member stores that has no log, from what another one has sent."""
        return replace(
            NOT_REPLICATED,
            own=self.own,
            groups=self.groups,
            version=self.version,
            promised=self.promised,
        )

    def encode(self) -> str:
        """Return it as JSON, without what has its default."""
        import json

        default = asdict(NOT_REPLICATED)
        return json.dumps({k: v for k, v in asdict(self).items() if v != default[k]})

    @classmethod
    def decode(cls, text: str | None) -> Replica:
        """Return what `encode` has returned, or what version 1 of the metadata has of mirrors.

        Raises:
            CodecError: it is neither.
        """
        try:
            return cls._decode(text or "{}")
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
            raise CodecError(
                f"not the JSON of a replica: {error}: {(text or '')[:_SHOWN]!r}"
            ) from error

    @classmethod
    def _decode(cls, text: str) -> Replica:
        import json

        found = json.loads(text)
        if isinstance(found, list):
            return cls(groups=(_group(("", *found)),)) if found else cls()
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
        replica = cls(**found)
        _group((replica.own, replica.boot))
        return replica


NOT_REPLICATED: Final = Replica()
"""Of a ledger that only this archive stores."""


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
    """What a member replies when it is asked.

    Attributes:
        replica: what it stores; `own` is the channel by which it was asked.
        end: the end of its log, bytes.
        is_closed: whether the ledger is closed there.
        is_recording: whether its log grows: it leads, or follows a leader.
        archive_id: of the archive.
        recording_id: of the ledger there.
    """

    replica: Replica
    end: int
    is_closed: bool = False
    is_recording: bool = False
    archive_id: int = NULL_VALUE
    recording_id: int = NULL_VALUE

    @property
    def rank(self) -> tuple[bool, Epoch, int, bool]:
        """Which of two logs wins: the higher one. One whose end is decided is what all agree on."""
        is_decided = self.is_closed and self.replica.is_decided
        return is_decided, self.replica.adopted, self.end, self.is_closed


def fenced(ledger: QualifiedId, epoch: Epoch) -> LedgerFencedError:
    """Return the error of what was begun in a lower epoch than has been promised."""
    return LedgerFencedError(
        f"ledger {ledger} has another leader: archive {epoch[1]} leads it in epoch {epoch[0]}, or"
        " tried to: open it there, or recover it here",
        ledger,
    )


def confirming(size: int, write_quorum: int, ack_quorum: int) -> int:
    """Return how many members of a group have what is confirmed."""
    return size - write_quorum + ack_quorum


def electing(write_quorum: int, ack_quorum: int) -> int:
    """Return how many members of each group have to promise: one of them has what is confirmed."""
    return write_quorum - ack_quorum + 1


def missing_to_elect(
    metadata: LedgerMetadata,
    groups: Iterable[Group],
    states: Mapping[str, MemberState],
    *,
    serves: bool = True,
) -> str | None:
    """Return why members cannot elect a leader that serves; None: they can.

    Args:
        serves: the leader serves a writer; to close the ledger, fewer members do.
    """
    groups = tuple(groups)
    write, acknowledge = metadata.write_quorum, metadata.ack_quorum
    needed = electing(write, acknowledge)
    sound = {each for each, state in states.items() if not state.replica.forgets}
    for group in groups:
        found, counted = set(group) & states.keys(), set(group) & sound
        confirm = confirming(len(group), write, acknowledge)
        if len(found) < confirm and serves:
            return f"{len(found)} of its {len(group)} archives respond, and {confirm} are needed"
        if len(counted) < needed and not all(set(each) <= states.keys() for each in groups):
            return (
                f"{len(counted)} of its {len(group)} archives respond that have lost nothing, and"
                f" {needed} are needed, or all archives"
            )
    return None


def parting(one: MemberState, other: MemberState) -> int | None:
    """Return the position up to which two logs are the same; None: no epoch shows it.

    One leader writes all entries of an epoch, so that logs which have the last common epoch are the
    same up to where the first of them leaves it.
    """
    ends = [_epoch_ends(each) for each in (one, other)]
    common = max(ends[0].keys() & ends[1].keys(), default=None)
    if common is None:
        return None
    return min(each[common] for each in ends)


def _epoch_ends(state: MemberState) -> dict[Epoch, int]:
    history = state.replica.history
    begins = [begin for _, begin in history[1:]]
    return {
        epoch: min(end, state.end)
        for (epoch, _), end in zip(history, [*begins, state.end], strict=False)
    }


def begin_epoch(
    history: tuple[tuple[Epoch, int], ...], epoch: Epoch, end: int
) -> tuple[tuple[Epoch, int], ...]:
    """Return the history of a log whose next entries are of an epoch; `end` is where it ends."""
    return (*(each for each in history if each[1] < end), (epoch, end))


def quorum_end(
    metadata: LedgerMetadata,
    groups: Collection[Group],
    previous: int,
    own: int,
    ends: Mapping[str, int],
) -> int:
    """Return up to where a confirming quorum of each group is, and this archive; bytes.

    Args:
        previous: what this has returned before; the result is not lower.
        own: where this archive is.
        ends: where each member is that has reported in this epoch, this archive included.
    """
    found = own
    for group in groups:
        values = [ends.get(each, NULL_POSITION) for each in group]
        found = last_add_confirmed(
            NULL_POSITION, found, values, metadata.write_quorum, metadata.ack_quorum
        )
    return max(previous, found)


def may_have_forgotten(metadata: LedgerMetadata) -> bool:
    """Whether this archive may have lost what it has acknowledged of a ledger.

    So it is if the operator says so, if the metadata was lost, and for a VD_JOURNAL ledger after
    the machine was started again.
    """
    replica = metadata.replica
    if replica.forgets:
        return True
    if metadata.recording_id != NULL_VALUE and replica.promised == NO_EPOCH:
        return True
    is_volatile = metadata.type is LedgerType.VD_JOURNAL
    return is_volatile and bool(replica.boot) and replica.boot != boot_id()


def boot_id() -> str:
    """Return an id of this run of the machine; "" where the kernel has none."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""
