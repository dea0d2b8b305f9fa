"""How pages show numbers and text."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from aerotape.formatting import printable
from aerotape.tools._cli.times import time_text
from aerotape.tools._web.rest.reading import fields_text as as_json

MAX_TEXT: Final = 4_096
"""The most characters or bytes of one text in a table."""
_MAX_BRIEF: Final = 1_000
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


def shortened(text: str) -> str:
    """Return a text that fits into a table."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def brief(text: str | None) -> str:
    """Return a text that fits into a list of many."""
    given = text or ""
    return given if len(given) <= _MAX_BRIEF else f"{given[:_MAX_BRIEF]}…"


def message_text(message: dict[str, Any]) -> str:
    """Return what is shown of a message's row: the begin of its fields as JSON, else its payload.

    What is not printable is escaped.
    """
    if message.get("fields") is not None:
        return printable(shortened(as_json(message["fields"])))
    return printable(message["payload"]) + ("" if message["is_whole"] else "…")


def safe(value: Any) -> Any:
    """Return text without control characters other than line ends and tabs, which HTML lacks."""
    return printable(value, "\n\t") if type(value) is str else value
