"""Parsers and writers of the values of properties.

A parser takes the property's name, for errors, and the text; the writer returns text that the
parser accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aerotape.catalog.layout import (
    MAX_CAPACITY_BYTES,
    MIN_CAPACITY_BYTES,
    checksum_name,
)
from aerotape.channel_uri import ChannelUri
from aerotape.control_address import numeric_address
from aerotape.errors import ConfigurationError
from aerotape.frame_header import ChecksumName
from aerotape.units import (
    MAX_INT,
    MAX_LONG,
    format_duration,
    format_size,
    parse_duration_ns,
    parse_size,
)

# Spins, yields, shortest and longest park in nanoseconds.
Idle = tuple[int, int, int, int]

_64K = 64 * 1024
_1G = 1 << 30
_AGRONA = "org.agrona.concurrent."
_IDLE_STRATEGIES: Mapping[str, Idle] = {
    "backoff": (10, 0, 40_000, 1_000_000),
    "BackoffIdleStrategy": (10, 0, 40_000, 1_000_000),
    "yield": (0, MAX_INT, 1, 1),
    "YieldingIdleStrategy": (0, MAX_INT, 1, 1),
    "spin": (MAX_INT, 0, 1, 1),
    "noop": (MAX_INT, 0, 1, 1),
    "NoOpIdleStrategy": (MAX_INT, 0, 1, 1),
    "BusySpinIdleStrategy": (MAX_INT, 0, 1, 1),
    "sleep-ns": (0, 0, 1_000, 1_000),
    "SleepingIdleStrategy": (0, 0, 1_000, 1_000),
    "sleep-ms": (0, 0, 1_000_000, 1_000_000),
    "SleepingMillisIdleStrategy": (0, 0, 1_000_000, 1_000_000),
}
BACKOFF = _IDLE_STRATEGIES["backoff"]
_IDLE_NAMES = {
    idle: _AGRONA + name for name, idle in _IDLE_STRATEGIES.items() if name.endswith("Strategy")
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: `parse(name, text)` returns it, `write(value)` the text.

    Attributes:
        is_valid: whether a value, also one that was not parsed, is in the range.
        expected: the range, for the error: must be …
    """

    parse: Callable[[str, str], Any]
    write: Callable[[Any], str] = str
    is_valid: Callable[[Any], bool] = lambda _: True
    expected: str = ""


def _required_path(advice: str) -> Callable[[str, str], Path]:
    def parse(name: str, value: str) -> Path:
        if not value:
            raise ConfigurationError(f"{name} is empty: {advice}", name)
        return Path(value)

    return parse


def _choice(*values: str) -> Callable[[str, str], str]:
    def parse(name: str, value: str) -> str:
        if value not in values:
            raise ConfigurationError(f"{name}={value!r}: must be {' or '.join(values)}", name)
        return value

    return parse


def _integer(low: int, high: int) -> Callable[[str, str], int]:
    def parse(name: str, value: str) -> int:
        try:
            if "_" in value:  # int() accepts underscores
                raise ValueError
            number = int(value)
        except ValueError:
            raise ConfigurationError(f"{name}={value!r}: not an integer", name) from None
        if not low <= number <= high:
            raise ConfigurationError(f"{name}={value}: must be between {low} and {high}", name)
        return number

    return parse


def _size_int(name: str, value: str) -> int:
    size = parse_size(name, value)
    if size > MAX_INT:
        raise ConfigurationError(f"{name}={value}: larger than {MAX_INT} bytes", name)
    return size


def _positive_duration(name: str, value: str) -> int:
    duration_ns = parse_duration_ns(name, value)
    if duration_ns < 1_000_000:
        raise ConfigurationError(f"{name}={value}: must be 1ms or more", name)
    return duration_ns


def _checksum(name: str, value: str) -> ChecksumName:
    found = checksum_name(value or "none")
    if found is None:
        raise ConfigurationError(
            f"{name}={value!r}: unsupported checksum, expected CRC-32 or CRC-32C", name
        )
    return found


