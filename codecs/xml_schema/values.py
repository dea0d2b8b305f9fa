"""Read attributes and the texts of values: numbers, presences, scalars of a primitive type."""

from __future__ import annotations

import math
import re
import struct
from typing import Final

from aerotape.codecs.schema import PRIMITIVES, Presence, Primitive, Scalar
from aerotape.codecs.xml_schema.document import Element
from aerotape.codecs.xml_schema.problems import MistakeError

BY_NAME: Final = {each.name: each for each in PRIMITIVES if each is not None}
"""The primitive types by name."""

MAX_BLOCK: Final = (1 << 31) - 1
"""The maximum size of a block, an offset or an array in bytes, and of an id."""

_PRESENCES: Final = {each.name.lower(): each for each in Presence}
_DIGITS: Final = re.compile(r"[0-9]{1,10}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_REAL: Final = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|NaN|Infinity|INF)"
)


def required(element: Element, name: str) -> str:
    """Return an attribute that must be there and not empty."""
    value = element.attributes.get(name)
    if not value:
        raise MistakeError(f"attribute {name} is {'missing' if value is None else 'empty'}")
    return value


def number(element: Element, name: str) -> int | None:
    """Return an attribute that is a number of bytes, a version or an id; None without it."""
    text = element.attributes.get(name)
    if text is None:
        return None
    digits = text.strip()
    if not _DIGITS.fullmatch(digits) or int(digits) > MAX_BLOCK:
        raise MistakeError(f"{name} {text!r}: expected a number from 0 to {MAX_BLOCK}")
    return int(digits)


def required_number(element: Element, name: str) -> int:
    """Return a number that must be there."""
    required(element, name)
    value = number(element, name)
    assert value is not None
    return value


def presence(element: Element) -> Presence | None:
    """Return the presence that an element has; None without one."""
    text = element.attributes.get("presence")
    if text is None:
        return None
    if text not in _PRESENCES:
        raise MistakeError(f"presence {text!r}: expected {', '.join(_PRESENCES)}")
    return _PRESENCES[text]


def scalar(primitive: Primitive, text: str, what: str) -> Scalar:
    """Parse a value of a primitive type.

    Args:
        primitive: the type.
        text: the value as text.
        what: names it in the message.
    """
    if primitive.name == "char":
        return _character(text, what)
    if primitive.code in "fd":
        return _real(primitive, text, what)
    value = integer(text, what)
    least, largest = integer_range(primitive)
    if not least <= value <= largest:
        raise MistakeError(f"{what} {value}: expected a number from {least} to {largest}")
    return value


def integer(text: str, what: str) -> int:
    """Parse an integer of any type."""
    plain = text.strip()
    if not _INTEGER.fullmatch(plain):
        raise MistakeError(f"{what} {text!r}: expected an integer")
    return int(plain)


def _real(primitive: Primitive, text: str, what: str) -> float:
    plain = text.strip()
    if not _REAL.fullmatch(plain):
        raise MistakeError(f"{what} {text!r}: expected a number")
    try:
        packed = struct.pack(f"<{primitive.code}", float(plain))
        value: float = struct.unpack(f"<{primitive.code}", packed)[0]
    except OverflowError:
        value = math.inf
    if math.isinf(value) and "I" not in plain:
        raise MistakeError(f"{what} {plain}: out of the range of {primitive.name}")
    return value


def integer_range(primitive: Primitive) -> tuple[int, int]:
    """Return the least and the largest number that a primitive type can represent."""
    bits = 8 * primitive.size
    if primitive.name.startswith(("u", "char")):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _character(text: str, what: str) -> bytes:
    # A space is a value; around another character it is layout.
    one = text if len(text) == 1 else text.strip()
    if len(one) != 1 or not one.isascii():
        raise MistakeError(f"{what} {text!r}: expected one character of US-ASCII")
    return one.encode()


def characters(text: str, encoding: str, length: int | None, what: str) -> bytes:
    """Encode a constant array of characters, NULs after it up to its length if it has one."""
    try:
        value = text.encode(encoding or "US-ASCII")
    except LookupError:
        raise MistakeError(f"characterEncoding {encoding!r} is not known") from None
    except UnicodeError:
        raise MistakeError(f"{what} {text!r}: expected characters of {encoding}") from None
    if length is not None and len(value) > length:
        raise MistakeError(f"{what} {text!r} is longer than length {length}")
    return value.ljust(length or 0, b"\0")
