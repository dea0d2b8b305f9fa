"""The connection of a leader to one mirror."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aerotape import QualifiedId
from aerotape.archive.features.ledger.mirrors import link
from aerotape.archive.features.ledger.mirrors.leading import Goal
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
from aerotape.codecs.generated.ledger_control import LedgerType
from aerotape.waiting import Pause, Running, Task

RECORD = MemberRecord(own="a", groups=(("a", "b"),))


class CountingSession:
    """A session that counts the requests that need no answer."""

    timeout_ns = 1_000_000_000
    sent = 0

    def service(self, what: str) -> None:
        pass

    def send_unanswered(self, request: object) -> None:
        self.sent += 1


def never(*_: object) -> Task[Any]:
    """Wait for a response that does not come."""
    while True:
        yield from ()
        yield Pause()


def test_a_later_sync_is_requested_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same one is requested again only after a while, in case the mirror could not yet."""
    monkeypatch.setattr(link, "exchange", never)
    monkeypatch.setattr(link, "_SYNC_AGAIN_NS", 3_600_000_000_000)
    goal, session = Goal(), CountingSession()
    mirror = link.MirrorLink(
        "b",
        QualifiedId(0, 7),
        LedgerType.VD_JOURNAL,
        goal,
        opening=never,
        member_record=lambda: RECORD,
        archive_ids=dict,
        request=cast(Any, None),
        may_return=lambda: True,
    )
    mirror.report.adopt(0, RECORD.version)
    mirror.report.recorded = 100
    following = Running(mirror._follow(cast(Any, session), 0))

    def sent_for(position: int) -> int:
        goal.sync_position = position
        for _ in range(3):
            following.advance()
        return session.sent

    assert [sent_for(60), sent_for(60), sent_for(100)] == [1, 1, 2]
    assert sent_for(160) == 2, "the mirror has not recorded so much"
    mirror.report.recorded = 160
    assert sent_for(160) == 3
    mirror.report.confirmed = 160
    assert sent_for(160) == 3
    following.close()
