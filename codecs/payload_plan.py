"""Compile a `Schema` into the plan by which the native decoder turns payloads into columns.

A plan lists the types and offsets to read: types are resolved, members of composites have offsets
from the block, null values and constants are bytes. `native/format/src/sbe/plan.rs` has the same
structs under the same names. `aerotape.codecs.payloads` describes the column of each construct.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from aerotape.codecs.schema import (
    BitSet,
    ByteOrder,
    Composite,
    Encoding,
    Enum,
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
from aerotape.codecs.semantic_types import (
    DIGITS,
    MAX_PRECISION,
    NANOSECONDS,
    OWN_EXPONENT_SCALE,
    Decimal,
    Meaning,
    Scopes,
    Timestamp,
    exponent_of,
    meaning_of,
)
from aerotape.errors import CodecError

Types = Literal["semantic", "wire"]
"""Whether decimals, timestamps and dates are that, or the numbers that they are on the wire."""

Target = Literal["arrow", "spark"]
"""Whose types the columns have: Spark has neither unsigned numbers nor nanoseconds."""

EnumColumns = Literal["name", "number"]
SetColumns = Literal["struct", "number"]

PREFIX: Final = "sbe_"
"""Prefix of a field whose name another column has, in any case."""

# Column types of character encodings, by their names in XML and Java, in lower case. Text in any
# other encoding stays bytes, as wrong characters would be worse.
_CHARACTERS: Final = {
    "": "bytes",
    "ascii": "utf-8",
    "us-ascii": "utf-8",
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "iso-8859-1": "latin-1",
    "iso8859-1": "latin-1",
    "iso_8859-1": "latin-1",
    "latin1": "latin-1",
}


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """A column of fixed size.

    Attributes:
        kind: number, numbers (an array), utf-8, latin-1 or bytes (an array of characters or
            bytes), enum, set, struct, decimal, timestamp, date.
        offset: bytes from the first byte of the block.
        level: how many bodies further out that block is, of an exponent.
        length: number of elements, 1 if it is not an array.
        null: the bytes of one element, least significant first, that mean null.
        constant: the bytes that stand for those of the block, least significant first.
        names: of an enum its values as unsigned numbers, of a set its bits.
        children: the members of a struct; the exponent of a decimal and the unit of a timestamp,
            if they are on the wire.
        precision: digits of a decimal, 0 for other kinds; of an array of decimals those of each.
        scale: digits after the point of a decimal, or of the seconds of a timestamp.
        exponent: power of ten of a decimal, or of a timestamp in seconds.
    """

    name: str
    kind: str
    since_version: int
    offset: int
    primitive: str
    length: int = 1
    big_endian: bool = False
    null: bytes | None = None
    constant: bytes | None = None
    names: tuple[tuple[int, str], ...] = ()
    children: tuple[ColumnPlan, ...] = ()
    precision: int = 0
    scale: int = 0
    exponent: int = 0
    level: int = 0


@dataclass(frozen=True, slots=True)
class HeaderNumberPlan:
    """An unsigned number in a header; `offset` counts from the header's first byte."""

    offset: int
    primitive: str
    big_endian: bool


@dataclass(frozen=True, slots=True)
class HeaderPlan:
    """The header of every message; `size` in bytes."""

    size: int
    block_length: HeaderNumberPlan
    template_id: HeaderNumberPlan
    schema_id: HeaderNumberPlan
    version: HeaderNumberPlan


