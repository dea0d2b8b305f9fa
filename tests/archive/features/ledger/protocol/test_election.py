"""An election as an object: replies in, the next step out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aerotape.archive.features.ledger.protocol.election import (
    Adopt,
    Copy,
    Election,
    Promise,
    Query,
    Refusal,
    Refused,
)
from aerotape.archive.features.ledger.protocol.member_record import Epoch, MemberRecord, MemberState
from aerotape.archive.features.ledger.protocol.quorums import Quorums

GROUP = ("a", "b", "c")
OLD: Epoch = (4, "b")
NEW: Epoch = (5, "a")


def member(name: str, end: int = 0, **changes: object) -> MemberState:
    """A member that has followed a leader."""
    member_record = MemberRecord(
        own=name, groups=(GROUP,), promised=OLD, adopted=OLD, history=((OLD, 0),)
    )
    number = ord(name)
    fields: dict[str, object] = {"archive_id": number, "recording_id": number}
    for key in ("is_closed", "is_recording"):
        if key in changes:
            fields[key] = changes.pop(key)
    return MemberState(replace(member_record, **changes), end, **fields)  # type: ignore[arg-type]


def elect(own: MemberState, *others: MemberState, **options: bool) -> Election:
    """Begin an election, with replies to the query; the other members do not respond."""
    election = Election(own, Quorums(3, 2), **options)
    step = election.step()
    assert isinstance(step, Query)
    found = {each.member_record.own: each for each in others}
    for name in step.members:
        if name in found:
            election.reply(name, found[name])
        else:
            election.give_up(name)
    return election


def promise(election: Election, *states: MemberState) -> None:
    """Have members promise what the election asks for; the first one is its own."""
    step = election.step()
    assert isinstance(step, Promise)
    own, *others = (
        replace(each, member_record=replace(each.member_record, promised=step.epoch))
        for each in states
    )
    election.promise(own)
    found = {each.member_record.own: each for each in others}
    for name in step.members:
        if name in found:
            election.reply(name, found[name])
        else:
            election.give_up(name)


def test_a_member_copies_the_best_log_and_adopts_its_epoch() -> None:
    """With the promises of a quorum."""
    own, other = member("a", 50), member("b", 70)
    election = elect(own, other)
    assert election.has_enough
    assert election.step() == Promise(NEW, frozenset({"b"}))
    promise(election, own, other)
    step = election.step()
    assert isinstance(step, Copy)
    assert (step.source.member_record.own, step.source.end) == ("b", 70)
    election.copied()
    step = election.step()
    assert isinstance(step, Adopt)
    assert (step.member_record.adopted, step.member_record.history) == (NEW, ((OLD, 0), (NEW, 70)))
    assert (step.is_closed, step.electors) == (False, frozenset({"a", "b"}))


def test_its_own_log_is_not_copied() -> None:
    """If another one is the same."""
    own, other = member("a", 70), member("b", 70)
    election = elect(own, other)
    promise(election, own, other)
    assert isinstance(election.step(), Adopt)


def test_an_archive_with_an_empty_directory_does_not_count() -> None:
    """A member that lacks entries would be elected with it."""
    own = member("a", 50)
    blank = MemberState(MemberRecord(own="c", forgets=True), 0, archive_id=9)
    election = elect(own, blank)
    assert not election.has_enough
    step = election.step()
    assert isinstance(step, Refused)
    assert step.why is Refusal.TOO_FEW
    assert "1 of its 3 archives respond that have lost nothing" in step.text
    other = member("b", 70)
    assert isinstance(elect(own, blank, other).step(), Promise)


def test_a_cut_does_not_win() -> None:
    """A member that has lost the end of its log has lost the epoch that it had there."""
    late: Epoch = (4, "c")
    own = member("a", 50)
    cut = member("c", 40, adopted=late, history=((OLD, 0), (late, 45)), forgets=True)
    other = member("b", 50)
    election = elect(own, cut, other)
    promise(election, own, cut, other)
    step = election.step()
    assert isinstance(step, Adopt)
    assert step.member_record.history == ((OLD, 0), (NEW, 50))


def test_too_few_promises() -> None:
    """A member that does not respond any more is missing, although it has replied before."""
    own, other = member("a", 50), member("b", 50)
    election = elect(own, other)
    promise(election, own)
    step = election.step()
    assert isinstance(step, Refused)
    assert step.why is Refusal.TOO_FEW


def test_a_group_that_a_member_has_learned_of_meanwhile() -> None:
    """Its leader may have replaced a member since the query: then the new group confirms alone."""
    own, other = member("a", 50), member("b", 70)
    election = elect(own, other)
    replacing = member("b", 70, groups=(GROUP, ("d", "b", "c")), version=(OLD, 1))
    promise(election, own, replacing)
    assert not election.has_enough
    step = election.step()
    assert isinstance(step, Refused)
    assert step.why is Refusal.TOO_FEW


def test_a_leader_that_is_active() -> None:
    """It is fenced only if the caller wants that; one archive that is a member twice never."""
    own, other = member("a", 50), member("b", 50, is_recording=True)
    step = elect(own, other, may_fence=False).step()
    assert step == Refused(Refusal.IN_USE)
    assert isinstance(elect(own, other).step(), Promise)
    step = elect(own, replace(other, archive_id=own.archive_id)).step()
    assert step == Refused(Refusal.TWICE, "a and b are the same")


def test_a_higher_epoch_ends_an_election() -> None:
    """Whatever it is waiting for."""
    election = elect(member("a"), member("b"))
    election.fence()
    assert election.step() == Refused(Refusal.FENCED)


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_closed_log_is_adopted_with_its_end(is_decided: bool) -> None:
    own = member("a", 50)
    other = member("b", 50, is_closed=True, is_decided=is_decided)
    election = elect(own, other)
    promise(election, own, other)
    assert isinstance(election.step(), Copy)
    election.copied()
    step = election.step()
    assert isinstance(step, Adopt)
    assert (step.is_closed, step.member_record.is_decided) == (True, is_decided)


def test_a_decided_end_wins_over_a_higher_epoch() -> None:
    """An older directory, which nobody has said is older, may have elected a leader meanwhile."""
    later: Epoch = (6, "c")
    own = member("a", 50, is_closed=True, is_decided=True)
    other = member("c", 60, promised=later, adopted=later, history=((OLD, 0), (later, 40)))
    election = elect(own, other)
    promise(election, own, other)
    step = election.step()
    assert isinstance(step, Adopt)
    assert (step.is_closed, step.member_record.is_decided) == (True, True)
    assert step.member_record.history[-1] == ((7, "a"), 50)


def test_a_ledger_that_was_created_here() -> None:
    """Its creator asks the others like any member: they may have elected another one meanwhile."""
    created = MemberRecord(own="a", groups=(GROUP,), promised=(1, "a"))
    others = [
        MemberState(replace(created, own=each).create(), 0, archive_id=ord(each)) for each in "bc"
    ]
    election = elect(MemberState(created, 0, archive_id=97), *others)
    step = election.step()
    assert isinstance(step, Promise)
    assert step.epoch == (2, "a")
