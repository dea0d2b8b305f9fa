"""Encode values of JSON as SBE payloads.

The values are those that `aerotape.codecs.payloads` decodes, as `payload_values` writes them:
groups are lists of objects, sets objects of booleans. Decimals, timestamps and dates may also be
what they are on the wire. Constants have no bytes, and are ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from aerotape.codecs.payload_plan import characters, distinct_names, kind_of
from aerotape.codecs.payload_values import days_of, decimal_parts, timestamp_of
from aerotape.codecs.schema import (
    BitSet,
    ByteOrder,
    Composite,
    Encoding,
    Enum,
    Field,
    Group,
    MessageSchema,
    Presence,
    Schema,
    Type,
    VarData,
)
from aerotape.codecs.semantic_types import (
    NANOSECONDS,
    Date,
    Decimal,
    Meaning,
    Timestamp,
    exponent_of,
    meaning_of,
)
from aerotape.errors import CodecError

_Given = tuple[Sequence[Field], dict[str, Any]]
"""The fields of a body, and the values that it was given."""


class PayloadEncoder:
    """An encoder of one message of a schema, in the schema's version."""

    def __init__(self, schema: Schema, template: str | int) -> None:
        """Select the message by name or id (CodecError)."""
        self._message = schema.message(template)
        self._header = _header(
            schema.header,
            blockLength=self._message.block_length,
            templateId=self._message.id,
            schemaId=schema.id,
            version=schema.version,
        )

    def encode(self, fields: Any) -> bytes:
        """Return the payload, with its header.

        Args:
            fields: the fields, groups and variable data by name. Those left out or None are null,
                which only optional fields and enums can be, or empty groups and data.

        Raises:
            CodecError: a member is unknown or missing, or its value cannot be encoded.
        """
        return self._header + _body(self._message, fields, "", ())


def _body(
    body: MessageSchema | Group, content: Any, where: str, outer: Sequence[_Given]
) -> bytes:
    members = _members(content, where, (*body.fields, *body.groups, *body.var_data))
    scopes = ((body.fields, members), *outer)
    block = bytearray(body.block_length)
    prefix = f"{where}." if where else ""
    for field in body.fields:
        if field.constant is None:
            is_optional = field.presence is Presence.OPTIONAL
            name = f"{prefix}{field.name}"
            meaning = meaning_of(field.type, field.semantic_type, field.time_unit)
            value = members.get(field.name)
            if isinstance(value, str) and (power := _exponent(field, scopes)) is not None:
                value = _mantissa(value, power, name)
            value = _on_wire(meaning, value, field.type, is_optional, name)
            _put(block, field.offset, field.type, is_optional, value, name)
    parts = [bytes(block)]
    for group in body.groups:
        parts.append(_group(group, members.get(group.name), f"{prefix}{group.name}", scopes))
    parts += [_data(each, members.get(each.name), f"{prefix}{each.name}") for each in body.var_data]
    return b"".join(parts)


def _exponent(field: Field, scopes: Sequence[_Given]) -> int | None:
    """Return the exponent of a mantissa that is in another field; None without one."""
    found = exponent_of(field, [fields for fields, _ in scopes])
    if found is None:
        return None
    level, exponent = found
    value = exponent.constant if exponent.constant is not None else None
    value = scopes[level][1].get(exponent.name) if value is None else value
    return value if isinstance(value, int) else None


def _mantissa(value: str, exponent: int, where: str) -> int:
    try:
        return decimal_parts(value, exponent)[0]
    except ValueError:
        raise _unexpected(value, where, f"a number that is whole times 1e{exponent}") from None


def _group(group: Group, value: Any, where: str, outer: Sequence[_Given]) -> bytes:
    entries = [] if value is None else value
    if not isinstance(entries, list):
        raise _unexpected(value, where, "a list of objects")
    head = _header(group.dimensions, blockLength=group.block_length, numInGroup=len(entries))
    bodies = (_body(group, entry, f"{where}[{at}]", outer) for at, entry in enumerate(entries))
    return head + b"".join(bodies)