@dataclass(frozen=True, slots=True)
class VarDataPlan:
    """Variable data; `characters` as the kinds of a column of text.

    Data and groups that are not `wanted` are skipped and have no column.
    """

    name: str
    since_version: int
    length: HeaderNumberPlan
    header_size: int
    characters: str
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class BodyPlan:
    """The common part of a message and a group entry.

    Attributes:
        extents: for each version that added fields, the bytes that a block of that version or a
            newer one has at least; versions and bytes ascend.
    """

    columns: tuple[ColumnPlan, ...]
    extents: tuple[tuple[int, int], ...]
    groups: tuple[GroupPlan, ...]
    var_data: tuple[VarDataPlan, ...]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A repeating group; `header_size` is the bytes of its dimensions."""

    name: str
    since_version: int
    header_size: int
    block_length: HeaderNumberPlan
    count: HeaderNumberPlan
    body: BodyPlan
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class MessagePlan:
    """One template."""

    name: str
    template_id: int
    body: BodyPlan


@dataclass(frozen=True, slots=True)
class Plan:
    """All that the decoder needs. `flat`: the fields of the only message are the columns."""

    schema_id: int
    header: HeaderPlan
    messages: tuple[MessagePlan, ...]
    flat: bool


def compile_plan(
    schema: Schema,
    template: str | int | None = None,
    *,
    types: Types = "semantic",
    enums: EnumColumns = "name",
    sets: SetColumns = "struct",
    target: Target = "arrow",
) -> Plan:
    """Compile one template of a schema, by name or id, or all of them.

    Raises:
        CodecError: the schema has no such template, or a header in it has no unsigned numbers
            where SBE needs them.
    """
    messages = schema.messages if template is None else (schema.message(template),)
    compiler = _Compiler(types, enums, sets, target)
    header = schema.header
    return Plan(
        schema.id,
        HeaderPlan(
            header.size_bytes,
            _header_number(header, "blockLength"),
            _header_number(header, "templateId"),
            _header_number(header, "schemaId"),
            _header_number(header, "version"),
        ),
        tuple(compiler.message(message) for message in messages),
        template is not None,
    )


def choose_columns(plan: Plan, names: Collection[str]) -> Plan:
    """Return a plan for only the columns with these names, in the same order.

    Malformed payloads and other templates are still found: each payload is walked to its end.
    """
    messages = []
    for message in plan.messages:
        body = message.body
        if plan.flat:
            body = _choose(body, names)
        elif message.name not in names:
            body = _choose(body, ())
        messages.append(replace(message, body=body))
    return replace(plan, messages=tuple(messages))


def _choose(body: BodyPlan, names: Collection[str]) -> BodyPlan:
    return replace(
        body,
        columns=tuple(column for column in body.columns if column.name in names),
        groups=tuple(replace(group, wanted=group.name in names) for group in body.groups),
        var_data=tuple(replace(data, wanted=data.name in names) for data in body.var_data),
    )


class _Compiler:
    def __init__(
        self, types: Types, enums: EnumColumns, sets: SetColumns, target: Target
    ) -> None:
        self._is_semantic = types == "semantic"
        self._has_uint64 = self._is_semantic and target == "arrow"
        self._has_nanoseconds = target == "arrow"
        self._enums = enums
        self._sets = sets

    def message(self, message: MessageSchema) -> MessagePlan:
        return MessagePlan(message.name, message.id, self._body(message, ()))

    def _body(self, body: MessageSchema | Group, outer: Scopes) -> BodyPlan:
        scopes = (body.fields, *outer)
        return BodyPlan(
            tuple(self._field(field, scopes) for field in body.fields),
            _extents(body.fields),
            tuple(self._group(group, scopes) for group in body.groups),
            tuple(_var_data(data) for data in body.var_data),
        )

    def _group(self, group: Group, outer: Scopes) -> GroupPlan:
        return GroupPlan(
            group.name,
            group.since_version,
            group.dimensions.size_bytes,
            _header_number(group.dimensions, "blockLength"),
            _header_number(group.dimensions, "numInGroup"),
            _with_distinct_names(self._body(group, outer)),
        )

    def _field(self, field: Field, scopes: Scopes) -> ColumnPlan:
        column = self._plain_field(field)
        found = exponent_of(field, scopes) if self._is_semantic else None
        if found is None:
            return column
        level, exponent = found
        child = replace(self._plain_field(exponent), kind="number", names=(), level=level)
        return replace(
            column,
            kind="decimal",
            precision=MAX_PRECISION,
            scale=OWN_EXPONENT_SCALE,
            children=(child,),
        )

    def _plain_field(self, field: Field) -> ColumnPlan:
        return self._column(
            field.name,
            field.since_version,
            field.offset,
            field.type,
            field.presence is Presence.OPTIONAL,
            field.constant,
            meaning_of(field.type, field.semantic_type, field.time_unit),
        )

    def _member(self, member: Member, base: int, since_version: int) -> ColumnPlan:
        kind = member.type
        encoding = kind if isinstance(kind, Encoding) else None
        return self._column(
            member.name,
            # A composite that was added later has no member from before.
            max(member.since_version, since_version),
            base + member.offset,
            kind,
            encoding is not None and encoding.presence is Presence.OPTIONAL,
            encoding.constant if encoding else None,
            meaning_of(kind, member.semantic_type, member.time_unit),
        )

    def _column(
        self,
        name: str,
        since: int,
        offset: int,
        kind: Type,
        optional: bool,
        constant: Scalar | None,
        meaning: Meaning | None,
    ) -> ColumnPlan:
        meaning = self._possible(meaning)
        if isinstance(kind, Composite):
            if isinstance(meaning, (Decimal, Timestamp)):
                return self._composite(name, since, offset, optional, meaning)
            members = [self._member(member, offset, since) for member in kind.members]
            distinct = distinct_names(member.name for member in members)
            children = tuple(map(_renamed, members, distinct))
            return ColumnPlan(name, "struct", since, offset, "uint8", children=children)
        primitive = kind.primitive
        column, length, null, names = self._leaf(kind, optional)
        if isinstance(constant, bytes):
            length = len(constant)
        plain = ColumnPlan(
            name,
            column,
            since,
            offset,
            primitive.name,
            length,
            kind.byte_order is ByteOrder.BIG_ENDIAN,
            None if null is None else _bytes(primitive, null),
            None if constant is None else _bytes(primitive, constant),
            names,
        )
        if meaning is not None:
            assert isinstance(kind, Encoding)
            return _with_meaning(plain, meaning, kind)
        if column in ("number", "numbers") and primitive.name == "uint64" and not self._has_uint64:
            column = "decimal" if column == "number" else column
            return replace(plain, kind=column, precision=DIGITS["uint64"])
        return plain

    def _possible(self, meaning: Meaning | None) -> Meaning | None:
        """Return a meaning if columns of the target can have it."""
        if not self._is_semantic:
            return None
        is_fine = isinstance(meaning, Timestamp) and meaning.scale == NANOSECONDS
        return None if is_fine and not self._has_nanoseconds else meaning

    def _composite(
        self, name: str, since: int, offset: int, optional: bool, meaning: Decimal | Timestamp
    ) -> ColumnPlan:
        """Return the column of a composite that is one value."""
        number: Member | None
        power: int | Member
        if isinstance(meaning, Decimal):
            number, power = meaning.mantissa, meaning.exponent
        else:
            number, power = meaning.time, meaning.unit
        assert number is not None
        assert isinstance(number.type, Encoding)
        is_optional = optional or number.type.presence is Presence.OPTIONAL
        column = self._column(
            name,
            max(number.since_version, since),
            offset + number.offset,
            number.type,
            is_optional,
            None,
            None,
        )
        children: tuple[ColumnPlan, ...] = ()
        if isinstance(power, Member):
            child = replace(self._member(power, offset, since), kind="number", names=())
            children = (child,)
        return _with_meaning(replace(column, children=children), meaning, number.type)

    def _leaf(
        self, kind: Encoding | Enum | BitSet, optional: bool
    ) -> tuple[str, int, Scalar | None, tuple[tuple[int, str], ...]]:
        """Return kind, length, null value and names of a column."""
        match kind:
            case Enum():
                names = tuple((_unsigned(kind.primitive, v.value), v.name) for v in kind.values)
                return "enum" if self._enums == "name" else "number", 1, kind.null, names
            case BitSet():
                named = distinct_names(choice.name for choice in kind.choices)
                bits = tuple(zip((choice.bit for choice in kind.choices), named, strict=True))
                return "set" if self._sets == "struct" and bits else "number", 1, None, bits
        return kind_of(kind), kind.length, kind.null if optional else None, ()


def distinct_names(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return names that differ in more than case: SQL does not distinguish `Price` from `price`.

    Those that do not differ from one before them, or from a reserved one, get a prefix.
    """
    given = list(names)
    exact = {name.lower() for name in given}
    taken = {name.lower() for name in reserved}
    distinct = []
    for name in given:
        unique = name
        while unique.lower() in taken or (unique != name and unique.lower() in exact):
            unique = PREFIX + unique
        taken.add(unique.lower())
        distinct.append(unique)
    return distinct


