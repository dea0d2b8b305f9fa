"""Wall-clock times as users give them, as nanoseconds since 1970 (UTC).

A time is

* ISO 8601 with a zone: ``2026-03-01T09:30:00.25Z``, ``2026-03-01T10:30+01:00``. Without a zone it
  would be ambiguous, and is refused;
* a number with its unit: ``1772357400s``, and ``ms``, ``us`` or ``ns``; seconds of fewer than 9
  digits, of the years 1970 to 1973, are refused, because ``90s`` would rather be 90 seconds ago;
* a bare number of 12 to 14 digits, which is milliseconds (as in recording descriptors), or of 18
  or 19, which is nanoseconds. Other lengths are ambiguous and refused;
* relative to now: ``10m``, ``2h`` or ``3d`` ago, or with a minus sign ``-90s``, ``-10m``, ``-2h``,
  ``-3d``; ``today`` is the last midnight in UTC, ``now`` the present time;
* in Python also a `datetime` with a zone (pandas' Timestamp is one), or an int: nanoseconds.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from aerotape.errors import ConfigurationError

TimeLike = str | int | datetime
"""The types of a time argument; see this module."""

MAX_TIME_NS: Final = (1 << 63) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_LEAST_DIGITS_OF_SECONDS: Final = 9
_NUMBER: Final = re.compile(r"([0-9]{1,30}) ?(s|ms|us|ns)?", re.ASCII)
_AGO: Final = re.compile(r"(?:-([0-9]{1,30}) ?(s|m|h|d)|([0-9]{1,30}) ?(m|h|d))", re.ASCII)
_AGO_UNITS: Final = {
    "s": _UNITS["s"], "m": 60 * _UNITS["s"], "h": 3_600 * _UNITS["s"], "d": 86_400 * _UNITS["s"],
}  # fmt: skip
_ISO: Final = re.compile(
    r"(?P<minute>\d{4}-?\d\d-?\d\d[T ]\d\d:?\d\d)(?P<second>:?\d\d)?"
    r"(?:[.,](?P<fraction>\d+))? ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A half-open range of recording times; None: no limit.

    Attributes:
        from_ns: nanoseconds since 1970.
        to_ns: nanoseconds since 1970, exclusive.
    """

    from_ns: int | None = None
    to_ns: int | None = None

    def __post_init__(self) -> None:
        if self.from_ns is not None and self.to_ns is not None and self.from_ns > self.to_ns:
            raise ConfigurationError(
                f"the range of times goes backwards: from {format_time(self.from_ns)} "
                f"to {format_time(self.to_ns)}",
                "from_time",
            )

    def __bool__(self) -> bool:
        return self.from_ns is not None or self.to_ns is not None

    @classmethod
    def of(cls, from_time: TimeLike | None, to_time: TimeLike | None) -> TimeRange:
        """Parse both ends. Raises ConfigurationError."""
        return cls(
            None if from_time is None else time_ns(from_time, "from_time"),
            None if to_time is None else time_ns(to_time, "to_time"),
        )


ALL_TIMES: Final = TimeRange()


def time_ns(value: TimeLike, name: str = "time") -> int:
    """Return a time as nanoseconds since 1970.

    Args:
        value: a time as described in this module's docstring.
        name: name of the argument, for errors.

    Raises:
        ConfigurationError: it is not a time, or is ambiguous.
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ConfigurationError(f"{name}: {value.isoformat()} has no time zone", name)
        found = _since_epoch_ns(value) + int(getattr(value, "nanosecond", 0))
    elif isinstance(value, int) and not isinstance(value, bool):
        found = value
    elif isinstance(value, str):
        found = parse_time(value, name)
    else:
        raise ConfigurationError(f"{name}: {value!r} is not a valid time", name)
    if not 0 <= found <= MAX_TIME_NS:
        raise ConfigurationError(f"{name}: {value} is not between the years 1970 and 2262", name)
    return found


def parse_time(text: str, name: str = "time") -> int:
    """Parse a time, to nanoseconds since 1970 (ConfigurationError)."""
    stripped = text.strip()
    found = _relative_ns(stripped)
    if found is None:
        number = _NUMBER.fullmatch(stripped)
        found = _number_ns(number, text, name) if number else _iso_ns(stripped, name)
    if not 0 <= found <= MAX_TIME_NS:
        raise ConfigurationError(f"{name}: {text} is not between the years 1970 and 2262", name)
    return found


def datetime_of_ms(timestamp_ms: int) -> datetime | None:
    """Return milliseconds since 1970 as a datetime in UTC; None when negative or past year 9999."""
    try:
        return _EPOCH + timedelta(milliseconds=timestamp_ms) if timestamp_ms >= 0 else None
    except OverflowError:
        return None


def format_time(time_ns: int) -> str:
    """Format nanoseconds since 1970 as ISO 8601 in UTC, with all nine digits of the second."""
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"


def _relative_ns(text: str) -> int | None:
    """Return a time that is relative to now; None for another form."""
    now_ns = time.time_ns()
    if text == "now":
        return now_ns
    if text == "today":
        return now_ns - now_ns % _AGO_UNITS["d"]
    if match := _AGO.fullmatch(text):
        number, unit = match[1] or match[3], match[2] or match[4]
        return now_ns - int(number) * _AGO_UNITS[unit]
    return None


def _number_ns(number: re.Match[str], text: str, name: str) -> int:
    digits, unit = number[1], number[2]
    if unit is None:
        unit = {12: "ms", 13: "ms", 14: "ms", 18: "ns", 19: "ns"}.get(len(digits))
    if unit is None:
        raise ConfigurationError(
            f"{name}: {text!r} could be seconds or parts of a second since 1970, or a date: write "
            f"{digits}s, {digits}ms, {digits}us, {digits}ns or ISO 8601 with a zone, as in "
            "2026-03-01T09:30:00Z",
            name,
        )
    if unit == "s" and len(digits) < _LEAST_DIGITS_OF_SECONDS:
        raise ConfigurationError(
            f"{name}: {text!r} could be {digits} seconds ago or after the begin of 1970: write "
            f"-{digits}s, or ISO 8601 with a zone, as in 2026-03-01T09:30:00Z",
            name,
        )
    return int(digits) * _UNITS[unit]


def _iso_ns(text: str, name: str) -> int:
    match = _ISO.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"{name}: {text!r} is not a valid time: write ISO 8601 with a zone, as in "
            "2026-03-01T09:30:00Z or 2026-03-01T10:30:00+01:00, a number as in 1772357400000ms, or "
            "10m, -90s or today",
            name,
        )
    if match["zone"] is None:
        raise ConfigurationError(
            f"{name}: {text!r} has no time zone: add Z for UTC, or an offset such as +01:00", name
        )
    fraction = match["fraction"] or ""
    if fraction and match["second"] is None:
        raise ConfigurationError(f"{name}: {text!r} has a fraction but no seconds", name)
    whole = (match["minute"] + (match["second"] or "") + match["zone"]).upper()
    try:
        moment = datetime.fromisoformat(whole)
    except ValueError as error:
        raise ConfigurationError(f"{name}: {text!r} is not a valid time: {error}", name) from None
    return _since_epoch_ns(moment) + int(fraction[:9].ljust(9, "0"))


def _since_epoch_ns(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
