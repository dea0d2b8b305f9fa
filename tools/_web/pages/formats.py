"""How pages show numbers and text."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from aerotape.formatting import printable
from aerotape.tools._cli.times import time_text
from aerotape.tools._web.rest.reading import fields_text as as_json

_GROUP: Final = 3
_SECOND: Final = len("2026-03-01T09:30:00")


def time_of(timestamp_ms: int) -> str:
    """Return a time; "" if there is none."""
    return "" if timestamp_ms < 0 else time_text(timestamp_ms)


def second_of(recorded_time: str | None) -> str:
    """Return the time of a message in whole seconds, as `time_of`; "" if it is not known."""
    return "" if recorded_time is None else f"{recorded_time[:_SECOND].replace('T', ' ')}Z"


def grouped(value: Any) -> Any:
    """Return a number whose digits are in groups of three; others as they are.

    The groups are apart by style, so that a copied number has no separators.
    """
    if not isinstance(value, int):
        return value
    sign, digits = "-" if value < 0 else "", str(abs(value))
    first = len(digits) % _GROUP or _GROUP
    groups = [digits[at : at + _GROUP] for at in range(first, len(digits), _GROUP)]
    return Markup(
        sign + digits[:first] + "".join(f'<span class="group">{each}</span>' for each in groups)
    )


def fields_text(fields: Any) -> str:
    """Return the fields of a payload as JSON, what is not printable escaped."""
    return printable(as_json(fields))


def safe(value: Any) -> Any:
    """Return text without control characters other than line ends and tabs, which HTML lacks."""
    return printable(value, "\n\t") if type(value) is str else value
