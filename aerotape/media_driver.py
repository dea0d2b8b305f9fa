"""The media driver: its directory, its properties, and a C driver inside this process.

Some properties of the Java driver have Java classes as values. The C driver has names for those
that come with Aeron and Agrona. Its other values are built-in functions (`aeron_…`).
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from aerotape import _native
from aerotape.context import Closing
from aerotape.errors import AeronError, ConfigurationError
from aerotape.formatting import shown

# AERONCLIENT_ERROR_DRIVER_TIMEOUT of aeronc.h.
CLIENT_ERROR_DRIVER_TIMEOUT: Final = -1000

# Defaults that differ from the C driver's. With its 1 s it visits all ended and unfreed resources
# in each duty cycle, which makes duty cycles long after many short streams.
DRIVER_DEFAULTS: Final[Mapping[str, str]] = {"aeron.timer.interval": "100ms"}

_SLEEP_MS: Final = "sleep-ms"  # in the C driver: sleep-ns with an argument
_IDLE_STRATEGIES: Final = {
    "org.agrona.concurrent.BackoffIdleStrategy": "backoff",
    "org.agrona.concurrent.BusySpinIdleStrategy": "spin",
    "org.agrona.concurrent.NoOpIdleStrategy": "noop",
    "org.agrona.concurrent.SleepingIdleStrategy": "sleep-ns",
    "org.agrona.concurrent.SleepingMillisIdleStrategy": _SLEEP_MS,
    "org.agrona.concurrent.YieldingIdleStrategy": "yield",
    "sleeping": "sleep-ns",
}
_AGENTS: Final = "conductor sender receiver shared sharednetwork driver.native.resource.agent"
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
    **{f"aeron.{agent}.idle.strategy": _IDLE_STRATEGIES for agent in _AGENTS.split()},
    "aeron.unicast.FlowControl.supplier": _FLOW_CONTROLS,
    "aeron.multicast.FlowControl.supplier": _FLOW_CONTROLS,
    "aeron.CongestionControl.supplier": {
        "io.aeron.driver.DefaultCongestionControlSupplier": "default",
        "io.aeron.driver.ext.CubicCongestionControlSupplier": "cubic",
        "static": "static",
    },
}


def default_aeron_dir() -> str:
    """Return the directory that Aeron's clients and drivers use when none is given.

    The environment variable ``AERON_DIR``, else ``/dev/shm/aeron-<user>``.
    """
    given = os.environ.get("AERON_DIR")
    if given:
        return given
    # As in the C client, USER takes precedence over the system's user database.
    user = os.environ.get("USER") or _system_user()
    return f"/dev/shm/aeron-{user}"


def _system_user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        return "default"


def await_driver(aeron_dir: str, timeout_ns: int, silence_ns: int | None = None) -> None:
    """Wait until a media driver's file exists in `aeron_dir`; the driver may be dead.

    The native client would wait too, but for its driver timeout, and Ctrl-C would not interrupt it.

    Args:
        silence_ns: also wait until the driver's last sign of life is not older than this.

    Raises:
        AeronError: there is no driver after `timeout_ns`, or access is denied.
    """
    deadline_ns = time.monotonic_ns() + timeout_ns
    waited = f" (waited {timeout_ns / 1e9:g} s)" if timeout_ns else ""
    while (problem := _driver_problem(aeron_dir, silence_ns, waited)) is not None:
        if time.monotonic_ns() >= deadline_ns:
            raise problem
        time.sleep(0.01)


def _driver_problem(aeron_dir: str, silence_ns: int | None, waited: str) -> AeronError | None:
    """Return the error for a driver that does not run yet; None if it does."""
    file = Path(aeron_dir) / "cnc.dat"
    try:
        is_there = file.stat().st_size > 0
    except FileNotFoundError:
        is_there = False
    except NotADirectoryError:
        raise AeronError(
            f"no media driver in {aeron_dir}: it is not a directory; give that of one that runs "
            "(aeron_dir, $AERON_DIR)",
            errno.ENOTDIR,
        ).naming("aeron_dir") from None
    except (OSError, ValueError):  # the native client reports it
        return None
    if not is_there:
        return AeronError(
            f"no media driver in {aeron_dir}{waited}: start one,"
            f"{'' if waited else ' wait for it with start_timeout_ns,'} or give the directory of "
            "the one that runs (aeron_dir, $AERON_DIR)",
            CLIENT_ERROR_DRIVER_TIMEOUT,
        ).naming("aeron_dir", "start_timeout_ns")
    if not os.access(file, os.R_OK | os.W_OK):
        raise AeronError(
            f"no permission to use the media driver in {aeron_dir}: run as its user, or give this "
            "user write access to the directory",
            errno.EACCES,
        )
    if silence_ns is None:
        return None
    from aerotape.cnc import CncFile

    try:
        if CncFile(aeron_dir).is_active(silence_ns // 1_000_000):
            return None
    except AeronError as error:  # a driver that is starting fills the file bit by bit
        return error
    return AeronError(
        f"no sign of life from the media driver in {aeron_dir}{waited}; is it dead? start it again",
        CLIENT_ERROR_DRIVER_TIMEOUT,
    )


def launch_driver(properties: Mapping[str, str]) -> _native.MediaDriver:
    """Start a C media driver in this process, with `DRIVER_DEFAULTS` for properties not set.

    Raises:
        AeronError: it cannot start.
        ConfigurationError: the threading mode is INVOKER, a value is an unknown Java class, or the
            directory, which a driver deletes when it starts, has recordings of an archive.
    """
    if properties.get("aeron.threading.mode") == "INVOKER":
        raise ConfigurationError(
            "aeron.threading.mode=INVOKER is not supported: the embedded media driver runs its own"
            " threads; use SHARED for a single one",
            "aeron.threading.mode",
        )
    properties = with_c_names(properties)
    aeron_dir = properties["aeron.dir"]
    if (found := _native.recordings_in(aeron_dir)) is not None:
        raise ConfigurationError(
            f"aeron.dir={aeron_dir}: a media driver deletes its directory when it starts, and "
            f"{found} has recordings of an archive; set another aeron.dir, or move the recordings "
            "out of it",
            "aeron.dir",
        )
    try:
        defaults = {
            name: value for name, value in DRIVER_DEFAULTS.items() if not _given(name, properties)
        }
        return _native.MediaDriver.launch({**defaults, **properties})
    except AeronError as error:
        if error.code != errno.EBUSY and "Active media driver" not in str(error):
            raise
        raise AeronError(
            f"a media driver runs in {aeron_dir} already, or did until a few seconds "
            'ago: use that one (driver="external") or another directory (aeron_dir)',
            error.code,
        ).naming('driver="external"', "aeron_dir") from error


def text_of(value: object) -> str:
    """Return a property's value in the form of properties files."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_c_names(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the C driver's names for Java's classes.

    Properties set in the environment are translated too.

    Raises:
        ConfigurationError: the C driver does not have a value.
    """
    named = dict(properties)
    for name, c_names in _NAMES.items():
        value = _given(name, properties)
        if not value or value in c_names.values() or value.startswith("aeron_"):
            c_name = value
        elif value in c_names:
            named[name] = c_name = c_names[value]
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
    """Return a property's value, else that of its environment variable, else an empty string."""
    return properties.get(name) or os.environ.get(name.upper().replace(".", "_")) or ""


