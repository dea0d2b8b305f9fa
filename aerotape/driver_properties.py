"""Properties of the media driver whose values are Java classes for the Java driver.

The C driver has names for what Aeron and Agrona bring along. Its other values are functions, of
its own (`aeron_…`) or of the libraries in `aeron.driver.dynamic.libraries`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from aerotape.errors import ConfigurationError

_LIBRARIES: Final = "aeron.driver.dynamic.libraries"
_SLEEP_MS: Final = "sleep-ms"  # the C driver has it as another with an argument
_IDLE_STRATEGIES: Final = {
    "org.agrona.concurrent.BackoffIdleStrategy": "backoff",
    "org.agrona.concurrent.BusySpinIdleStrategy": "spin",
    "org.agrona.concurrent.NoOpIdleStrategy": "noop",
    "org.agrona.concurrent.SleepingIdleStrategy": "sleep-ns",
    "org.agrona.concurrent.SleepingMillisIdleStrategy": _SLEEP_MS,
    "org.agrona.concurrent.YieldingIdleStrategy": "yield",
    "sleeping": "sleep-ns",
}
_FLOW_CONTROLS: Final = {
    "io.aeron.driver.DefaultMulticastFlowControlSupplier": "multicast_max",
    "io.aeron.driver.DefaultUnicastFlowControlSupplier": "unicast_max",
    "io.aeron.driver.MaxMulticastFlowControlSupplier": "multicast_max",
    "io.aeron.driver.MinMulticastFlowControlSupplier": "multicast_min",
    "io.aeron.driver.TaggedMulticastFlowControlSupplier": "multicast_tagged",
}
# By property: other ways to write the C driver's names.
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "aeron.driver.termination.validator": {
        "io.aeron.driver.DefaultAllowTerminationValidator": "allow",
        "io.aeron.driver.DefaultDenyTerminationValidator": "deny",
    },
    "aeron.conductor.idle.strategy": _IDLE_STRATEGIES,
    "aeron.sender.idle.strategy": _IDLE_STRATEGIES,
    "aeron.receiver.idle.strategy": _IDLE_STRATEGIES,
    "aeron.shared.idle.strategy": _IDLE_STRATEGIES,
    "aeron.sharednetwork.idle.strategy": _IDLE_STRATEGIES,
    "aeron.driver.native.resource.agent.idle.strategy": _IDLE_STRATEGIES,
    "aeron.unicast.FlowControl.supplier": _FLOW_CONTROLS,
    "aeron.multicast.FlowControl.supplier": _FLOW_CONTROLS,
    "aeron.CongestionControl.supplier": {
        "io.aeron.driver.DefaultCongestionControlSupplier": "default",
        "io.aeron.driver.ext.CubicCongestionControlSupplier": "cubic",
        "static": "static",
    },
}


def with_c_names(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the C driver's names for Java's classes.

    What the environment sets is looked at too, and added where it has such a class.

    Raises:
        ConfigurationError: a value that the C driver cannot have.
    """
    named = dict(properties)
    libraries = _given(_LIBRARIES, properties)
    for name, c_names in _NAMES.items():
        value = _given(name, properties)
        if not value or value in c_names.values() or value.startswith("aeron_"):
            c_name = value
        elif value in c_names:
            named[name] = c_name = c_names[value]
        elif libraries and "." not in value:
            continue
        else:
            expected = ", ".join(sorted(set(c_names.values())))
            raise ConfigurationError(
                f"{name}={value}: the C media driver does not have this one, and runs no Java "
                f"classes; expected one of {expected}",
                name,
            )
        if c_name == _SLEEP_MS:
            named[name] = "sleep-ns"
            named.setdefault(f"{name}.init.args", "1ms")
    return named


def _given(name: str, properties: Mapping[str, str]) -> str:
    return properties.get(name) or os.environ.get(name.upper().replace(".", "_")) or ""
