"""Parsers of the texts of options: numbers, words, lists of ids.

Each takes the text and the option's name as the user knows it, for the error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeVar

from aerotape.catalog.scope_layout import unsigned
from aerotape.errors import ConfigurationError
from aerotape.qualified_id import MAX_UNSIGNED
from aerotape.units import MAX_LONG

_T = TypeVar("_T")
_INTEGER: Final = re.compile(r"-?(?:[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16})")


def integer(text: str, name: str, least: int = 0, most: int = MAX_LONG) -> int:
    """Parse a whole number of a range, decimal, or hexadecimal with 0x."""
    # `int` accepts underscores, and fails at some thousand digits.
    number = None
    if _INTEGER.fullmatch(text.strip()):
        number = int(text, 16 if "x" in text.lower() else 10)
    if number is None or not least <= number <= most:
        raise ConfigurationError(
            f"{name}: {text!r} is not a whole number from {least} to {most}", name
        )
    return number


def int32(text: str, name: str) -> int:
    """Parse a number of 32 bits with a sign, as a stream id is."""
    return integer(text, name, -(1 << 31), (1 << 31) - 1)


def word(text: str, name: str, words: Sequence[_T]) -> _T:
    """Parse one of several words, in any case."""
    for each in words:
        if text.lower() == each:
            return each
    known = ", ".join(map(str, words))
    expected = f"one of {known}" if len(words) > 1 else known
    raise ConfigurationError(f"{name}: {text!r} is not {expected}", name)


def truth(text: str, name: str) -> bool:
    """Parse true or false, in any case."""
    return word(text, name, ("true", "false")) == "true"


def names(text: str, name: str = "") -> tuple[str, ...]:
    """Parse names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def pairs(text: str, name: str) -> dict[str, str]:
    """Parse pairs NAME=VALUE separated by commas; each name once."""
    found = {}
    for part in names(text):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not key or not equals or not value or key in found:
            raise ConfigurationError(f"{name}: {text!r}: expected NAME=VALUE,…", name)
        found[key] = value
    return found


def recording_ids(text: str, name: str) -> tuple[int, ...]:
    """Parse recording ids separated by commas; ascending, each once."""
    ids = sorted({integer(part, name) for part in names(text)})
    if not ids:
        raise ConfigurationError(f"{name}: no recording id in {text!r}", name)
    return tuple(ids)


def scope_ids(text: str, name: str) -> tuple[int, ...]:
    """Parse scope ids separated by commas, unsigned or in two's complement; `all` is ()."""
    if text.strip().lower() == "all":
        return ()
    given = [integer(part, name, -(1 << 63), MAX_UNSIGNED) for part in names(text)]
    ids = tuple(sorted({unsigned(each, name) for each in given}))
    if not ids:
        raise ConfigurationError(f"{name}: no scope id in {text!r}; all scopes are `all`", name)
    return ids


def template(text: str, name: str) -> str | int:
    """Parse the name or the id of a message of an SBE schema: a name begins with a letter."""
    return integer(text, name) if text[:1].isdigit() else text


def plain(text: str, name: str) -> str:
    """Return the text as it is."""
    return text
