"""The role of an archive that follows the log of another member."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.ledger.bare import bare_ledger

from aerotape import QualifiedId
from aerotape.archive.features.ledger.metadata import LedgerMetadata
from aerotape.archive.features.ledger.mirrors.following import Following, LeaderRequest
from aerotape.archive.features.ledger.role import Idle
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.codecs.generated.archive import RecordingSignal
from aerotape.errors import ArchiveError, LedgerFencedError
from aerotape.waiting import Running, Task, run

REQUEST = ReplicationRequest(5, "aeron:udp?endpoint=localhost:8010", 10, dst_recording_id=3)
METADATA = LedgerMetadata(QualifiedId(0, 7), recording_id=3)


class Replications:
    """Replications of which only the calls are noted.

    Attributes:
        stopped: the ids of those that were stopped.
        open: the ids of the subscriptions that have not been closed.
    """

    def __init__(self) -> None:
        self.stopped: list[int] = []
        self.open: set[int] = set()
        self.recordings = SimpleNamespace(subscriptions=self)
        self._ids = 0

    def next_id(self) -> int:
        self._ids += 1
        return self._ids

    def start(self, replication_id: int, observer: object, request: ReplicationRequest) -> None:
        pass

    def stop(self, replication_id: int) -> None:
        self.stopped.append(replication_id)

    def get(self, subscription_id: int) -> int | None:
        return subscription_id if subscription_id in self.open else None


def stored(recording_id: int) -> Task[None]:
    yield from ()


def leader(name: str, correlation_id: int) -> LeaderRequest:
    return cast(Any, name), correlation_id


def test_a_leader_is_attached_until_another_one_is_followed() -> None:
    """Its waits end with the request by which it is followed: the log may be another one then."""
    one, replications = bare_ledger(METADATA.ledger), cast(Any, Replications())
    one.become(Following(replications, leader("first", 5)))
    assert one.role.is_attached(*leader("first", 5))
    assert not one.role.is_attached(*leader("first", 4))
    assert not one.role.is_attached(*leader("other", 5))
    former = one.role
    one.become(Following(replications, leader("other", 5)))
    assert not former.is_attached(*leader("first", 5))
    assert not one.role.is_attached(*leader("first", 5))
    one.become(Idle())
    assert not one.role.is_attached(*leader("other", 5))


def test_the_next_role_waits_for_the_end_of_the_former() -> None:
    """A replication that was stopped may record an image that had arrived before."""
    one, replications = bare_ledger(METADATA.ledger), Replications()
    following = Following(cast(Any, replications), leader("first", 5))
    one.become(following)
    replicating = Running(following.replicate(METADATA, REQUEST, stored))
    replicating.advance()
    following.on_subscribed(9)
    replications.open.add(9)
    one.become(Idle())
    assert replications.stopped == [following.correlation_id]
    waiting = Running(one.await_ended())
    waiting.advance()
    assert not waiting.is_done, "the replication has not ended"
    following.on_signal(3, 9, -1, RecordingSignal.REPLICATE_END)
    waiting.advance()
    assert not waiting.is_done, "its image may still be recorded"
    replications.open.clear()
    waiting.advance()
    assert waiting.is_done
    with pytest.raises(LedgerFencedError):
        replicating.advance()


def test_a_replication_that_fails() -> None:
    """Its error is raised, also in those that wait for its end later."""
    following = Following(cast(Any, Replications()), leader("first", 5))
    replicating = Running(following.replicate(METADATA, REQUEST, stored))
    replicating.advance()
    following.on_failed(0, "no such host")
    following.on_signal(3, 9, -1, RecordingSignal.REPLICATE_END)
    with pytest.raises(ArchiveError, match=r"cannot mirror ledger 0+7: no such host"):
        replicating.advance()
    with pytest.raises(ArchiveError, match="no such host"):
        run(following.await_copied(METADATA))
