"""What the values of a field mean: decimals, timestamps and dates.

Here, and nowhere else, it is decided which fields of a schema have such values. The plan of the
decoder (`codecs/payload_plan.py`) and the encoder of JSON (`codecs/payload_encoder.py`) follow.
docs/schemas.md has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aerotape.codecs.schema import (
    Composite,
    Encoding,
    Enum,
    Field,
    Member,
    Presence,
    Type,
)

MAX_PRECISION: Final = 38
"""The maximum of digits of a decimal of Arrow, DuckDB, Polars and Spark."""

OWN_EXPONENT_SCALE: Final = 18
"""Digits after the point of a decimal of which each value has an exponent."""

NANOSECONDS: Final = 9
MICROSECONDS: Final = 6

DIGITS: Final = {
    "int8": 3, "int16": 5, "int32": 10, "int64": 19,
    "uint8": 3, "uint16": 5, "uint32": 10, "uint64": 20,
}  # fmt: skip
"""The most digits of an integer of each primitive type."""

_UNITS: Final = {"second": 0, "millisecond": 3, "microsecond": 6, "nanosecond": 9}
_TIMESTAMP: Final = "utctimestamp"
_DATES: Final = ("LocalMktDate", "UTCDateOnly")
_DATE_PRIMITIVES: Final = ("uint16", "int32", "uint32")
# The unit that a name of a type ends with: utcTimestampUs, UTCTimestampNanos.
_UNIT_OF_NAME: Final = re.compile(
    r"(?P<second>[Ss]ec(?:ond)?s?)$|(?P<millisecond>[Mm]illi(?:second)?s?|M[sS]|_ms)$"
    r"|(?P<microsecond>[Mm]icro(?:second)?s?|U[sS]|_us)$"
    r"|(?P<nanosecond>[Nn]ano(?:second)?s?|N[sS]|_ns)$"
)


@dataclass(frozen=True, slots=True)
class Decimal:
    """A mantissa, times a power of ten.

    Attributes:
        mantissa: an integer.
        exponent: the power, a number or the member that has it.
        precision: digits of the column.
        scale: those after the point.
    """

    mantissa: Member
    exponent: int | Member
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A time since 1970 in UTC.

    Attributes:
        time: an integer; None if that is the field itself.
        unit: the digits of a second that it counts (0, 3, 6 or 9), or the member that has them.
    """

    time: Member | None
    unit: int | Member

    @property
    def scale(self) -> int:
        """Digits of a second of the column: 6 or 9."""
        is_fine = not isinstance(self.unit, int) or self.unit > MICROSECONDS
        return NANOSECONDS if is_fine else MICROSECONDS


@dataclass(frozen=True, slots=True)
class Date:
    """The days since 1970."""


Meaning = Decimal | Timestamp | Date


def meaning_of(kind: Type, semantic_type: str = "", time_unit: str = "") -> Meaning | None:
    """The meaning of the values of a field or of a member; None if they are plain values.

    Args:
        kind: its type.
        semantic_type: the type of FIX that the schema gives it.
        time_unit: the unit that the schema gives it.
    """
    match kind:
        case Composite():
            return _decimal(kind) or _timestamp_of_parts(kind, semantic_type)
        case Encoding() if _is_integer(kind):
            is_date = (semantic_type or kind.name).startswith(_DATES)
            if is_date and kind.primitive.name in _DATE_PRIMITIVES:
                return Date()
            return _timestamp(kind, semantic_type, time_unit)
    return None


Scopes = Sequence[Sequence[Field]]
"""The fields of a body, of the one that it is in, and so on."""


def exponent_of(field: Field, scopes: Scopes) -> tuple[int, Field] | None:
    """Return the field with the exponent of a mantissa, and how many bodies further out it is.

    Only Binance's schemas say so, in an attribute of their own. None for another field.
    """
    if not field.exponent or not _is_integer(field.type) or not _is_variable(field.type):
        return None
    for level, fields in enumerate(scopes):
        for each in fields:
            if each.name == field.exponent:
                return (level, each) if _is_integer(each.type) else None
    return None


def _is_integer(kind: Type) -> bool:
    return isinstance(kind, Encoding) and kind.primitive.name in DIGITS and kind.length == 1


def _is_variable(kind: Type) -> bool:
    return isinstance(kind, Enum) or (
        isinstance(kind, Encoding) and kind.presence is not Presence.CONSTANT
    )


def _two(composite: Composite, first: str, second: str) -> tuple[Member, Member] | None:
    """Return the only two members of a composite, if these are their names in any case."""
    members = {member.name.lower(): member for member in composite.members}
    if members.keys() != {first, second} or not _is_integer(members[first].type):
        return None
    return (members[first], members[second]) if _is_variable(members[first].type) else None


def _constant(kind: Type) -> int | None:
    constant = kind.constant if isinstance(kind, Encoding) else None
    return constant if isinstance(constant, int) else None


def _decimal(composite: Composite) -> Decimal | None:
    parts = _two(composite, "mantissa", "exponent")
    if parts is None or not _is_integer(parts[1].type):
        return None
    mantissa, exponent = parts
    assert isinstance(mantissa.type, Encoding)
    power = _constant(exponent.type)
    if power is None:
        return Decimal(mantissa, exponent, MAX_PRECISION, OWN_EXPONENT_SCALE)
    scale = max(-power, 0)
    precision = max(DIGITS[mantissa.type.primitive.name] + max(power, 0), scale)
    # What no decimal of the targets can have remains a mantissa and an exponent.
    return Decimal(mantissa, power, precision, scale) if precision <= MAX_PRECISION else None


def _timestamp_of_parts(composite: Composite, semantic_type: str) -> Timestamp | None:
    parts = _two(composite, "time", "unit")
    of_schema = semantic_type or composite.name
    if parts is None or not of_schema.lower().startswith(_TIMESTAMP):
        return None
    time, unit = parts
    if _is_variable(unit.type):
        is_number = isinstance(unit.type, Enum) or _is_integer(unit.type)
        return Timestamp(time, unit) if is_number else None
    digits = _constant(unit.type)
    return Timestamp(time, digits) if digits in _UNITS.values() and digits is not None else None


def _timestamp(kind: Encoding, semantic_type: str, time_unit: str) -> Timestamp | None:
    size = kind.primitive.size
    unit = time_unit
    if (semantic_type or kind.name).lower().startswith(_TIMESTAMP):
        found = _UNIT_OF_NAME.search(kind.name)
        # The last one is the default of the standard.
        unit = unit or (found and found.lastgroup) or ("nanosecond" if size == 8 else "")
    elif semantic_type or size < 8:
        return None
    digits = _UNITS.get(unit)
    if digits is None or size < 4 or kind.presence is Presence.CONSTANT:
        return None
    return Timestamp(None, digits)
