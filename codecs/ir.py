"""Read sbe-tool's intermediate representation (`.sbeir`) into a `Schema`.

sbe-tool writes an `.sbeir` file after it has parsed and checked a schema: every type is resolved,
every offset computed. Our own codecs are generated from it, so the rules of SBE are applied by the
reference tool; schemas of users may be such files too.

The layout is that of the schema `sbe-ir.xml` inside sbe-tool's own jar: one *frame* and then
*tokens* up to the end of the file, all little endian and without message headers. A frame is
three int32 and three strings; a token is five int32, four one-byte enums, one int32 and twelve
strings; a string is a uint16 length and that many bytes. Tokens come in matching begin and end
pairs: first the message header composite, then each message with its fields, groups and
variable data in the order of the wire. Parts that no codec uses, such as descriptions, are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from aerotape.codecs.schema import (
    PRIMITIVES,
    BitSet,
    ByteOrder,
    Choice,
    Composite,
    Encoding,
    Enum,
    EnumValue,
    Field,
    Group,
    Member,
    MessageSchema,
    Presence,
    Primitive,
    Scalar,
    Schema,
    Type,
    VarData,
)
from aerotape.errors import CodecError


class Signal(IntEnum):
    """The kind of a token (`SignalCodec` of sbe-ir.xml)."""

    BEGIN_MESSAGE = 1
    END_MESSAGE = 2
    BEGIN_COMPOSITE = 3
    END_COMPOSITE = 4
    BEGIN_FIELD = 5
    END_FIELD = 6
    BEGIN_GROUP = 7
    END_GROUP = 8
    BEGIN_ENUM = 9
    VALID_VALUE = 10
    END_ENUM = 11
    BEGIN_SET = 12
    CHOICE = 13
    END_SET = 14
    BEGIN_VAR_DATA = 15
    END_VAR_DATA = 16
    ENCODING = 17


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the file. Offsets and sizes in bytes."""

    offset: int
    size: int
    field_id: int
    version: int
    signal: Signal
    primitive: Primitive | None
    byte_order: ByteOrder
    presence: Presence
    name: str
    const_value: bytes
    min_value: bytes
    max_value: bytes
    null_value: bytes
    character_encoding: str
    time_unit: str
    semantic_type: str
    referenced_name: str


def read_schema(path: str | Path) -> Schema:
    """Read an `.sbeir` file.

    Raises:
        CodecError: the file is not a valid `.sbeir` file, or is truncated.
        OSError: the file cannot be read.
    """
    source = Path(path)
    try:
        return parse_schema(source.read_bytes())
    except CodecError as error:
        raise CodecError(f"{source}: {error}") from None


def parse_schema(ir: bytes) -> Schema:
    """Parse the bytes of an `.sbeir` file.

    Raises:
        CodecError: the bytes are not a valid `.sbeir` file, or are truncated.
    """
    schema_id, ir_version, version, package, tokens = _read_tokens(ir)
    if ir_version != 0:
        raise CodecError(f"unsupported SBE IR version {ir_version}: expected 0; use sbe-tool 1.x")
    cursor = _Cursor(tokens)
    header = cursor.composite()
    messages = []
    while not cursor.at_end:
        messages.append(cursor.message())
    return Schema(package, schema_id, version, header, tuple(messages))


_FRAME = struct.Struct("<iii")
_TOKEN = struct.Struct("<iiiiiBBBBi")
_LENGTH = struct.Struct("<H")
_TOKEN_STRINGS = 12
_MAX_DEPTH = 100