def _data(data: VarData, value: Any, where: str) -> bytes:
    content = _encoded("" if value is None else value, characters(data.character_encoding), where)
    if len(content) > data.max_length_bytes:
        raise CodecError(f"{where}: {len(content)} bytes, but at most {data.max_length_bytes} fit")
    head = bytearray(data.header_size_bytes)
    _pack(head, 0, data.length, len(content), where)
    return bytes(head) + content


def _put(
    block: bytearray, offset: int, type: Type, is_optional: bool, value: Any, where: str
) -> None:
    """Write the value of a field, or of a member of a composite."""
    match type:
        case Composite():
            members = _members(value, where, type.members)
            for each in type.members:
                presence = each.type.presence if isinstance(each.type, Encoding) else None
                if presence is not Presence.CONSTANT:
                    is_optional = presence is Presence.OPTIONAL
                    name = f"{where}.{each.name}"
                    meaning = meaning_of(each.type, each.semantic_type, each.time_unit)
                    given = members.get(each.name)
                    given = _on_wire(meaning, given, each.type, is_optional, name)
                    _put(block, offset + each.offset, each.type, is_optional, given, name)
        case Enum():
            _pack(block, offset, type, _enum_value(type, value, where), where)
        case BitSet():
            choices = _members(value, where, type.choices)
            bits = 0
            for choice in type.choices:
                is_set = choices.get(choice.name, False)
                if not isinstance(is_set, bool):
                    raise _unexpected(is_set, f"{where}.{choice.name}", "true or false")
                bits |= is_set << choice.bit
            _pack(block, offset, type, bits, where)
        case Encoding():
            _put_encoding(block, offset, type, is_optional, value, where)


def _on_wire(meaning: Meaning | None, value: Any, kind: Type, is_optional: bool, where: str) -> Any:
    """Return a decimal, a timestamp or a date as what it is on the wire; others as they are."""
    expected = "a number that the mantissa can represent"
    try:
        match meaning:
            case Decimal() if not isinstance(value, dict):
                return _decimal(meaning, value, is_optional)
            case Timestamp() if not isinstance(value, dict):
                expected = "a time in UTC, such as 2026-03-01T09:30:00.25Z, in whole units"
                return _timestamp(meaning, value, kind)
            case Date() if isinstance(value, str):
                expected = "a date, such as 2026-03-01"
                return days_of(value)
    except ValueError:
        raise _unexpected(value, where, expected) from None
    return value


def _decimal(meaning: Decimal, value: Any, is_optional: bool) -> dict[str, int | float]:
    """Return the members of a decimal (ValueError)."""
    mantissa, exponent = meaning.mantissa, meaning.exponent
    assert isinstance(mantissa.type, Encoding)
    if value is None and (is_optional or mantissa.type.presence is Presence.OPTIONAL):
        number, power = _null(mantissa.type), 0
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        fixed = exponent if isinstance(exponent, int) else None
        number, power = decimal_parts(value, fixed)
    else:
        raise ValueError
    return {mantissa.name: number} | ({} if isinstance(exponent, int) else {exponent.name: power})


def _timestamp(meaning: Timestamp, value: Any, kind: Type) -> Any:
    """Return the number of a timestamp, or the members if it has some (ValueError)."""
    encoding = kind if meaning.time is None else meaning.time.type
    assert isinstance(encoding, Encoding)
    unit = meaning.unit if isinstance(meaning.unit, int) else NANOSECONDS
    if value is None:
        number = _null(encoding)
    elif isinstance(value, str):
        number, rest = divmod(timestamp_of(value), 10 ** (NANOSECONDS - unit))
        if rest:
            raise ValueError
    elif meaning.time is None:
        return value
    else:
        raise ValueError
    if meaning.time is None:
        return number
    members: dict[str, Any] = {meaning.time.name: number}
    if not isinstance(meaning.unit, int):
        members[meaning.unit.name] = str(unit) if isinstance(meaning.unit.type, Enum) else unit
    return members