_Named = TypeVar("_Named", ColumnPlan, GroupPlan, VarDataPlan)


def _renamed(part: _Named, name: str) -> _Named:
    return part if part.name == name else replace(part, name=name)


def _with_distinct_names(body: BodyPlan) -> BodyPlan:
    """Return the body of a group with the names of `distinct_names`."""
    parts: tuple[ColumnPlan | GroupPlan | VarDataPlan, ...]
    parts = (*body.columns, *body.groups, *body.var_data)
    names = iter(distinct_names(part.name for part in parts))
    return replace(
        body,
        columns=tuple(_renamed(each, next(names)) for each in body.columns),
        groups=tuple(_renamed(each, next(names)) for each in body.groups),
        var_data=tuple(_renamed(each, next(names)) for each in body.var_data),
    )


def _with_meaning(column: ColumnPlan, meaning: Meaning, kind: Encoding) -> ColumnPlan:
    """Return the column of values that mean this, which are integers of a type on the wire."""
    match meaning:
        case Decimal():
            return replace(
                column,
                kind="decimal",
                precision=meaning.precision,
                scale=meaning.scale,
                exponent=meaning.exponent if isinstance(meaning.exponent, int) else 0,
            )
        case Timestamp():
            return replace(
                column,
                kind="timestamp",
                # The null value is no time, also of a field that always has one.
                null=_bytes(kind.primitive, kind.null),
                precision=0,
                scale=meaning.scale,
                exponent=-meaning.unit if isinstance(meaning.unit, int) else 0,
            )
    return replace(column, kind="date")