def _read_tokens(ir: bytes) -> tuple[int, int, int, str, list[Token]]:
    position = 0

    def fixed(layout: struct.Struct) -> tuple[int, ...]:
        nonlocal position
        if position + layout.size > len(ir):
            raise CodecError(f"SBE IR is truncated at byte {len(ir)}: run sbe-tool again")
        values = layout.unpack_from(ir, position)
        position += layout.size
        return values

    def raw() -> bytes:
        nonlocal position
        (length,) = fixed(_LENGTH)
        if position + length > len(ir):
            raise CodecError(f"SBE IR is truncated at byte {len(ir)}: run sbe-tool again")
        value = ir[position : position + length]
        position += length
        return value

    def text(value: bytes) -> str:
        return value.decode("utf-8", "backslashreplace")

    schema_id, ir_version, version = fixed(_FRAME)
    package, _namespace, _semantic_version = (text(raw()) for _ in range(3))
    tokens = []
    while position < len(ir):
        start = position
        offset, size, field_id, since, _, signal, kind, order, presence, _ = fixed(_TOKEN)
        strings = [raw() for _ in range(_TOKEN_STRINGS)]
        name, constant, minimum, maximum, null, encoding, _, unit, semantic, _, referenced, _ = (
            strings
        )
        try:
            token = Token(
                offset,
                size,
                field_id,
                since,
                Signal(signal),
                PRIMITIVES[kind],
                ByteOrder(order),
                Presence(presence),
                text(name),
                constant,
                minimum,
                maximum,
                null,
                text(encoding),
                text(unit),
                text(semantic),
                text(referenced),
            )
        except (ValueError, IndexError) as error:
            raise CodecError(f"SBE IR has an unknown token at byte {start}: {error}") from None
        tokens.append(token)
    return schema_id, ir_version, version, package, tokens


