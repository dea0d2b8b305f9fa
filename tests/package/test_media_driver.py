"""The media driver's directory, its defaults, and properties whose values are Java classes."""

from __future__ import annotations

from pathlib import Path

import pytest

import aerotape
from aerotape import _native
from aerotape.media_driver import default_aeron_dir, launch_driver, with_c_names

VALIDATOR = "aeron.driver.termination.validator"
SHARED = "aeron.shared.idle.strategy"
TIMER = "aeron.timer.interval"
IDLE_CLASSES = ("Backoff", "BusySpin", "NoOp", "Sleeping", "SleepingMillis", "Yielding")
PROPERTIES = [{SHARED: f"org.agrona.concurrent.{name}IdleStrategy"} for name in IDLE_CLASSES] + [
    {
        VALIDATOR: "io.aeron.driver.DefaultAllowTerminationValidator",
        "aeron.driver.native.resource.agent.idle.strategy": "sleep-ms",
        "aeron.unicast.FlowControl.supplier": "io.aeron.driver.DefaultUnicastFlowControlSupplier",
        "aeron.CongestionControl.supplier": "io.aeron.driver.ext.CubicCongestionControlSupplier",
    },
    {
        VALIDATOR: "io.aeron.driver.DefaultDenyTerminationValidator",
        "aeron.sender.idle.strategy": "org.agrona.concurrent.NoOpIdleStrategy",
        "aeron.multicast.FlowControl.supplier": "io.aeron.driver.MinMulticastFlowControlSupplier",
        "aeron.CongestionControl.supplier": "static",
    },
    # A strategy of the C driver.
    {VALIDATOR: "aeron_driver_termination_validator_default_allow", SHARED: "sleeping"},
]


@pytest.mark.parametrize("given", PROPERTIES, ids=lambda given: next(iter(given.values())))
def test_a_driver_runs_with_aerons_classes(tmp_path: Path, given: dict[str, object]) -> None:
    """The C driver accepts the translated names of Java classes of Aeron and Agrona."""
    fast = {"aeron.threading.mode": "SHARED", "aeron.term.buffer.sparse.file": True}
    with aerotape.MediaDriver.launch(tmp_path / "aeron", {**fast, **given}) as driver:
        assert not driver.is_closed


def test_classes_in_the_environment_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java class in an environment variable becomes a property; other values are not changed."""
    monkeypatch.setenv("AERON_SHARED_IDLE_STRATEGY", "org.agrona.concurrent.NoOpIdleStrategy")
    monkeypatch.setenv("AERON_SENDER_IDLE_STRATEGY", "spin")
    assert with_c_names({}) == {SHARED: "noop"}


def test_sleeping_milliseconds_is_an_argument_of_sleeping() -> None:
    """The C driver has no other such strategy; an explicit argument is retained."""
    arguments = f"{SHARED}.init.args"
    assert with_c_names({SHARED: "sleep-ms"}) == {SHARED: "sleep-ns", arguments: "1ms"}
    given = {SHARED: "sleep-ms", arguments: "2ms"}
    assert with_c_names(given) == {SHARED: "sleep-ns", arguments: "2ms"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (VALIDATOR, "com.example.Mine", "allow, deny"),
        (SHARED, "org.agrona.concurrent.ControllableIdleStrategy", "backoff, noop, sleep-ms"),
        (SHARED, "backof", "backoff, noop, sleep-ms, sleep-ns, spin, yield"),
        ("aeron.multicast.FlowControl.supplier", "com.example.Mine", "multicast_min"),
        ("aeron.CongestionControl.supplier", "com.example.Mine", "cubic, default, static"),
    ],
)
def test_other_classes_are_refused_with_the_names_to_use(
    tmp_path: Path, name: str, value: str, expected: str
) -> None:
    """The error lists the supported values, and no file is created."""
    with pytest.raises(aerotape.ConfigurationError) as caught:
        aerotape.Archive.launch(
            dir=tmp_path / "archive",
            aeron_dir=tmp_path / "aeron",
            properties={name: value},
        )
    assert str(caught.value).startswith(f"{name}={value}: the C media driver does not have")
    assert expected in str(caught.value)
    assert caught.value.name == name
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "environment", "passed"),
    [
        ({}, "", "100ms"),
        ({}, "2s", None),  # the driver reads its environment
        ({TIMER: "3s"}, "2s", "3s"),
        ({TIMER: "3s"}, "", "3s"),
    ],
)
def test_given_values_override_our_default(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], environment: str, passed: str | None
) -> None:
    """Our default applies if neither a property nor the environment has a value."""
    seen: list[dict[str, str]] = []

    class Driver:
        @staticmethod
        def launch(properties: dict[str, str]) -> None:
            seen.append(properties)

    monkeypatch.setattr(_native, "MediaDriver", Driver)
    monkeypatch.setenv("AERON_TIMER_INTERVAL", environment)
    launch_driver({"aeron.dir": "/there", **given})
    assert [(each["aeron.dir"], each.get(TIMER)) for each in seen] == [("/there", passed)]


def test_default_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is AERON_DIR, else the user's default directory of all Aeron clients."""
    monkeypatch.setenv("AERON_DIR", "/somewhere")
    assert default_aeron_dir() == "/somewhere"
    monkeypatch.delenv("AERON_DIR")
    monkeypatch.setenv("LOGNAME", "someone")
    assert default_aeron_dir() == "/dev/shm/aeron-someone"
