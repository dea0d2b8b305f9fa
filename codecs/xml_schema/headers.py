"""Check the composites that SBE itself reads: message header, group dimensions, data lengths."""

from __future__ import annotations

from aerotape.codecs.schema import Composite, Encoding, Member, Presence, Type
from aerotape.codecs.xml_schema.problems import MistakeError
from aerotape.codecs.xml_schema.values import integer_range

# What a count or a length of 32 bits may be: implementations use signed numbers for them.
_MAX_COUNT = (1 << 31) - 1


def message_header(kind: Type, name: str) -> Composite:
    """Return the header of messages, if it is one."""
    composite = _composite(kind, name, "the numbers of a header")
    for each in ("blockLength", "templateId", "schemaId", "version"):
        _, encoding = _number(composite, each)
        if each == "blockLength":
            _require_unsigned(encoding)
    return composite


def dimensions(kind: Type, name: str) -> Composite:
    """Return the dimensions of a group, if they are that."""
    composite = _composite(kind, name, "blockLength and numInGroup")
    _, length = _number(composite, "blockLength")
    _require_unsigned(length)
    if length.primitive.size == 4:
        _require_maximum(length)
    _, count = _number(composite, "numInGroup")
    least = count.minimum
    if not count.primitive.name.startswith("u") and not (isinstance(least, int) and least >= 0):
        raise MistakeError(
            f'"numInGroup" of composite "{name}" is {count.primitive.name}: expected a minValue '
            "of 0 or more, or an unsigned number"
        )
    _require_maximum(count)
    if isinstance(least, int) and isinstance(count.maximum, int) and least > count.maximum:
        raise MistakeError(
            f'"numInGroup" of composite "{name}": minValue {least} is greater than maxValue '
            f"{count.maximum}"
        )
    return composite


def var_data(kind: Type, name: str) -> tuple[Encoding, Member, Encoding]:
    """Return the length, and the member that contains the data, of a type of variable data."""
    composite = _composite(kind, name, "length and varData")
    at, length = _number(composite, "length")
    _require_unsigned(length)
    _require_maximum(length)
    data = _member(composite, "varData")
    if not isinstance(data.type, Encoding):
        raise MistakeError(f'"varData" of composite "{name}" is not a simple type')
    if data.offset <= at.offset:
        raise MistakeError(f'"varData" of composite "{name}" precedes "length"')
    return length, data, data.type


def _composite(kind: Type, name: str, what: str) -> Composite:
    if not isinstance(kind, Composite):
        raise MistakeError(f'type "{name}" is not a composite: expected one with {what}')
    return kind


def _member(composite: Composite, name: str) -> Member:
    for member in composite.members:
        if member.name == name:
            return member
    raise MistakeError(f'composite "{composite.name}" has no member "{name}"')


def _number(composite: Composite, name: str) -> tuple[Member, Encoding]:
    member = _member(composite, name)
    kind = member.type
    if (
        not isinstance(kind, Encoding)
        or kind.length != 1
        or kind.primitive.code in "cfd"
        or kind.presence is Presence.CONSTANT
    ):
        raise MistakeError(
            f'"{name}" of composite "{composite.name}": expected a single integer that is not '
            "constant"
        )
    return member, kind


def _require_unsigned(encoding: Encoding) -> None:
    if not encoding.primitive.name.startswith("u"):
        raise MistakeError(
            f'"{encoding.name}" is {encoding.primitive.name}: expected an unsigned number'
        )


def _require_maximum(encoding: Encoding) -> None:
    """Require that the numbers have at most 31 bits, and that the null value is none of them."""
    what, size = f'"{encoding.name}"', encoding.primitive.size
    if size == 8:
        raise MistakeError(f"{what} is {encoding.primitive.name}: expected at most 32 bits")
    largest = min(integer_range(encoding.primitive)[1] - 1, _MAX_COUNT)
    if size == 4 and encoding.maximum is None:
        raise MistakeError(f"{what} has 32 bits: expected a maxValue of at most {largest}")
    if isinstance(encoding.maximum, int) and encoding.maximum > largest:
        raise MistakeError(f"{what}: maxValue {encoding.maximum} is greater than {largest}")