class _Cursor:
    """Walks the tokens and builds the tree; one method per construct, named for its result."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    @property
    def at_end(self) -> bool:
        return self._index == len(self._tokens)

    def peek(self) -> Token:
        if self.at_end:
            raise CodecError("SBE IR ends inside a message: run sbe-tool again")
        return self._tokens[self._index]

    def next(self, *expected: Signal) -> Token:
        token = self.peek()
        if token.signal not in expected:
            names = " or ".join(signal.name for signal in expected)
            raise CodecError(
                f"SBE IR token {self._index} ({token.name}) is {token.signal.name}, not {names}"
            )
        self._index += 1
        self._depth += token.signal.name.startswith("BEGIN") - token.signal.name.startswith("END")
        if self._depth > _MAX_DEPTH:
            raise CodecError(
                f"SBE IR token {self._index - 1} ({token.name}) is in {_MAX_DEPTH} others: groups "
                f"and composites are nested too deeply"
            )
        return token

    def message(self) -> MessageSchema:
        token = self.next(Signal.BEGIN_MESSAGE)
        fields, groups, var_data = self.body(Signal.END_MESSAGE)
        return MessageSchema(
            token.name, token.field_id, token.version, token.size, fields, groups, var_data
        )

    def body(self, end: Signal) -> tuple[tuple[Field, ...], tuple[Group, ...], tuple[VarData, ...]]:
        fields: list[Field] = []
        groups: list[Group] = []
        var_data: list[VarData] = []
        while (signal := self.peek().signal) is not end:
            if signal is Signal.BEGIN_GROUP:
                groups.append(self.group())
            elif signal is Signal.BEGIN_VAR_DATA:
                var_data.append(self.var_data())
            else:
                fields.append(self.field())
        self.next(end)
        return tuple(fields), tuple(groups), tuple(var_data)

    def group(self) -> Group:
        token = self.next(Signal.BEGIN_GROUP)
        dimensions = self.composite()
        fields, groups, var_data = self.body(Signal.END_GROUP)
        return Group(
            token.name,
            token.field_id,
            token.version,
            token.size,
            dimensions,
            fields,
            groups,
            var_data,
        )

    def var_data(self) -> VarData:
        token = self.next(Signal.BEGIN_VAR_DATA)
        composite = self.composite()
        self.next(Signal.END_VAR_DATA)
        length = composite.member("length").type
        data = composite.member("varData")
        if not isinstance(length, Encoding) or not isinstance(data.type, Encoding):
            raise CodecError(
                f"{composite.name} of {token.name}: expected a length and variable data"
            )
        return VarData(
            token.name,
            token.field_id,
            token.version,
            length,
            data.offset,
            data.type.character_encoding,
        )

    def field(self) -> Field:
        token = self.next(Signal.BEGIN_FIELD)
        kind = self.type()
        self.next(Signal.END_FIELD)
        presence = token.presence
        constant: Scalar | None = None
        if isinstance(kind, Encoding):
            # The presence of the type is the default for the field.
            if presence is Presence.REQUIRED:
                presence = kind.presence
            constant = kind.constant
        elif isinstance(kind, Enum) and presence is Presence.CONSTANT:
            constant = _enum_constant(kind, token)
        return Field(
            token.name,
            token.field_id,
            token.offset,
            token.version,
            presence,
            constant,
            kind,
            token.semantic_type,
            # sbe-tool writes this unit for each field that has none.
            "" if token.time_unit == "nanosecond" else token.time_unit,
        )

    def type(self) -> Type:
        match self.peek().signal:
            case Signal.BEGIN_COMPOSITE:
                return self.composite()
            case Signal.BEGIN_ENUM:
                return self.enum()
            case Signal.BEGIN_SET:
                return self.bit_set()
            case _:
                return _encoding(self.next(Signal.ENCODING))

    def composite(self) -> Composite:
        token = self.next(Signal.BEGIN_COMPOSITE)
        members = []
        while self.peek().signal is not Signal.END_COMPOSITE:
            first = self.peek()
            members.append(
                Member(first.name, first.offset, first.version, self.type(), first.semantic_type)
            )
        self.next(Signal.END_COMPOSITE)
        return Composite(token.referenced_name or token.name, token.size, tuple(members))

    def enum(self) -> Enum:
        token = self.next(Signal.BEGIN_ENUM)
        primitive = _primitive(token)
        values = []
        while self.peek().signal is Signal.VALID_VALUE:
            value = self.next(Signal.VALID_VALUE)
            number = _integer(_value(primitive, value.const_value))
            values.append(EnumValue(value.name, number))
        self.next(Signal.END_ENUM)
        null = _value(primitive, token.null_value)
        return Enum(
            token.referenced_name or token.name,
            primitive,
            token.byte_order,
            _integer(primitive.null if null is None else null),
            tuple(values),
        )

    def bit_set(self) -> BitSet:
        token = self.next(Signal.BEGIN_SET)
        primitive = _primitive(token)
        # sbe-tool leaves the byte order of the set itself unset and gives it to the choices.
        order = token.byte_order
        choices = []
        while self.peek().signal is Signal.CHOICE:
            choice = self.next(Signal.CHOICE)
            order = choice.byte_order
            bit = _integer(_value(primitive, choice.const_value))
            choices.append(Choice(choice.name, bit))
        self.next(Signal.END_SET)
        return BitSet(token.referenced_name or token.name, primitive, order, tuple(choices))


def _primitive(token: Token) -> Primitive:
    if token.primitive is None:
        raise CodecError(f"SBE IR has no primitive type for {token.name}")
    return token.primitive


def _encoding(token: Token) -> Encoding:
    primitive = _primitive(token)
    null = _value(primitive, token.null_value)
    return Encoding(
        name=token.referenced_name or token.name,
        primitive=primitive,
        byte_order=token.byte_order,
        length=1 if token.presence is Presence.CONSTANT else token.size // primitive.size,
        presence=token.presence,
        null=primitive.null if null is None else null,
        minimum=_value(primitive, token.min_value),
        maximum=_value(primitive, token.max_value),
        constant=_value(primitive, token.const_value),
        character_encoding=token.character_encoding,
    )


def _value(primitive: Primitive, raw: bytes) -> Scalar | None:
    if not raw:
        return None
    if primitive.name == "char":
        return raw
    if len(raw) != primitive.size:
        raise CodecError(f"SBE IR has {len(raw)} bytes for one {primitive.name}")
    value: int | float = struct.unpack(f"<{primitive.code}", raw)[0]
    return value


def _integer(value: Scalar | None) -> int:
    if isinstance(value, bytes) and len(value) == 1:
        return value[0]
    if isinstance(value, int):
        return value
    raise CodecError(f"SBE IR has {value!r}: expected an integer")


def _enum_constant(enum: Enum, token: Token) -> int:
    # The reference is written as Enum.VALUE.
    name = token.const_value.decode("utf-8", "backslashreplace").rpartition(".")[2]
    for value in enum.values:
        if value.name == name:
            return value.value
    raise CodecError(f"constant field {token.name}: enum {enum.name} has no value {name!r}")
