"""Random histories of a ledger: members that do what `archive/features/ledger/protocol/` says.

What is simulated is the world around the protocol: the network, the logs as lists of entries (a
position is an index), crashes, power cuts, directories that are older or empty, lost tails, and
clients. All decisions are those of the protocol's own objects, which a test can change.

Invariants, checked after each step:

* No two members confirm different entries in one place; all closings have the same entries.
* A leader has each confirmed or acknowledged entry that any member still has, and no member that
  catches up drops one.
* A leader that serves, and whose epoch is the highest that was promised, shows all that was
  confirmed.
* No member drops an entry that its own entries show to be confirmed, and a leader has the end that
  one of its electors knows to be decided. Of these invariants only these two are left once an
  operator has put back an older directory without saying so.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from aerotape.archive.features.ledger.protocol import logs
from aerotape.archive.features.ledger.protocol.election import (
    FIRST,
    Adopt,
    Copy,
    Election,
    Promise,
    Query,
)
from aerotape.archive.features.ledger.protocol.leadership import Leadership, Report
from aerotape.archive.features.ledger.protocol.member_record import (
    UNKNOWN,
    Epoch,
    MemberRecord,
    MemberState,
)
from aerotape.archive.features.ledger.protocol.quorums import Quorums
from aerotape.protocol import NULL_VALUE


class Entry(NamedTuple):
    """An entry, unique by its number, with what its writer knew to be confirmed."""

    number: int
    carried: int


Log = tuple[Entry, ...]


@dataclass(frozen=True)
class Stored:
    """What a member has on its disk; `forced` of the log is known to survive a power cut."""

    member_record: MemberRecord
    log: Log = ()
    forced: int = 0
    is_closed: bool = False

    @property
    def carried(self) -> int:
        return min(self.log[-1].carried, len(self.log)) if self.log else 0


@dataclass
class Leading:
    """An archive that leads, until it ends or meets a higher epoch."""

    epoch: Epoch
    leadership: Leadership
    begin: int
    is_closing: bool
    # Who follows, and where the own log ended when that began.
    following: dict[str, int] = field(default_factory=dict)


class BrokenError(AssertionError):
    """An invariant does not hold."""


# What happens, and how often.
_DISTURBANCES: Final[dict[str, float]] = {
    "start": 6, "crash": 2, "restart": 4, "partition": 3, "heal": 4, "sync": 4, "back_up": 1,
    "put_back": 0.5, "wipe": 0.4, "lose_tail": 0.4, "close": 0.6, "replace": 8,
}  # fmt: skip
_ALWAYS: Final = ("start", "restart", "heal")
_PROTOCOL: Final[dict[str, float]] = {
    "advance": 12, "follow": 9, "report": 6, "write": 3, "sync": 2, "sync_other": 3,
}  # fmt: skip


class Model:
    """One history of a ledger."""

    def __init__(
        self,
        seed: int,
        size: int,
        quorums: Quorums,
        *,
        is_volatile: bool,
        disturbances: Mapping[str, float] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        if disturbances is None:
            # Each history has some of the disturbances often, and others never: what they do
            # together is seldom seen if each has all of them.
            disturbances = {
                name: weight if name in _ALWAYS else weight * self.random.choice((0, 0.3, 1, 5))
                for name, weight in _DISTURBANCES.items()
            }
        self.disturbances = disturbances
        self.disturbed = self.random.choice((0.03, 0.08, 0.2))
        # Entries of a batch: many take several steps to copy.
        self.batches = (1, 12) if seed % 5 == 4 else (1, 1, 3)
        self.quorums, self.size, self.is_volatile = quorums, size, is_volatile
        group = tuple("abcdefgh"[:size])
        created = MemberRecord(groups=(group,), promised=(FIRST, group[0]))
        self.disks: dict[str, Stored | None] = {
            each: Stored(replace(created, own=each).create()) for each in group
        }
        self.elections: dict[str, Election] = {}
        self.leaders: dict[str, Leading] = {}
        self.up = set(group)
        self.cut: set[frozenset[str]] = set()
        self.backups: dict[str, Stored] = {}
        # Who has lost something; not those who are new.
        self.lost: set[str] = set()
        self.number = 0
        # What clients know: entries that were confirmed or acknowledged, and the end if closed.
        self.confirmed: Log = ()
        self.acknowledged: Log = ()
        self.closed: Log | None = None
        self.elected = 0
        # Whether an operator has put back a directory without saying so.
        self.is_misled = False

    # ---- the world ------------------------------------------------------------------------------

    def step(self) -> None:
        """Do one random thing, and check what must hold."""
        members, busy = sorted(self.disks), sorted({*self.leaders, *self.elections})
        if not busy or self.random.random() < self.disturbed:
            actions, member = self.disturbances, self.random.choice(members)
        else:
            actions, member = _PROTOCOL, self.random.choice(busy)
        (name,) = self.random.choices(list(actions), list(actions.values()))
        if name in ("close", "replace") and self.leaders:
            member = self.random.choice(sorted(self.leaders))
        getattr(self, name)(member, self.random.choice(members))
        self.check()

    def reaches(self, one: str, other: str) -> bool:
        return {one, other} <= self.up and frozenset((one, other)) not in self.cut

    def state(self, member: str) -> MemberState:
        found = self.disks[member]
        number = ord(member)
        if found is None:
            return MemberState(replace(UNKNOWN, own=member), 0, archive_id=number)
        return MemberState(
            found.member_record,
            len(found.log),
            found.is_closed,
            archive_id=number,
            recording_id=number if found.log or found.member_record.history else NULL_VALUE,
        )

    def disk(self, member: str) -> Stored:
        found = self.disks[member]
        assert found is not None
        return found

    def store(self, member: str, member_record: MemberRecord, **changes: object) -> None:
        self.disks[member] = replace(self.disk(member), member_record=member_record, **changes)  # type: ignore[arg-type]

    def end(self, member: str) -> None:
        """A member ends: it leads nothing, and leaders are disconnected from it."""
        self.leaders.pop(member, None)
        self.elections.pop(member, None)
        for leader in self.leaders:
            self.disconnect(leader, member)

    def crash(self, member: str, _: str) -> None:
        """End a process, or cut the power: then what was not forced may be lost."""
        if member not in self.up or len(self.up) < 2:
            return
        self.up.discard(member)
        self.end(member)
        found = self.disks[member]
        if found is not None and self.random.random() < 0.5:
            kept = self.random.randint(found.forced, len(found.log))
            self.lost.add(member)
            # A PD ledger has acknowledged only what is forced.
            forgets = found.member_record.forgets or self.is_volatile
            self.disks[member] = replace(
                found,
                member_record=replace(found.member_record, forgets=forgets),
                log=found.log[:kept],
                is_closed=found.is_closed and kept == len(found.log),
            )

    def restart(self, _: str, __: str) -> None:
        self.up.update(self.random.sample(sorted(self.disks), 1 + len(self.disks) // 2))

    def partition(self, member: str, other: str) -> None:
        """Cut the network between two members, or between two parts of all."""
        part = {member}
        if self.random.random() < 0.5:
            part |= set(self.random.sample(sorted(self.disks), self.random.randrange(self.size)))
            others = self.disks.keys() - part
        else:
            others = {other} - part
        for one, two in itertools.product(part, others):
            self.cut.add(frozenset((one, two)))
            self.disconnect(one, two)
            self.disconnect(two, one)

    def disconnect(self, leader: str, member: str) -> None:
        """Take that a leader hears no more of a member."""
        leading = self.leaders.get(leader)
        if leading is not None and member in leading.leadership.reports:
            leading.following.pop(member, None)
            leading.leadership.reports[member].disconnect()

    def heal(self, _: str, __: str) -> None:
        # A set has another order in each process: a seed would be another history.
        cut = sorted(self.cut, key=sorted)
        self.cut = {each for each in cut if self.random.random() < 0.4}

    def back_up(self, member: str, _: str) -> None:
        if (found := self.disks[member]) is not None:
            self.backups[member] = replace(found, log=found.log[: found.forced])

    def put_back(self, member: str, _: str) -> None:
        """Put a directory back to an older state, which its operator says."""
        found, backup = self.disks[member], self.backups.get(member)
        if not backup or not found:
            return
        # One with other groups could elect a leader with a member that was replaced.
        if backup.member_record.groups == found.member_record.groups and self.may_lose():
            self.end(member)
            self.lost.add(member)
            record = replace(backup.member_record, forgets=True)
            self.disks[member] = replace(backup, member_record=record, forced=len(backup.log))

    def put_back_silently(self, member: str, _: str) -> None:
        """Put a directory back to an older state, which nobody says."""
        found, backup = self.disks[member], self.backups.get(member)
        if backup and found:
            self.end(member)
            self.is_misled = True
            self.disks[member] = replace(backup, forced=len(backup.log))

    def wipe(self, member: str, _: str) -> None:
        """Start a member with an empty directory.

        So may more members than the quorums stand: then none is elected that lacks what another
        one has.
        """
        others = [each for each in self.disks if each != member and self.disks[each] is not None]
        if others:
            self.end(member)
            self.lost.add(member)
            self.disks[member] = None
            self.backups.pop(member, None)

    def lose_tail(self, member: str, _: str) -> None:
        """Lose the end of a log that was on storage, which its member knows."""
        found = self.disks[member]
        if found is not None and found.log and self.may_lose():
            self.end(member)
            self.lost.add(member)
            kept = self.random.randrange(len(found.log))
            # A VD ledger has acknowledged what was not forced, too.
            had = len(found.log) if self.is_volatile else found.forced
            forgets = found.member_record.forgets or kept < had
            self.disks[member] = replace(
                found,
                member_record=replace(found.member_record, forgets=forgets),
                log=found.log[:kept],
                forced=min(found.forced, kept),
            )

    def may_lose(self) -> bool:
        """Whether another member may lose what it has: a confirming quorum does not."""
        lost = {each for each in self.lost if self.forgets(each)}
        return len(self.up) > 1 and len(lost) + 1 < self.quorums.confirming(self.size)

    def forgets(self, member: str) -> bool:
        found = self.disks[member]
        return found is None or found.member_record.forgets

    # ---- elections ------------------------------------------------------------------------------

    def start(self, member: str, _: str) -> None:
        """Lead, as an open or a recovery does."""
        found = self.disks[member]
        if member in self.up and found is not None and member in found.member_record.members:
            self.leaders.pop(member, None)
            serves = self.random.random() < 0.5
            self.elections[member] = Election(self.state(member), self.quorums, serves=serves)

    def fence(self, member: str) -> None:
        """A member has promised an epoch: what it does in a lower one ends."""
        self.leaders.pop(member, None)
        if member in self.elections:
            self.elections[member].fence()

    def advance(self, member: str, _: str) -> None:
        """Carry out a part of the next step of an election."""
        election = self.elections.get(member)
        if election is None:
            return
        match election.step():
            case Query(members):
                other = self.random.choice(sorted(members))
                if other in self.disks and self.reaches(member, other):
                    election.reply(other, self.state(other))
                else:
                    election.give_up(other)
            case Promise(epoch, members):
                own = self.disk(member)
                if own.member_record.promised != epoch:
                    if own.member_record.promised > epoch:
                        del self.elections[member]
                        return
                    self.unfollow(member)
                    promised = replace(own.member_record, promised=epoch)
                    self.store(member, promised, forced=len(own.log))
                    election.promise(self.state(member))
                elif members:
                    self.ask_promise(member, self.random.choice(sorted(members)), epoch)
            case Copy(source):
                self.take_over(member, election, source)
            case Adopt(member_record, is_closed, electors):
                self.check_decided(member, electors)
                self.adopt(member, member_record, is_closed)
            case _:
                del self.elections[member]

    def ask_promise(self, member: str, other: str, epoch: Epoch) -> None:
        election, own = self.elections[member], self.disk(member)
        if not self.reaches(member, other):
            election.give_up(other)
            return
        found = self.disks[other]
        if found is None:
            joined = replace(own.member_record, own=other, promised=epoch).join()
            self.disks[other] = Stored(joined)
        elif found.member_record.promised > epoch:
            election.give_up(other)
            return
        else:
            self.fence(other)
            self.unfollow(other)
            self.store(
                other, replace(found.member_record, promised=epoch), forced=len(found.log)
            )
        election.reply(other, self.state(other))

    def unfollow(self, member: str) -> None:
        for leading in self.leaders.values():
            leading.following.pop(member, None)

    def take_over(self, member: str, election: Election, source: MemberState) -> None:
        """Cut the own log, copy the other one, and force it; a part of that at a time."""
        name, own = source.member_record.own, self.disk(member)
        theirs = self.disks.get(name)
        if not self.reaches(member, name) or theirs is None or len(theirs.log) < source.end:
            del self.elections[member]
            return
        if not self.cut_log(member, source, theirs.log[: source.end], own.member_record.promised):
            del self.elections[member]
            return
        own = self.disk(member)
        self.store(member, replace(own.member_record, history=source.member_record.history))
        if self.random.random() < 0.2:
            del self.elections[member]  # interrupted
            return
        self.store(
            member, self.disk(member).member_record, log=theirs.log[: source.end], forced=source.end
        )
        election.copied()

    def cut_log(self, member: str, other: MemberState, log: Log, promised: Epoch) -> bool:
        """Cut a log to where it parts from another one; False: it cannot be followed."""
        own = self.disk(member)
        state = self.state(member)
        kept = logs.kept_end(state, own.carried, other)
        if kept is None:
            return False
        if kept < own.carried:
            raise BrokenError(f"{member} keeps {kept} entries, and {own.carried} are confirmed")
        if not self.is_misled:
            if own.log[:kept] != log[:kept]:
                raise BrokenError(f"{member} keeps {own.log[:kept]}, the other log is {log}")
            self.check_dropped(member, kept)
        is_closed = logs.stays_closed(state, kept, other)
        member_record = own.member_record if is_closed else own.member_record.cut(kept)
        self.store(
            member,
            replace(member_record, promised=promised),
            log=own.log[:kept],
            forced=min(own.forced, kept),
            is_closed=is_closed,
        )
        return True

    def adopt(self, member: str, member_record: MemberRecord, is_closed: bool) -> None:
        own = self.disk(member)
        del self.elections[member]
        if own.member_record.promised > member_record.promised:
            return
        self.store(member, member_record, forced=len(own.log), is_closed=is_closed)
        leadership = Leadership(member_record, self.quorums, own.carried)
        leadership.reports = {each: Report() for each in member_record.members if each != member}
        self.leaders[member] = Leading(
            member_record.adopted, leadership, len(own.log), is_closed
        )
        self.elected += 1
        # A member that has adopted a later epoch was elected, or follows one that was: this leader
        # comes too late, and serves nobody.
        if all(each.member_record.adopted <= member_record.adopted for each in self.stored()):
            self.check_elected(member_record.members, own.log, is_closed)

    # ---- leaders --------------------------------------------------------------------------------

    def follow(self, member: str, other: str) -> None:
        """Connect to a member, or let it copy some entries, and adopt the epoch then."""
        leading = self.leaders.get(member)
        if leading is None or other not in leading.leadership.reports:
            return
        if not self.reaches(member, other):
            return
        own, report = self.disk(member), leading.leadership.reports[other]
        sent, found = replace(own.member_record, own=other), self.disks[other]
        if found is not None and found.member_record.promised > leading.epoch:
            self.leaders.pop(member)
            return
        if other not in leading.following:
            self.fence(other)
            self.unfollow(other)
            report.disconnect()
            if found is None:
                self.disks[other] = Stored(UNKNOWN.follow(sent))
            elif found.member_record.is_decided:
                if len(found.log) != len(own.log):
                    return
            else:
                state = MemberState(sent, len(own.log))
                if not self.cut_log(other, state, own.log, leading.epoch):
                    return
                self.store(other, self.disk(other).member_record.follow(sent))
            leading.following[other] = len(own.log)
            return
        found = self.disk(other)
        if found.member_record.is_decided:
            report.adopt(len(found.log), own.member_record.version)
            report.has_closed = own.is_closed and leading.is_closing
            return
        more = own.log[len(found.log) :][: self.random.randint(0, 3)]
        is_closed = found.is_closed and not more
        self.store(other, found.member_record, log=found.log + more, is_closed=is_closed)
        # It is asked to adopt once it has reported that.
        has_all = not more and len(found.log) >= leading.following[other]
        if report.version != own.member_record.version and has_all:
            member_record = replace(sent, forgets=False, is_decided=False)
            log = self.disk(other).log
            closes = own.is_closed and leading.is_closing
            self.store(other, member_record, forced=len(log), is_closed=closes)
            report.adopt(len(log), own.member_record.version)
            report.has_closed = closes

    def report(self, member: str, other: str) -> None:
        """A member says how far it is; the leader counts, and acknowledges to its client."""
        leading = self.leaders.get(member)
        if leading is None:
            return
        report, own = leading.leadership.reports.get(other), self.disk(member)
        if report is not None and other in leading.following:
            found = self.disk(other)
            report.recorded, report.confirmed = len(found.log), found.forced
            at_end = found.forced == len(found.log) == len(own.log)
            if report.has_adopted and leading.is_closing and own.is_closed and at_end:
                self.store(other, found.member_record, is_closed=True)
                report.has_closed = True
        self.count(member, leading)

    def count(self, member: str, leading: Leading) -> None:
        own, leadership = self.disk(member), leading.leadership
        confirmed = leadership.confirmed(own.forced)
        self.confirm(own.log[: max(confirmed, 0)])
        if self.is_volatile and self.serves(member, leading):
            acknowledged = leadership.recorded(len(own.log))
            if acknowledged > len(self.acknowledged):
                self.acknowledged = own.log[:acknowledged]
        if len(own.member_record.groups) == 2 and leadership.has_agreed(own.forced):
            self.set_groups(member, leading, own.member_record.groups[1:])
        if leading.is_closing and confirmed == len(own.log):
            own = self.disk(member)
            self.store(member, own.member_record, is_closed=True, forced=len(own.log))
            if leadership.is_closed:
                self.store(member, replace(own.member_record, is_decided=True))
                leadership.member_record = self.disk(member).member_record
                self.decide(own.log)

    def serves(self, member: str, leading: Leading) -> bool:
        has_quorum = leading.leadership.has_quorum(of_all=self.is_volatile)
        return has_quorum and leading.leadership.confirmed(self.disk(member).forced) >= (
            leading.begin
        )

    def sync(self, member: str, _: str) -> None:
        found = self.disks[member]
        if member in self.up and found is not None:
            self.disks[member] = replace(found, forced=len(found.log))

    def sync_other(self, _: str, member: str) -> None:
        self.sync(member, member)

    def write(self, member: str, _: str) -> None:
        """Add a batch, all entries of which carry what was confirmed before it."""
        leading = self.leaders.get(member)
        if leading is None or leading.is_closing or not self.serves(member, leading):
            return
        own = self.disk(member)
        carried = max(leading.leadership.confirmed(own.forced), 0)
        for _number in range(self.random.choice(self.batches)):
            self.number += 1
            own = replace(own, log=(*own.log, Entry(self.number, carried)))
        self.disks[member] = own

    def close(self, member: str, _: str) -> None:
        leading = self.leaders.get(member)
        if leading is not None and self.serves(member, leading):
            leading.is_closing = True

    def replace(self, member: str, other: str) -> None:
        """Begin to replace a member by a new one, or by one that was replaced before."""
        leading = self.leaders.get(member)
        if leading is None or leading.is_closing or self.is_volatile:
            return
        groups = self.disk(member).member_record.groups
        if len(groups) == 2 or other == member or other not in groups[0]:
            return
        if not self.serves(member, leading):
            return
        former = sorted(self.disks.keys() - set(groups[0]))
        if former and self.random.random() < 0.5:
            new = self.random.choice(former)
        elif len(self.disks) < self.size + 3:
            new = "abcdefgh"[len(self.disks)]
            self.disks[new] = None
        else:
            return
        self.up.add(new)
        changed = tuple(new if each == other else each for each in groups[0])
        self.set_groups(member, leading, (groups[0], changed))

    def set_groups(
        self, member: str, leading: Leading, groups: tuple[tuple[str, ...], ...]
    ) -> None:
        own = self.disk(member)
        version = (leading.epoch, own.member_record.version[1] + 1)
        member_record = replace(own.member_record, groups=groups, version=version)
        self.store(member, member_record)
        leading.leadership.member_record = member_record
        reports = leading.leadership.reports
        leading.leadership.reports = {
            each: reports.get(each, Report()) for each in member_record.members if each != member
        }
        for former in leading.following.keys() - leading.leadership.reports.keys():
            del leading.following[former]

    # ---- what must hold -------------------------------------------------------------------------

    def confirm(self, log: Log) -> None:
        if self.is_misled:
            return
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
        if self.is_misled:
            return
        if self.closed is not None and self.closed != log:
            raise BrokenError(f"closed with {self.closed}, and with {log}")
        if len(log) < len(self.confirmed):
            raise BrokenError(f"closed with {log}, confirmed {self.confirmed}")
        self.closed = log

    def stored(self) -> list[Stored]:
        return [each for each in self.disks.values() if each is not None]

    def check_elected(self, members: Collection[str], log: Log, is_closed: bool) -> None:
        """A leader has what any member still has of what clients were promised."""
        if self.is_misled:
            return
        # What no member has is lost: more members lost their storage than the quorums stand. An
        # archive that was replaced may have a part of it.
        stored = [each for each in map(self.disks.get, members) if each]
        if not any(each.is_closed and each.log == self.closed for each in stored):
            self.closed = None
        if self.closed is not None and not (is_closed and log == self.closed):
            raise BrokenError(f"elected with {log}, closed with {self.closed}")
        for promised in (self.confirmed, self.acknowledged):
            held_entries = max((common(promised, each.log) for each in stored), default=0)
            if common(promised, log) < held_entries:
                raise BrokenError(f"elected with {log}, promised {promised}, {held_entries} held")
        self.confirmed = self.confirmed[: common(self.confirmed, log)]
        self.acknowledged = self.acknowledged[: common(self.acknowledged, log)]

    def check_decided(self, member: str, electors: Collection[str]) -> None:
        """A leader has the end that electors know to be decided, if it is one."""
        decided = {
            self.disk(each).log for each in electors if self.state(each).has_decided_end
        }
        if len(decided) == 1 and self.disk(member).log not in decided:
            raise BrokenError(f"elected with {self.disk(member).log}, decided is {decided}")

    def check_dropped(self, member: str, kept: int) -> None:
        log = self.disk(member).log
        for promised in (self.confirmed, self.acknowledged):
            if common(promised, log) > kept:
                raise BrokenError(f"{member} drops {log[kept:]}, promised {promised}")

    def check(self) -> None:
        if self.is_misled:
            return
        highest = max(each.member_record.promised for each in self.stored())
        for member, leading in self.leaders.items():
            if leading.epoch == highest and self.serves(member, leading):
                own = self.disk(member)
                shown = own.log[: leading.leadership.confirmed(own.forced)]
                if common(shown, self.confirmed) < len(self.confirmed):
                    raise BrokenError(f"{member} shows {shown}, confirmed {self.confirmed}")


def common(one: Log, other: Log) -> int:
    """Return how many first entries of two logs are the same."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same


_SHAPES: Final = (
    (1, 1, 1), (2, 2, 2), (2, 2, 1), (3, 3, 2), (3, 2, 2), (3, 3, 3), (5, 5, 3), (4, 3, 2),
)  # fmt: skip


def run(
    seed: int,
    steps: int,
    shape: tuple[int, int, int] | None = None,
    disturbances: Mapping[str, float] | None = None,
) -> Model:
    """Run one history with a type, and quorums if they are not given, that follow from the seed.

    Args:
        shape: archives, write quorum and ack quorum, of a PD ledger.
        disturbances: what happens besides the protocol, and how often; None: what the seed says.
    """
    size, write, acknowledge = shape or _SHAPES[seed % 8]
    # A VD ledger is not striped.
    is_volatile = shape is None and seed % 16 < 8 and write == size
    quorums = Quorums(write, acknowledge)
    model = Model(seed, size, quorums, is_volatile=is_volatile, disturbances=disturbances)
    try:
        for _ in range(steps):
            model.step()
    except BrokenError as error:
        error.add_note(f"seed {seed}: {size} archives, {write}/{acknowledge}, {is_volatile=}")
        raise
    return model