def kind_of(encoding: Encoding) -> str:
    """Return the kind of column of a primitive or an array (see `ColumnPlan`)."""
    if encoding.primitive.name == "char":
        return characters(encoding.character_encoding or "US-ASCII")
    if encoding.length == 1 or encoding.presence is Presence.CONSTANT:
        return "number"
    if encoding.primitive.size == 1 and encoding.character_encoding:
        return characters(encoding.character_encoding)
    return "bytes" if encoding.primitive.name == "uint8" else "numbers"


def characters(encoding: str) -> str:
    """Return the column type of a character encoding: utf-8, latin-1 or bytes."""
    return _CHARACTERS.get(encoding.strip().lower(), "bytes")


def _var_data(data: VarData) -> VarDataPlan:
    # The length is the first member of its composite, and the data follow the whole of the rest.
    length = HeaderNumberPlan(
        0, _unsigned_name(data.length, data.name), _is_big_endian(data.length)
    )
    return VarDataPlan(
        data.name,
        data.since_version,
        length,
        data.header_size_bytes,
        characters(data.character_encoding),
    )


def _header_number(composite: Composite, name: str) -> HeaderNumberPlan:
    member = composite.member(name)
    if not isinstance(member.type, Encoding):
        raise CodecError(f"{name} of composite {composite.name}: expected a number")
    primitive = _unsigned_name(member.type, f"{composite.name}.{name}")
    return HeaderNumberPlan(member.offset, primitive, _is_big_endian(member.type))


def _unsigned_name(encoding: Encoding, what: str) -> str:
    # Schemas use signed types for these too; negative values have no meaning.
    name = encoding.primitive.name
    unsigned = name if name.startswith("u") else f"u{name}"
    if unsigned not in ("uint8", "uint16", "uint32", "uint64") or encoding.length > 1:
        raise CodecError(f"{what} is {name}: expected an integer")
    return unsigned


def _is_big_endian(encoding: Encoding) -> bool:
    return encoding.byte_order is ByteOrder.BIG_ENDIAN


def _extents(fields: Iterable[Field]) -> tuple[tuple[int, int], ...]:
    ends: dict[int, int] = {}
    for field in fields:
        for since, end in _ends(field.type, field.since_version, field.offset, field.constant):
            ends[since] = max(end, ends.get(since, 0))
    extents = []
    largest = 0
    for since in sorted(ends):
        largest = max(largest, ends[since])
        extents.append((since, largest))
    return tuple(extents)


def _ends(
    kind: Type, since: int, offset: int, constant: Scalar | None
) -> Iterable[tuple[int, int]]:
    """Yield versions, each with the end offset of the parts of a field that it added."""
    if isinstance(kind, Composite):
        for member in kind.members:
            inner = member.type.constant if isinstance(member.type, Encoding) else None
            version = max(since, member.since_version)
            yield from _ends(member.type, version, offset + member.offset, inner)
    elif constant is None:
        yield since, offset + kind.size_bytes


def _bytes(primitive: Primitive, value: Scalar) -> bytes:
    if isinstance(value, bytes):
        return value
    if primitive.name == "char":
        return bytes((int(value),))
    return struct.pack(f"<{primitive.code}", value)


def _unsigned(primitive: Primitive, value: int) -> int:
    return value & ((1 << 8 * primitive.size) - 1)