class MediaDriver(Closing):
    """A C media driver inside this process.

    >>> with MediaDriver.launch(aeron_dir="/dev/shm/mine") as driver, Aeron(driver.aeron_dir):
    ...     pass
    """

    def __init__(self, native: _native.MediaDriver) -> None:
        self._native = native

    @classmethod
    def launch(
        cls,
        aeron_dir: str | Path | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> MediaDriver:
        """Start a driver.

        Args:
            aeron_dir: its directory; default: what `properties` or `default_aeron_dir()` say.
            properties: ``aeron.*`` properties, named as the C driver names them.

        Raises:
            AeronError: it cannot start, for example since another one uses the directory.
        """
        all_properties = {name: text_of(value) for name, value in (properties or {}).items()}
        if aeron_dir is not None:
            all_properties["aeron.dir"] = str(aeron_dir)
        all_properties.setdefault("aeron.dir", default_aeron_dir())
        return cls(launch_driver(all_properties))

    @property
    def aeron_dir(self) -> str:
        """The driver's directory."""
        return self._native.aeron_dir

    @property
    def is_closed(self) -> bool:
        return self._native.is_closed

    def close(self) -> None:
        """Stop the driver. Idempotent."""
        self._native.close()

    def __repr__(self) -> str:
        return shown(self, "aeron_dir")
