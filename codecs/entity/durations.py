"""Durations as kafka-journal writes them: Scala's finite durations, ``1 day``, ``90 minutes``."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from aerotape.errors import CodecError
from aerotape.units import MAX_LONG

# Nanoseconds and the texts of a unit; the last one is written, with an s unless it is one.
_UNITS: Final = (
    (86_400_000_000_000, ("d", "day")),
    (3_600_000_000_000, ("h", "hr", "hour")),
    (60_000_000_000, ("m", "min", "minute")),
    (1_000_000_000, ("s", "sec", "second")),
    (1_000_000, ("ms", "milli", "millisecond")),
    (1_000, ("µs", "μs", "micro", "microsecond")),
    (1, ("ns", "nano", "nanosecond")),
)
FACTORS: Final = {
    text + plural: factor
    for factor, texts in _UNITS
    for text in texts
    for plural in ("", "s")
    if len(text) > 2 or not plural
}
"""Nanoseconds of a unit by its text."""
_PATTERN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([a-zµμ]+)")


def parse_expire_after(value: object) -> int:
    """Return the nanoseconds of a duration: a text such as ``1 day``, or milliseconds.

    Raises:
        CodecError: it is not a finite duration.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _checked(value * 1_000_000, value)
    if isinstance(value, str):
        found = _PATTERN.fullmatch(value.strip())
        factor = FACTORS.get(found[2]) if found else None
        if found and factor is not None:
            return _checked(int(Decimal(found[1]) * factor), value)
    raise CodecError(f"{value!r} is not a duration: expected one like '1 day' or '90 minutes'")


def format_expire_after(duration_ns: int) -> str:
    """Return the text of a duration in its largest whole unit.

    Raises:
        CodecError: it is not positive, or longer than an int64 of nanoseconds.
    """
    _checked(duration_ns, duration_ns)
    factor, texts = next(unit for unit in _UNITS if duration_ns % unit[0] == 0)
    count = duration_ns // factor
    return f"{count} {texts[-1]}{'' if count == 1 else 's'}"


def _checked(duration_ns: int, value: object) -> int:
    if not 0 < duration_ns <= MAX_LONG:
        raise CodecError(f"{value!r} is not a valid expiry: must be positive, at most 292 years")
    return duration_ns