def _idle(name: str, value: str) -> Idle:
    found = _IDLE_STRATEGIES.get(value.rpartition(".")[2])
    if found is None:
        raise ConfigurationError(
            f"{name}={value!r}: unsupported idle strategy, expected Agrona's Backoff-, Yielding-,"
            " BusySpin-, NoOp-, Sleeping- or SleepingMillisIdleStrategy",
            name,
        )
    return found


def _threading_mode(name: str, value: str) -> str:
    if value == "INVOKER":
        raise ConfigurationError(
            f"{name}=INVOKER: not supported, as no application thread invokes the archive;"
            " expected SHARED or DEDICATED",
            name,
        )
    return _choice("SHARED", "DEDICATED")(name, value)


def _channels(name: str, value: str) -> tuple[str, ...]:
    channels = tuple(value.split())
    for channel in channels:
        try:
            ChannelUri.parse(channel)
        except ConfigurationError as error:
            raise ConfigurationError(f"{name}={value}: {error}", name) from error
    return channels


def _addresses(name: str, value: str) -> tuple[str, ...]:
    try:
        return tuple(map(numeric_address, value.split()))
    except ValueError as error:
        raise ConfigurationError(f"{name}={value}: {error}", name) from error


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _or_empty(value: object) -> str:
    return "" if value is None else str(value)


TEXT = Kind(lambda _, value: value)
PATH = Kind(_required_path("give a directory"))
CHANNELS = Kind(_channels, " ".join)
ADDRESSES = Kind(_addresses, " ".join)
OPTIONAL_PATH = Kind(lambda _, value: Path(value) if value else None, _or_empty)
# An empty variable in a script must not disable authentication.
USERS_FILE = Kind(
    _required_path("give a file, or omit the property to accept all clients"), _or_empty
)
BOOLEAN = Kind(
    lambda name, value: _choice("true", "false")(name, value) == "true",
    lambda value: str(value).lower(),
)
INT32 = Kind(_integer(-MAX_INT - 1, MAX_INT))
INT64 = Kind(_integer(-MAX_LONG - 1, MAX_LONG))
COUNT = Kind(_integer(0, MAX_INT))
SYNC_LEVEL = Kind(_integer(0, 2))
CPU = Kind(_integer(-1, 1023))
# Sizes that the Java archive stores as int and as long.
SIZE = Kind(_size_int, format_size)
LONG_SIZE = Kind(parse_size, format_size)
TERM_LENGTH = replace(
    SIZE,
    is_valid=lambda value: _is_power_of_two(value) and _64K <= value <= _1G,
    expected="a power of two, 64k to 1g",
)
IO_LENGTH = replace(
    SIZE,
    is_valid=lambda value: _is_power_of_two(value) and value >= _64K,
    expected="a power of two, 64k or more",
)
MTU = replace(
    SIZE,
    is_valid=lambda value: 32 < value <= 65504 and value % 32 == 0,
    expected="a multiple of 32 from 64 to 65504",
)
ERROR_BUFFER_LENGTH = replace(
    SIZE, is_valid=lambda value: 1 << 20 <= value <= MAX_INT - 8192, expected="1m or more"
)
CATALOG_CAPACITY = replace(
    LONG_SIZE,
    is_valid=lambda value: MIN_CAPACITY_BYTES <= value <= MAX_CAPACITY_BYTES,
    expected=f"from {MIN_CAPACITY_BYTES} to {MAX_CAPACITY_BYTES} bytes",
)
DURATION = Kind(parse_duration_ns, format_duration)
TIMEOUT = Kind(_positive_duration, format_duration)
CHECKSUM = Kind(_checksum, lambda value: "" if value == "none" else value.upper())
IDLE = Kind(_idle, lambda idle: _IDLE_NAMES[idle])
# Empty: the idle strategy of the archive.
OPTIONAL_IDLE = Kind(
    lambda name, value: _idle(name, value) if value else None,
    lambda idle: "" if idle is None else _IDLE_NAMES[idle],
)
THREADING_MODE = Kind(_threading_mode)
THREAD_NAMING = Kind(_choice("classic", "new"))
RECORDING_SIGNALS = Kind(_choice("requester", "all"))
