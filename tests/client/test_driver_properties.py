"""Properties of the media driver that Java's driver takes as names of classes."""

from __future__ import annotations

from pathlib import Path

import pytest

import aerotape
from aerotape.driver_properties import with_c_names

VALIDATOR = "aeron.driver.termination.validator"
SHARED = "aeron.shared.idle.strategy"
IDLE_CLASSES = ("Backoff", "BusySpin", "NoOp", "Sleeping", "SleepingMillis", "Yielding")
PROPERTIES = [
    {VALIDATOR: "io.aeron.driver.DefaultAllowTerminationValidator"},
    {VALIDATOR: "io.aeron.driver.DefaultDenyTerminationValidator"},
    *({SHARED: f"org.agrona.concurrent.{name}IdleStrategy"} for name in IDLE_CLASSES),
    {"aeron.driver.native.resource.agent.idle.strategy": "sleep-ms"},
    {"aeron.sender.idle.strategy": "org.agrona.concurrent.NoOpIdleStrategy"},
    {"aeron.unicast.FlowControl.supplier": "io.aeron.driver.DefaultUnicastFlowControlSupplier"},
    {"aeron.multicast.FlowControl.supplier": "io.aeron.driver.MinMulticastFlowControlSupplier"},
    {"aeron.CongestionControl.supplier": "io.aeron.driver.ext.CubicCongestionControlSupplier"},
    # The C driver's own.
    {VALIDATOR: "aeron_driver_termination_validator_default_allow", SHARED: "sleeping"},
    {"aeron.CongestionControl.supplier": "static"},
]


@pytest.mark.parametrize("given", PROPERTIES, ids=lambda given: next(iter(given.values())))
@pytest.mark.parametrize("place", ["properties", "environment"])
def test_a_driver_runs_with_the_classes_that_aeron_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], place: str
) -> None:
    """Names of Java classes are the C driver's names for it, wherever they are given."""
    properties = given
    if place == "environment":
        properties = {}
        for name, value in given.items():
            monkeypatch.setenv(name.upper().replace(".", "_"), value)
    with aerotape.MediaDriver.launch(
        tmp_path / "aeron",
        {
            "aeron.threading.mode": "SHARED",
            "aeron.term.buffer.sparse.file": True,
            **properties,
        },
    ) as driver:
        assert not driver.is_closed


def test_sleeping_milliseconds_is_an_argument_of_sleeping() -> None:
    """The C driver has no other strategy for it; an argument that was given stays."""
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
    """What cannot be run is named with the names that can, and nothing is made."""
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


def test_functions_of_other_libraries_are_left_to_the_driver() -> None:
    """A plug-in's function is looked up by the driver; a Java class cannot be one."""
    given = {"aeron.driver.dynamic.libraries": "/opt/libmine.so", VALIDATOR: "mine"}
    assert with_c_names(given) == given
    with pytest.raises(aerotape.ConfigurationError):
        with_c_names({**given, VALIDATOR: "com.example.Mine"})