def _put_encoding(
    block: bytearray, offset: int, encoding: Encoding, is_optional: bool, value: Any, where: str
) -> None:
    kind, size = kind_of(encoding), encoding.primitive.size
    if value is None and is_optional:
        values = [None] * encoding.length
    elif kind == "number":
        values = [value]
    elif kind == "numbers":
        if not isinstance(value, list) or len(value) != encoding.length:
            raise _unexpected(value, where, f"a list of {encoding.length} numbers")
        values = value
    else:
        content = _encoded(value, kind, where)
        if len(content) > encoding.length or (kind == "bytes" and len(content) < encoding.length):
            raise CodecError(f"{where}: expected {encoding.length} bytes, got {len(content)}")
        block[offset : offset + encoding.length] = content.ljust(encoding.length, b"\0")
        return
    for at, each in enumerate(values):
        number = _null(encoding) if each is None and is_optional else _number(each, encoding, where)
        _pack(block, offset + at * size, encoding, number, where)


def _null(encoding: Encoding) -> int | float:
    null = encoding.null
    return null if not isinstance(null, bytes) else int.from_bytes(null[:1])


def _number(value: Any, encoding: Encoding, where: str) -> int | float:
    if encoding.primitive.name in ("float", "double"):
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        if type(value) in (int, float):
            return value  # type: ignore[no-any-return]
        raise _unexpected(value, where, "a number")
    if type(value) is not int:
        raise _unexpected(value, where, "an integer")
    return value


def _enum_value(enum: Enum, value: Any, where: str) -> int:
    """Return the number of an enum's value: a name, or digits for a number without one."""
    if value is None:
        return enum.null
    for each in enum.values:
        if each.name == value:
            return each.value
    if isinstance(value, str) and value.isdecimal() and len(value) <= 20:
        return int(value)
    raise _unexpected(value, where, f"one of {', '.join(each.name for each in enum.values)}")


def _encoded(value: Any, kind: str, where: str) -> bytes:
    """Return the bytes of a text, of kind utf-8, latin-1, or bytes in hexadecimal."""
    if not isinstance(value, str):
        raise _unexpected(value, where, "a text")
    try:
        return bytes.fromhex(value) if kind == "bytes" else value.encode(kind)
    except ValueError:
        what = "hexadecimal" if kind == "bytes" else f"text in {kind}"
        raise _unexpected(value, where, what) from None


def _header(composite: Composite, **numbers: int) -> bytes:
    """Return a header with these numbers."""
    header = bytearray(composite.size_bytes)
    for name, number in numbers.items():
        member = composite.member(name)
        if not isinstance(member.type, Encoding):
            raise CodecError(f"{name} of composite {composite.name}: expected a number")
        _pack(header, member.offset, member.type, number, f"{composite.name}.{name}")
    return bytes(header)


def _pack(
    block: bytearray, offset: int, type: Encoding | Enum | BitSet, number: Any, where: str
) -> None:
    try:
        struct.pack_into(_format(type), block, offset, number)
    except (struct.error, OverflowError):
        raise CodecError(f"{where}: {number} does not fit {type.primitive.name}") from None


def _format(type: Encoding | Enum | BitSet) -> str:
    prefix = ">" if type.byte_order is ByteOrder.BIG_ENDIAN else "<"
    code = "B" if type.primitive.name == "char" else type.primitive.code
    return f"{prefix}{code}"


def _members(value: Any, where: str, known: Any) -> dict[str, Any]:
    """Return the members of an object, all of which must be known."""
    if not isinstance(value, dict):
        raise _unexpected(value, where, "an object")
    names = [each.name for each in known]
    decoded = dict(zip(distinct_names(names), names, strict=True)) if where else {}
    members = {}
    for name, content in value.items():
        own = name if name in names else decoded.get(name)
        if own is None:
            expected = ", ".join(names) or "no members"
            raise CodecError(f"{where or 'message'}: unknown member {name!r}: expected {expected}")
        members[own] = content
    return members


def _unexpected(value: Any, where: str, expected: str) -> CodecError:
    given = "nothing" if value is None else repr(value)
    return CodecError(f"{where or 'message'}: expected {expected}, got {given[:100]}")
