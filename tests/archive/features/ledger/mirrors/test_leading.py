"""The role of an archive that leads a ledger, and its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.ledger.bare import bare_ledger

from aerotape import QualifiedId
from aerotape.archive.features.ledger.ledger import Ledger
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.mirrors.leading import Connecting, Leading
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
from aerotape.archive.features.ledger.role import Idle, Role
from aerotape.errors import LedgerFencedError
from aerotape.protocol import ErrorCode
from aerotape.waiting import Running, Task, run

EPOCH = (3, "a")
METADATA = LedgerMetadata(
    QualifiedId(0, 7),
    write_quorum=3,
    ack_quorum=2,
    member_record=MemberRecord(
        own="a", groups=(("a", "b", "c"),), promised=EPOCH, adopted=EPOCH, history=((EPOCH, 0),)
    ),
)


def never(channel: str) -> Task[Any]:
    """Connect to a mirror that does not respond."""
    while True:
        yield from ()


@pytest.fixture
def ledger() -> Ledger:
    """A ledger that this archive leads, with connections to its mirrors."""
    made = bare_ledger(METADATA.ledger)
    connecting = Connecting(
        opening=never,
        archive_id=1,
        control_stream_id=10,
        timeout_ns=60_000_000_000,
        errors=cast(Any, None),
    )
    leading = Leading(made, METADATA, 0, connecting)
    made.become(leading)
    leading.connect(METADATA)
    return made


def test_positions_are_those_of_a_quorum(ledger: Ledger) -> None:
    """Until a mirror has responded, nothing of what this archive has is confirmed."""
    leading = cast(Leading, ledger.role)
    assert leading.confirmed(100) == 0
    leading.links[0].report.adopt(60, METADATA.member_record.version)
    assert leading.confirmed(100) == 60
    leading.disconnect()
    assert leading.confirmed(100) == 100


def test_the_end_of_the_role_ends_what_waits_for_a_quorum(ledger: Ledger) -> None:
    """It is not confirmed: another archive may have been elected without these entries."""
    role = ledger.role
    steps: list[Task[Any]] = [
        role.sync(METADATA, 100),
        role.await_end(METADATA, 100),
        role.close_mirrors(METADATA),
    ]
    waiting = [Running(step) for step in steps]
    for each in waiting:
        each.advance()
    ledger.depose()
    assert isinstance(ledger.role, Idle)
    for each in waiting:
        with pytest.raises(LedgerFencedError, match="has another leader"):
            each.advance()


def test_a_deposed_archive_confirms_nothing(ledger: Ledger) -> None:
    """Steps of a request that begin after the role has ended are refused, not done alone."""
    former = ledger.role
    ledger.depose()
    for role in (former, ledger.role):
        steps: list[Task[Any]] = [
            role.start(cast(Any, SimpleNamespace(metadata=METADATA))),
            role.sync(METADATA, 100),
            role.await_end(METADATA, 100),
            role.close_mirrors(METADATA),
        ]
        for step in steps:
            with pytest.raises(LedgerFencedError):
                run(step)


def test_without_mirrors_there_is_nothing_to_wait_for() -> None:
    """A ledger that only this archive stores is confirmed as soon as it is on storage."""
    role: Role = Idle()
    alone = LedgerMetadata(QualifiedId(0, 7))
    assert run(role.sync(alone, 100)) == 100
    run(role.await_end(alone, 100))
    run(role.close_mirrors(alone))
    assert role.confirmed(100) == role.recorded(100) == 100


def test_depose_ends_the_writer_and_an_election(ledger: Ledger) -> None:
    """What another archive has promised a higher epoch for is not continued here."""
    sent: list[tuple[int, str]] = []
    stopped: list[int] = []
    writer: Any = SimpleNamespace(
        failure="", recording_id=3, on_failed=lambda code, text: sent.append((code, text))
    )
    election: Any = SimpleNamespace(is_fenced=False)
    election.fence = lambda: setattr(election, "is_fenced", True)
    ledger.log.writer, ledger.election = writer, election
    ledger.log._recordings = cast(Any, SimpleNamespace(stop_identity=stopped.append))
    ledger.depose()
    assert election.is_fenced
    assert stopped == [3]
    ((code, text),) = sent
    assert code == LedgerFencedError.code != ErrorCode.GENERIC
    assert "another archive leads it" in text
