"""What a leader counts of what its members report."""

from __future__ import annotations

import random

from aerotape.archive.features.ledger.protocol.leadership import Leadership, Report
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
from aerotape.archive.features.ledger.protocol.quorums import Quorums

EPOCH = (3, "a")
VERSION = (EPOCH, 1)


def leading(confirmed: int = -1) -> Leadership:
    member_record = MemberRecord(own="a", groups=(("a", "b", "c"),), version=VERSION)
    leadership = Leadership(member_record, Quorums(3, 2), confirmed)
    leadership.reports = {"b": Report(), "c": Report()}
    return leadership


def test_what_the_entries_show_is_confirmed_at_once() -> None:
    """A leader that was elected again has not heard of its members; readers get these entries."""
    leadership = leading(confirmed=70)
    assert leadership.confirmed(90) == leadership.recorded(90) == 70
    leadership.reports["b"].adopt(80, VERSION)
    assert leadership.confirmed(90) == 80
    leadership.reports["b"].disconnect()
    assert leadership.confirmed(90) == 80, "it never decreases"
    assert leading().confirmed(90) == -1


def test_only_members_that_have_adopted_the_epoch_count() -> None:
    """What others have synced may be other entries."""
    leadership = leading()
    leadership.reports["b"] = Report(recorded=90, confirmed=90)
    assert leadership.confirmed(90) == -1
    assert not leadership.has_quorum(of_all=False)
    leadership.reports["b"].adopt(80, VERSION)
    assert leadership.confirmed(90) == 90
    assert leadership.has_quorum(of_all=False)
    assert not leadership.has_quorum(of_all=True)


def test_a_member_that_is_connected_again_has_not_closed_the_ledger() -> None:
    """It opens the ledger when it follows."""
    leadership = leading()
    report = leadership.reports["c"]
    report.adopt(90, VERSION)
    report.has_closed = True
    assert leadership.is_closed
    report.disconnect()
    assert not leadership.is_closed
    assert report == Report()


def test_a_group_takes_over_with_all_that_was_confirmed() -> None:
    """What the old group has confirmed alone has to be in a quorum of the new one."""
    leadership = leading()
    leadership.reports["b"].adopt(90, VERSION)
    assert leadership.confirmed(90) == 90
    leadership.member_record = MemberRecord(
        own="a", groups=(("a", "b", "c"), ("a", "c", "d")), version=(EPOCH, 2)
    )
    leadership.reports["d"] = Report()
    leadership.reports["d"].adopt(50, (EPOCH, 2))
    assert not leadership.has_agreed(90)
    leadership.reports["d"].confirmed = 90
    assert not leadership.has_agreed(90), "one of them does not know the new group"
    leadership.reports["b"].version = (EPOCH, 2)
    assert leadership.has_agreed(90)


def test_what_is_confirmed_never_decreases(seeds: range) -> None:
    """Whatever members report, lose, or are replaced by, and wherever this archive is itself."""
    for seed in range(seeds.start, seeds.stop + 200):
        draw = random.Random(seed)
        leadership = leading(draw.choice((-1, 70)))
        seen = (-1, -1)
        for _ in range(60):
            report = leadership.reports[draw.choice(sorted(leadership.reports))]
            match draw.randrange(4):
                case 0:
                    report.adopt(draw.randrange(100), VERSION)
                case 1:
                    report.confirmed, report.recorded = draw.randrange(100), draw.randrange(100)
                case 2:
                    report.disconnect()
                case _:
                    groups = draw.choice(((("a", "b", "c"),), (("a", "b", "c"), ("a", "c", "d"))))
                    leadership.member_record = MemberRecord(own="a", groups=groups, version=VERSION)
                    leadership.reports.setdefault("d", Report())
            own = draw.randrange(100)
            now = leadership.confirmed(own), leadership.recorded(own)
            assert now[0] >= seen[0] and now[1] >= seen[1]
            seen = now
        assert seen > (-1, -1)
