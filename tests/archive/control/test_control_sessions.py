"""The sessions that are advanced, against all sessions; random histories."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace
from typing import Any

import pytest
from support.control_session_rig import BACK_PRESSURED, ControlSessionRig

from aerotape.archive.control.control_session import SESSION_CLOSED
from aerotape.archive.control.control_sessions import ControlSessions
from aerotape.archive.error_log import ErrorLog

NOT_CONNECTED = -1


class FakeListing:
    """A listing that needs a number of duty cycles."""

    is_sent = False

    def __init__(self, cycles: int) -> None:
        self.cycles = cycles
        self.bulk_offer = object() if cycles % 2 else None

    @property
    def is_done(self) -> bool:
        return self.cycles <= 0

    def do_work(self) -> None:
        self.cycles -= 1


class Sessions:
    """Control sessions with fake publications, and a clock that is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: int) -> None:
        self.now_ms = 0
        self.rigs: dict[int, ControlSessionRig] = {}
        self.count = 0
        self.sessions = ControlSessions(
            subscriptions={},
            replay_tokens=SimpleNamespace(forget=lambda _: None),  # type: ignore[arg-type]
            session_counter=SimpleNamespace(add=lambda _: None),  # type: ignore[arg-type]
            errors=ErrorLog(),
            **options,
        )
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ms * 1_000_000)
        # The client of a session that fails is disconnected, for which there is no image here.
        monkeypatch.setattr(self.sessions, "_reject_stream", lambda _: None)

    def connect(self) -> None:
        self.count += 1
        rig = ControlSessionRig(session_id=self.count)
        self.rigs[self.count] = rig
        self.sessions.add(rig.session)

    def work(self) -> None:
        """Run a duty cycle; all sessions that wanted it have been advanced in it."""
        self.now_ms += 1
        wanting = [each for each in self.sessions if each.wants_within_ns is not None]
        advanced: list[int] = []
        for session in wanting:
            session.do_work = self._noted(session, advanced)  # type: ignore[method-assign]
        self.sessions.do_work()
        for session in wanting:
            del session.do_work
        assert sorted(advanced) == [each.session_id for each in wanting]

    def _noted(self, session: Any, advanced: list[int]) -> Any:
        do_work = session.do_work

        def noted(now_ms: int) -> None:
            advanced.append(session.session_id)
            do_work(now_ms)

        return noted

    def check(self) -> None:
        wanted = [each.wants_within_ns for each in self.sessions]
        assert self.sessions.wants_within_ns == min(
            (each for each in wanted if each is not None), default=None
        )
        bulk_offers = [each.bulk_offer for each in self.sessions if each.bulk_offer is not None]
        assert set(map(id, self.sessions.bulk_offers())) == set(map(id, bulk_offers))


@pytest.mark.parametrize("seed", range(20))
def test_sessions_that_have_work_are_advanced_in_the_next_cycle(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the busy sessions want is what all sessions want, whatever clients and requests do."""
    rng = random.Random(seed)
    rig = Sessions(monkeypatch)
    idle = 0
    for _ in range(1_500):
        known = [each for each in rig.rigs.values() if rig.sessions.get(each.session.session_id)]
        if len(known) < 4:
            rig.connect()
        one = rng.choice(known or list(rig.rigs.values()))
        match rng.randrange(10):
            case 0:
                one.session.send_ok(1)
            case 1:
                one.publication.result = BACK_PRESSURED
            case 2 | 3:
                one.publication.result = None
            case 4 if one.session.is_active and not one.session.is_listing:
                one.session.begin_listing(FakeListing(rng.randrange(1, 5)))  # type: ignore[arg-type]
            case 5 if rng.random() < 0.1:
                one.session.abort(SESSION_CLOSED)
            case 6 if rng.random() < 0.1:
                one.publication.result = NOT_CONNECTED
            case 7:
                one.session.attempt_to_activate()
            case _:
                rig.work()
        rig.check()
        idle += rig.sessions.wants_within_ns is None
    assert idle
    rig.sessions.close()
    assert list(rig.sessions) == []
    rig.check()


def test_idle_sessions_are_looked_at_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Duty cycles for other clients leave idle sessions alone, whose loss is still noticed."""
    rig = Sessions(monkeypatch)
    rig.connect()
    for _ in range(150):
        rig.work()
        rig.rigs[1].session.attempt_to_activate()
    assert rig.sessions.wants_within_ns is None
    rig.rigs[1].publication.is_connected = False
    cycles = 0
    while list(rig.sessions):
        rig.work()
        cycles += 1
    assert 1 < cycles <= 100


@pytest.mark.parametrize("interval_ms", [1, 10, 99])
def test_idle_sessions_are_checked_at_a_short_interval(
    interval_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interval of less than 100 ms is kept, and the conductor does not wait for longer."""
    rig = Sessions(monkeypatch, liveness_check_interval_ms=interval_ms)
    assert rig.sessions.wants_within_ns is None
    rig.connect()
    one = rig.rigs[1]
    one.activate()
    while rig.sessions._busy or rig.sessions.wants_within_ns == 0:
        rig.now_ms += 1
        rig.sessions.do_work()
    checked: list[int] = []
    monkeypatch.setattr(one.session, "do_work", checked.append)
    for _ in range(20):
        wanted_ns = rig.sessions.wants_within_ns
        assert wanted_ns is not None
        assert 0 < wanted_ns <= interval_ms * 1_000_000
        rig.now_ms += wanted_ns // 1_000_000
        rig.sessions.do_work()
    assert len(checked) == 20
    assert checked[-1] - checked[0] == 19 * interval_ms
