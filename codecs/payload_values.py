"""Values of decoded payloads in types of JSON, and decimals and times from texts.

Numbers that JSON's readers would round are texts: decimals, with all digits of the column after the
point. Timestamps are ISO 8601 in UTC, ``2026-03-01T09:30:00.250000000Z``, dates ``2026-03-01``,
bytes hexadecimal, and the numbers that JSON lacks ``NaN``, ``Infinity`` and ``-Infinity``.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext
from typing import TYPE_CHECKING, Any, Final

from aerotape.formatting import json_number

if TYPE_CHECKING:
    import pyarrow

_EPOCH: Final = datetime(1970, 1, 1)
_ISO: Final = re.compile(r"([0-9-]{10}T[0-9:]{8})(?:\.([0-9]{1,9}))?Z", re.ASCII)
_PRECISION: Final = 60
_EXACT: Final = Context(prec=_PRECISION, traps=[Inexact, InvalidOperation])
_DIGITS: Final = {"us": 6, "ns": 9}


def json_rows(batch: pyarrow.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch as objects of JSON; columns are in the order of the schema."""
    columns = [[json_value(each) for each in column] for column in batch.columns]
    names = batch.schema.names
    return [
        dict(zip(names, (column[row] for column in columns), strict=True))
        for row in range(batch.num_rows)
    ]


def json_value(scalar: pyarrow.Scalar) -> Any:
    """Return a value in types of JSON."""
    import pyarrow

    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pyarrow.types.is_struct(kind):
        return {kind.field(at).name: json_value(scalar[at]) for at in range(kind.num_fields)}
    if pyarrow.types.is_list(kind):
        return [json_value(each) for each in scalar.values]
    if pyarrow.types.is_timestamp(kind):
        return timestamp_text(scalar.value, _DIGITS[kind.unit])
    value = scalar.as_py()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, Decimal):
        return f"{value:f}" if kind.scale else int(value)
    return value.isoformat() if isinstance(value, date) else value


def timestamp_text(value: int, digits: int) -> str:
    """Return a time since 1970 in UTC, of which so many digits are the fraction of a second."""
    seconds, fraction = divmod(value, 10**digits)
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()}.{fraction:0{digits}d}Z"


def timestamp_of(text: str) -> int:
    """Return the nanoseconds since 1970 of a time in UTC (ValueError)."""
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError
    since = datetime.fromisoformat(found[1]) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + int((found[2] or "").ljust(9, "0"))


def days_of(text: str) -> int:
    """Return the days since 1970 of a date (ValueError)."""
    return (date.fromisoformat(text) - _EPOCH.date()).days


def decimal_parts(value: str | float, exponent: int | None) -> tuple[int, int]:
    """Return mantissa and exponent of a number, or of its text (ValueError).

    Args:
        value: the number; a float is the decimal that its text is.
        exponent: that of the field; None for the one with which the mantissa is the shortest.
    """
    try:
        with localcontext(_EXACT):
            number = Decimal(str(value)).normalize()
            if not number.is_finite() or number.adjusted() > _PRECISION:
                raise ValueError
            power = number.as_tuple().exponent if exponent is None else exponent
            mantissa = number.scaleb(-int(power))
            if mantissa != mantissa.to_integral_value():
                raise ValueError
            return int(mantissa), int(power)
    except ArithmeticError:
        raise ValueError from None
