"""What the C media driver is told where the user says nothing."""

from __future__ import annotations

import pytest

from aerotape import _native
from aerotape.aeron import launch_driver

TIMER = "aeron.timer.interval"


@pytest.mark.parametrize(
    ("given", "environment", "told"),
    [
        ({}, {}, "100ms"),
        ({}, {"AERON_TIMER_INTERVAL": ""}, "100ms"),
        # The driver reads its own environment.
        ({}, {"AERON_TIMER_INTERVAL": "2s"}, None),
        ({TIMER: "3s"}, {"AERON_TIMER_INTERVAL": "2s"}, "3s"),
        ({TIMER: "3s"}, {}, "3s"),
    ],
)
def test_what_is_given_wins_over_our_default(
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    environment: dict[str, str],
    told: str | None,
) -> None:
    """Ours is for who gives it neither as a property nor in the environment."""
    seen: list[dict[str, str]] = []

    class Driver:
        @staticmethod
        def launch(properties: dict[str, str]) -> None:
            seen.append(properties)

    monkeypatch.setattr(_native, "MediaDriver", Driver)
    monkeypatch.delenv("AERON_TIMER_INTERVAL", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    launch_driver({"aeron.dir": "/there", **given})
    assert [(each["aeron.dir"], each.get(TIMER)) for each in seen] == [("/there", told)]
