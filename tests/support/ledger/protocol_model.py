"""An executable model of how several archives agree on a ledger: the protocol before the code.

docs/ledger-protocol.md has the protocol for people, `archive/ledger/mirrors/` is its code. There,
histories take the place of an epoch in each entry, a member adopts an epoch once it has all that
the leader had when it began to follow, and fewer members may close a ledger than decide that.

A ledger has N members, write quorum W and ack quorum A. What is confirmed is on Q1 = N - W + A
members, the leader among them; a leader is elected by the promises of Q2 = W - A + 1 members. As
Q1 + Q2 = N + 1, each election hears of all that was confirmed. Sources: BookKeeper's ledger
recovery and fencing (the quorums); Raft (which of two logs wins; a leader counts only what members
have in its own epoch; joint membership); Kafka (leader epochs, which show where two logs part);
Viewstamped Replication (a member that may have forgotten does not count until it has caught up).

A member stores, before it answers:

    promised   the highest epoch that it has promised; it follows no leader of a lower one
    adopted    the epoch of the leader whose whole log it last had
    log        the entries, each with the epoch of its leader; `synced` of them survive a power cut
    is_closed  whether nothing follows the log
    groups     who stores the ledger: one group of members, or two while a member is replaced
    forgets    whether it may have lost what it acknowledged: after a power cut of a VD ledger, or
               in a directory that was put back to an older state, until it has caught up

A leader

1. promises itself a new epoch and asks all members to promise it, which fences earlier leaders;
2. is elected by Q2 members of each group that do not forget, or by all members;
3. takes over the best log: that with the highest `adopted`, then the longest, then a closed one. It
   drops its own entries from where the two part, copies the rest, syncs it and adopts its epoch;
4. has the members do the same: they adopt its epoch with the whole log, and with its end if that is
   closed. It confirms what Q1 members of each group have synced that have adopted its epoch (a VD
   ledger acknowledges what they have), and serves once all that it began with is confirmed;
5. may write, replace a member (of a PD ledger), or close. The new group takes over once both
   groups know of it and have what was confirmed. A ledger is closed once Q1 members have stored
   its end; a later leader that finds a closed log completes the closing.

Invariants, checked after each step:

* No two members confirm different entries in one place; all closings have the same entries.
* A leader that has taken over has each confirmed or acknowledged entry that any member still has.
* No member that catches up drops an entry that was confirmed or acknowledged.
* A leader that serves, and whose epoch is the highest that was promised, shows all that was
  confirmed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

Epoch = tuple[int, int]  # a number, and the member that has chosen it
Group = frozenset[int]


class Entry(NamedTuple):
    """An entry, unique by its number, with the epoch of the leader that wrote it."""

    epoch: Epoch
    number: int


Log = tuple[Entry, ...]


@dataclass(frozen=True)
class Quorums:
    """The quorums of a ledger; `members` is the number of its archives."""

    members: int
    write: int
    acknowledge: int

    @property
    def confirm(self) -> int:
        """How many members have what is confirmed."""
        return self.members - self.write + self.acknowledge

    @property
    def elect(self) -> int:
        """How many members have to promise."""
        return self.write - self.acknowledge + 1


@dataclass(frozen=True)
class State:
    """What a member stores. `version` orders the groups."""

    groups: tuple[Group, ...]
    version: tuple[Epoch, int] = ((0, -1), 0)
    promised: Epoch = (0, -1)
    adopted: Epoch = (0, -1)
    log: Log = ()
    synced: int = 0
    is_closed: bool = False
    forgets: bool = False

    @property
    def rank(self) -> tuple[Epoch, int, bool]:
        """Which of two logs wins; a closed one, of two that are the same."""
        return self.adopted, len(self.log), self.is_closed


@dataclass
class Leader:
    """What a leader knows until it crashes or meets a higher epoch.

    `target` is the log to take over, from member `source`; `begin` is its length.
    """

    epoch: Epoch
    replies: dict[int, State] = field(default_factory=dict)
    target: State | None = None
    source: int = -1
    has_taken_over: bool = False
    begin: int = 0
    recorded: dict[int, int] = field(default_factory=dict)
    synced: dict[int, int] = field(default_factory=dict)
    versions: dict[int, tuple[Epoch, int]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    is_closing: bool = False
    began_closed: bool = False
    confirmed: int = 0


@dataclass(frozen=True)
class Rules:
    """The rules that a test may leave out, to see that the model finds why they exist."""

    who_forgets_does_not_count: bool = True
    adopt_after_the_copy: bool = True
    count_own_epoch_only: bool = True
    fence: bool = True
    both_groups: bool = True
    both_have_all: bool = True
    elect_less: int = 0


# What happens, and how often.
_DISTURBANCES: Final[dict[str, float]] = {
    "start": 6, "crash": 2, "restart": 4, "partition": 3, "heal": 4, "sync": 4, "back_up": 1,
    "put_back": 0.5, "close": 0.3, "replace": 0.6,
}  # fmt: skip
_PROTOCOL: Final[dict[str, float]] = {
    "ask": 4, "elect": 3, "take_over": 5, "replicate": 6, "report": 6, "write": 3, "sync": 2,
    "sync_other": 3,
}  # fmt: skip


class BrokenError(AssertionError):
    """An invariant does not hold."""


class Model:
    """One history of a ledger."""

    def __init__(
        self, seed: int, quorums: Quorums, *, is_volatile: bool, rules: Rules | None = None
    ) -> None:
        self.random = random.Random(seed)
        self.quorums = quorums
        self.is_volatile = is_volatile
        self.rules = rules or Rules()
        members = frozenset(range(quorums.members))
        self.states = {each: State((members,)) for each in members}
        self.leaders: dict[int, Leader] = {}
        self.up = set(members)
        self.cut: set[frozenset[int]] = set()
        self.backups: dict[int, State] = {}
        self.number = 0
        self.next_member = quorums.members
        # What clients know: entries that were confirmed or acknowledged, and the end if closed.
        self.confirmed: Log = ()
        self.acknowledged: Log = ()
        self.closed: Log | None = None
        self.elections = 0

    # ---- the world ------------------------------------------------------------------------------

    def reaches(self, one: int, other: int) -> bool:
        return {one, other} <= self.up and frozenset((one, other)) not in self.cut

    def step(self) -> None:
        """Do one random thing, and check what must hold."""
        members = sorted(self.states)
        if not self.leaders or self.random.random() < 0.08:
            actions = _DISTURBANCES
            member = self.random.choice(members)
        else:
            actions = _PROTOCOL
            member = self.random.choice(sorted(self.leaders))
        (name,) = self.random.choices(list(actions), list(actions.values()))
        getattr(self, name)(member, self.random.choice(members))
        self.check()

    def crash(self, member: int, _: int) -> None:
        """End a process, or cut the power: then what was not synced may be lost."""
        if member not in self.up or len(self.up) < 2:
            return
        self.up.discard(member)
        self.disconnect(member)
        state = self.states[member]
        if self.random.random() < 0.5:
            kept = self.random.randint(state.synced, len(state.log))
            state = replace(
                state,
                log=state.log[:kept],
                is_closed=state.is_closed and kept == len(state.log),
                # A PD ledger has acknowledged only what is synced.
                forgets=state.forgets or self.is_volatile,
            )
            self.states[member] = state

    def disconnect(self, member: int) -> None:
        """A member ends: it does not lead, and leaders drop what it has reported."""
        self.leaders.pop(member, None)
        for leader in self.leaders.values():
            for reports in (leader.recorded, leader.synced, leader.versions):
                reports.pop(member, None)

    def restart(self, _: int, __: int) -> None:
        self.up.update(self.random.sample(sorted(self.states), 1 + len(self.states) // 2))

    def partition(self, member: int, other: int) -> None:
        if member != other:
            self.cut.add(frozenset((member, other)))

    def heal(self, _: int, __: int) -> None:
        self.cut = {each for each in self.cut if self.random.random() < 0.4}

    def back_up(self, member: int, _: int) -> None:
        state = self.states[member]
        self.backups[member] = replace(state, log=state.log[: state.synced])

    def put_back(self, member: int, _: int) -> None:
        """Put the directory of a member back to an older state, which its operator says.

        Not to one with other groups: it could elect a leader with a member that was replaced.
        """
        state = self.backups.get(member)
        is_same = state is not None and state.groups == self.states[member].groups
        # With one it may have been the only one with what was confirmed.
        if state and is_same and len(self.up) > 1 and self.quorums.confirm > 1:
            self.disconnect(member)
            self.states[member] = replace(state, synced=len(state.log), forgets=True)

    # ---- the protocol ---------------------------------------------------------------------------

    def start(self, member: int, _: int) -> None:
        """Ask for promises of a new epoch, as an open or a recovery does."""
        state = self.states[member]
        if member not in self.up or not any(member in group for group in state.groups):
            return
        epoch = (state.promised[0] + 1, member)
        if self.random.random() < 0.2:
            epoch = (epoch[0] + 1, member)
        self.states[member] = replace(state, promised=epoch)
        self.leaders[member] = Leader(epoch, {member: state})

    def ask(self, member: int, other: int) -> None:
        leader = self.leaders.get(member)
        if leader is None or leader.target is not None or not self.reaches(member, other):
            return
        state = self.states[other]
        if state.promised >= leader.epoch:
            if other != member and self.rules.fence:
                self.refuse(member, state.promised)
            return
        self.states[other] = replace(state, promised=leader.epoch)
        # A member that leads gives up: it has promised a higher epoch.
        self.leaders.pop(other, None)
        leader.replies[other] = state

    def refuse(self, member: int, promised: Epoch) -> None:
        """A leader has met a higher epoch: it ends, and remembers it."""
        if promised > self.leaders[member].epoch:
            self.leaders.pop(member)
            state = self.states[member]
            self.states[member] = replace(state, promised=max(state.promised, promised))

    def quorate(self, groups: Iterable[Group], found: Iterable[int], confirm: bool) -> bool:
        """Whether members are a quorum of each group."""
        members = set(found)
        needed = self.quorums.confirm if confirm else self.quorums.elect - self.rules.elect_less
        groups = tuple(groups)
        if not self.rules.both_groups:
            groups = groups[-1:]
        return all(len(group & members) >= needed for group in groups)

    def elect(self, member: int, _: int) -> None:
        """With enough promises, choose the best log."""
        leader = self.leaders.get(member)
        if leader is None or leader.target is not None:
            return
        replies = leader.replies
        groups = {group for state in replies.values() for group in state.groups}
        if not self.rules.both_groups:
            groups = set(max(replies.values(), key=lambda each: each.version).groups[-1:])
        counted = {
            each
            for each, state in replies.items()
            if not (state.forgets and self.rules.who_forgets_does_not_count)
        }
        everybody = {each for group in groups for each in group}
        if not (self.quorate(groups, counted, confirm=False) or everybody <= set(replies)):
            return
        leader.source = max(replies, key=lambda each: replies[each].rank)
        leader.target = replies[leader.source]
        newest = max(replies.values(), key=lambda each: each.version)
        state = self.states[member]
        self.states[member] = replace(state, groups=newest.groups, version=newest.version)

    def take_over(self, member: int, _: int) -> None:
        """Copy some entries of the best log; at its end adopt the epoch."""
        leader = self.leaders.get(member)
        if leader is None or leader.target is None or leader.has_taken_over:
            return
        if member != leader.source and not self.reaches(member, leader.source):
            return
        target = leader.target.log
        if member != leader.source:
            source = self.states[leader.source]
            if source.log[: len(target)] != target or source.promised != leader.epoch:
                self.leaders.pop(member)  # it has lost what it promised to have; begin again
                return
            self.copy(member, target)
        state = self.states[member]
        if state.log != target:
            return
        leader.has_taken_over = True
        leader.begin = len(target)
        leader.is_closing = leader.began_closed = leader.target.is_closed
        self.elections += 1
        self.states[member] = replace(
            state,
            adopted=leader.epoch,
            synced=len(target),
            is_closed=leader.is_closing,
            forgets=False,
        )
        self.check_elected(target, leader.is_closing)

    def copy(self, member: int, log: Log) -> None:
        """Drop entries from where two logs part, or else append some."""
        state = self.states[member]
        same = 0
        while same < min(len(log), len(state.log)) and log[same] == state.log[same]:
            same += 1
        if same < len(state.log):
            self.check_dropped(member, same)
            state = replace(
                state, log=state.log[:same], synced=min(state.synced, same), is_closed=False
            )
        else:
            more = log[same : same + self.random.randint(1, 3)]
            state = replace(state, log=state.log + more)
        self.states[member] = state

    def replicate(self, member: int, other: int) -> None:
        """Advance a member towards the log of its leader."""
        leader = self.leaders.get(member)
        if leader is None or not leader.has_taken_over or member == other:
            return
        own = self.states[member]
        if not self.reaches(member, other) or not any(other in group for group in own.groups):
            return
        state = self.states[other]
        if state.promised > leader.epoch and self.rules.fence:
            self.refuse(member, state.promised)
            return
        if other in self.leaders and state.promised < leader.epoch:
            self.leaders.pop(other)
        self.states[other] = replace(
            state, promised=leader.epoch, groups=own.groups, version=own.version
        )
        if not self.rules.adopt_after_the_copy:
            self.states[other] = replace(self.states[other], adopted=leader.epoch)
        self.copy(other, own.log)
        state = self.states[other]
        if own.log[: len(state.log)] == state.log and len(state.log) >= leader.begin:
            self.states[other] = replace(
                state,
                adopted=leader.epoch,
                synced=max(state.synced, leader.begin),
                # All that it may have acknowledged before is in the log so far.
                forgets=state.forgets and (len(state.log) < len(own.log) or own.is_closed),
                # The end belongs to the log: without it a later leader could continue.
                is_closed=leader.began_closed
                or (state.is_closed and state.adopted == leader.epoch),
            )

    def sync(self, member: int, _: int) -> None:
        if member in self.up:
            state = self.states[member]
            self.states[member] = replace(state, synced=len(state.log))

    def sync_other(self, _: int, member: int) -> None:
        self.sync(member, member)

    def write(self, member: int, _: int) -> None:
        leader = self.leaders.get(member)
        if leader is None or not self.serves(leader) or leader.is_closing:
            return
        self.number += 1
        state = self.states[member]
        entry = Entry(leader.epoch, self.number)
        self.states[member] = replace(state, log=(*state.log, entry))

    def serves(self, leader: Leader) -> bool:
        return leader.has_taken_over and leader.confirmed >= leader.begin

    def report(self, member: int, other: int) -> None:
        """A member says how far it is; the leader counts, and acknowledges to its client."""
        leader = self.leaders.get(member)
        if leader is None or not leader.has_taken_over or not self.reaches(member, other):
            return
        state, own = self.states[other], self.states[member]
        if state.adopted != leader.epoch and self.rules.count_own_epoch_only:
            return
        if state.promised != leader.epoch and self.rules.fence:
            return
        leader.recorded[other] = len(state.log)
        leader.synced[other] = state.synced
        leader.versions[other] = state.version
        if leader.is_closing and not state.is_closed and other != member:
            if state.synced == len(own.log) == len(state.log):
                self.states[other] = replace(state, is_closed=True, forgets=False)
                leader.closed.add(other)
        elif state.is_closed:
            leader.closed.add(other)
        self.count(member, leader)

    def count(self, member: int, leader: Leader) -> None:
        own = self.states[member]
        leader.synced[member] = own.synced
        leader.recorded[member] = len(own.log)
        leader.versions[member] = own.version
        confirmed = self.quorum_end(own.groups, leader.synced, own.synced)
        leader.confirmed = max(leader.confirmed, confirmed)
        self.confirm(own.log[: leader.confirmed])
        if self.is_volatile and self.serves(leader):
            acknowledged = self.quorum_end(own.groups, leader.recorded, len(own.log))
            if acknowledged > len(self.acknowledged):
                self.acknowledged = own.log[:acknowledged]
        with_groups = {each for each, version in leader.versions.items() if version == own.version}
        # What the first group alone has confirmed has to be on the second one, too.
        is_on_both = confirmed >= leader.confirmed or not self.rules.both_have_all
        if (
            len(own.groups) == 2
            and is_on_both
            and self.quorate(own.groups, with_groups, confirm=True)
        ):
            version = (leader.epoch, own.version[1] + 1)
            self.states[member] = replace(own, groups=own.groups[1:], version=version)
        if leader.is_closing and leader.confirmed == len(own.log):
            self.states[member] = replace(self.states[member], is_closed=True)
            leader.closed.add(member)
            if self.quorate(own.groups, leader.closed, confirm=True):
                self.decide(own.log)

    def quorum_end(self, groups: tuple[Group, ...], ends: dict[int, int], own: int) -> int:
        """Return up to where a confirming quorum of each group is."""
        if not self.rules.both_groups:
            groups = groups[-1:]
        least = own
        for group in groups:
            ordered = sorted((ends.get(each, 0) for each in group), reverse=True)
            least = min(least, ordered[self.quorums.confirm - 1])
        return least

    def close(self, member: int, _: int) -> None:
        leader = self.leaders.get(member)
        if leader is not None and self.serves(leader):
            leader.is_closing = True

    def replace(self, member: int, other: int) -> None:
        """Begin to replace a member by a new one."""
        leader, own = self.leaders.get(member), self.states[member]
        if leader is None or not self.serves(leader) or leader.is_closing:
            return
        if len(own.groups) == 2 or other == member or other not in own.groups[0]:
            return
        if self.is_volatile:
            return  # what it has acknowledged is not confirmed
        if self.next_member >= self.quorums.members + 3:
            return
        new = self.next_member
        self.next_member += 1
        groups = (own.groups[0], own.groups[0] - {other} | {new})
        self.states[new] = State((groups[0],))
        self.up.add(new)
        version = (leader.epoch, own.version[1] + 1)
        self.states[member] = replace(own, groups=groups, version=version)

    # ---- what must hold -------------------------------------------------------------------------

    def confirm(self, log: Log) -> None:
        shorter = min(len(log), len(self.confirmed))
        if log[:shorter] != self.confirmed[:shorter]:
            raise BrokenError(f"confirmed {self.confirmed} and {log}")
        if self.closed is not None and log != self.closed[: len(log)]:
            raise BrokenError(f"closed with {self.closed}, and confirmed {log}")
        if len(log) > len(self.confirmed):
            self.confirmed = log
        if len(self.confirmed) > len(self.acknowledged) and not self.is_volatile:
            self.acknowledged = self.confirmed

    def decide(self, log: Log) -> None:
        if self.closed is not None and self.closed != log:
            raise BrokenError(f"closed with {self.closed}, and with {log}")
        if len(log) < len(self.confirmed):
            raise BrokenError(f"closed with {log}, confirmed {self.confirmed}")
        self.closed = log

    def check_elected(self, log: Log, is_closed: bool) -> None:
        """A leader has what any member still has of what clients were promised."""
        if self.closed is not None:
            closing = [
                state.is_closed and state.log == self.closed for state in self.states.values()
            ]
            if any(closing) and not (is_closed and log == self.closed):
                raise BrokenError(f"elected with {log}, closed with {self.closed}")
        for promised in (self.confirmed, self.acknowledged):
            held = max(
                (len(promised) if promised == state.log[: len(promised)] else
                 self.common(promised, state.log))
                for state in self.states.values()
            )  # fmt: skip
            if self.common(promised, log) < held:
                raise BrokenError(f"elected with {log}, promised {promised}, {held} are held")
        # What no member has is lost: more members lost their storage than the quorums stand.
        self.confirmed = self.confirmed[: self.common(self.confirmed, log)]
        self.acknowledged = self.acknowledged[: self.common(self.acknowledged, log)]
        if not is_closed:
            self.closed = None

    def common(self, one: Log, other: Log) -> int:
        same = 0
        while same < min(len(one), len(other)) and one[same] == other[same]:
            same += 1
        return same

    def check_dropped(self, member: int, kept: int) -> None:
        log = self.states[member].log
        for promised in (self.confirmed, self.acknowledged):
            if self.common(promised, log) > kept:
                raise BrokenError(f"member {member} drops {log[kept:]}, promised {promised}")

    def check(self) -> None:
        highest = max(state.promised for state in self.states.values())
        for member, leader in self.leaders.items():
            if leader.epoch == highest and self.serves(leader):
                shown = self.states[member].log[: leader.confirmed]
                if self.common(shown, self.confirmed) < len(self.confirmed):
                    raise BrokenError(f"{member} shows {shown}, confirmed {self.confirmed}")


def run(seed: int, steps: int, rules: Rules | None = None) -> Model:
    """Run one history with quorums and a type that follow from the seed."""
    quorums = (
        Quorums(1, 1, 1), Quorums(2, 2, 2), Quorums(2, 2, 1), Quorums(3, 3, 2), Quorums(3, 2, 2),
        Quorums(3, 3, 3), Quorums(5, 5, 3), Quorums(4, 3, 2),
    )  # fmt: skip
    model = Model(seed, quorums[seed % 8], is_volatile=seed % 16 < 8, rules=rules)
    for _ in range(steps):
        model.step()
    return model
