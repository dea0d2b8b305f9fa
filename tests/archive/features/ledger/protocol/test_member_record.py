"""What a member stores, and which of two logs wins."""

from __future__ import annotations

from aerotape.archive.features.ledger.protocol.logs import kept_end, stays_closed
from aerotape.archive.features.ledger.protocol.member_record import (
    NO_EPOCH,
    MemberRecord,
    MemberState,
)

FIRST, SECOND, THIRD = (1, "a"), (2, "b"), (3, "c")
HISTORY = ((FIRST, 0), (SECOND, 30), (THIRD, 60))


def log(end: int, *, is_closed: bool = False, **changes: object) -> MemberState:
    member_record = MemberRecord(own="a", adopted=THIRD, promised=THIRD, history=HISTORY)
    return MemberState(MemberRecord(**{**_fields(member_record), **changes}), end, is_closed)  # type: ignore[arg-type]


def _fields(member_record: MemberRecord) -> dict[str, object]:
    return {each: getattr(member_record, each) for each in MemberRecord.__dataclass_fields__}


def test_a_log_that_was_cut_has_lost_its_last_epochs() -> None:
    """It does not win by them over a longer log of an earlier epoch."""
    assert [log(end).epoch for end in (90, 60, 59, 30, 29)] == [THIRD, THIRD, SECOND, SECOND, FIRST]
    longer = log(55, adopted=SECOND, history=HISTORY[:2])
    assert log(60).rank > longer.rank
    assert log(50).rank < longer.rank
    # One that copies the log of a later leader has all of it as it began, once it has more.
    assert [log(end, adopted=SECOND).epoch for end in (60, 61)] == [SECOND, THIRD]
    assert log(0, history=()).epoch == NO_EPOCH


def test_a_decided_end_wins() -> None:
    """Unless the log may have lost entries: its end is not the one that was decided then."""
    decided = log(40, adopted=FIRST, is_decided=True, is_closed=True)
    assert decided.rank > log(90).rank
    assert log(40, adopted=FIRST, is_decided=True, is_closed=True, forgets=True).rank < log(90).rank


def test_an_archive_that_does_not_know_a_ledger_is_blank() -> None:
    """Unlike one by which it was created, and one that has had a log."""
    sent = MemberRecord(own="b", groups=(("a", "b"),), promised=SECOND, history=HISTORY)
    assert MemberState(sent.join(), 0).is_blank
    assert not MemberState(sent.create(), 0).is_blank
    assert not log(90, forgets=True).is_blank
    assert sent.create().promised == sent.join().promised == SECOND


def test_what_a_member_keeps() -> None:
    """Up to where the logs part; nothing confirmed is cut for a log that lacks it."""
    assert kept_end(log(90), 50, log(80)) == 80
    assert kept_end(log(90), 85, log(80)) is None
    assert kept_end(log(90, history=()), 50, log(80)) == 50


def test_a_closed_member_stays_closed_under_the_same_log() -> None:
    """Under a leader whose ledger is closed, it could elect one that continues the ledger."""
    assert stays_closed(log(80, is_closed=True), 80, log(80))
    assert not stays_closed(log(80), 80, log(80))
    assert not stays_closed(log(80, is_closed=True), 70, log(80))
    assert not stays_closed(log(80, is_closed=True), 80, log(90))
