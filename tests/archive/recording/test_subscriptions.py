"""Subscriptions of recordings that the driver refuses temporarily."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aerotape.aeron import RESOURCE_TEMPORARILY_UNAVAILABLE
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.subscriptions import RecordedSubscription, RecordedSubscriptions
from aerotape.codecs.generated.archive import SourceLocation
from aerotape.errors import AeronError
from aerotape.protocol import ErrorCode
from aerotape.waiting import SOON_NS

CHANNEL, STREAM_ID = "aeron:udp?endpoint=localhost:7777", 10


class Driver:
    """Refuses the first requests for a subscription temporarily; ids count from 100."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.last_id = 99
        self.cancelled: list[int] = []

    def async_add_subscription(self, *_: Any, **__: Any) -> Any:
        self.last_id += 1
        registration_id = self.last_id
        return SimpleNamespace(
            registration_id=registration_id,
            poll=self._poll,
            cancel=lambda: self.cancelled.append(registration_id),
        )

    def _poll(self) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise AeronError("the endpoint is closing", RESOURCE_TEMPORARILY_UNAVAILABLE)
        return SimpleNamespace(close=lambda: None)


class Rig:
    """A request to record a channel that the driver refuses."""

    def __init__(self, refusals: int, timeout_ns: int = 3_600_000_000_000) -> None:
        self.sent: list[Any] = []
        self.driver = Driver(refusals)
        client: Any = self.driver
        mailbox: Any = None
        streams: Any = SimpleNamespace(images=lambda _: set())
        self.subscriptions = RecordedSubscriptions(
            client, mailbox, ErrorLog(), streams, timeout_ns, timeout_ns
        )
        observer: Any = SimpleNamespace(
            on_subscribed=lambda *details: self.sent.append(("ok", *details)),
            on_failed=lambda *details: self.sent.append(("error", *details)),
        )
        self.subscription = RecordedSubscription(
            observer=observer,
            stream_id=STREAM_ID,
            original_channel=CHANNEL,
            source_location=SourceLocation.REMOTE,
            auto_stop=False,
        )
        self.subscriptions.add(self.subscription)


def test_a_channel_that_is_busy_is_recorded_once_it_is_free() -> None:
    """The client receives the final subscription id, by which images are found."""
    rig = Rig(refusals=2)
    rig.subscriptions.do_work()
    assert (rig.sent, rig.subscriptions.wants_within_ns) == ([], SOON_NS)
    while not rig.sent:
        assert rig.subscriptions.wants_within_ns == SOON_NS
        rig.subscriptions.do_work()
    assert rig.driver.refusals == 0
    assert rig.sent == [("ok", 102)]
    assert rig.subscriptions.wants_within_ns is None
    assert rig.subscriptions.find(102) is rig.subscriptions.get(102) is rig.subscription
    assert rig.subscriptions.get(100) is rig.subscriptions.get(101) is None


def test_a_channel_that_stays_busy_is_refused() -> None:
    """After the timeout the client receives the driver's reason."""
    rig = Rig(refusals=2, timeout_ns=0)
    rig.subscriptions.do_work()
    [(kind, *details)] = rig.sent
    assert (kind, details[0]) == ("error", ErrorCode.GENERIC)
    assert "the endpoint is closing" in details[1]
    assert len(rig.subscriptions) == 0
    assert rig.subscriptions.get(100) is None


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_stop_while_the_channel_is_busy(rounds: int) -> None:
    """The start is confirmed, and no request remains at the driver."""
    rig = Rig(refusals=1)
    for _ in range(rounds):
        rig.subscriptions.do_work()
    assert rig.subscription is not None
    rig.subscriptions.unlist(rig.subscription)
    rig.subscriptions.release(rig.subscription)
    assert rig.sent == [("ok", 100)]
    assert rig.subscriptions.wants_within_ns is None
    assert rig.driver.cancelled == [100][rounds:]
    assert rig.subscriptions.get(100) is None
