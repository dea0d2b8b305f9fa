"""The messages of a schema: fields, groups and variable data, with their offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from aerotape.codecs.schema import (
    Composite,
    Encoding,
    Enum,
    Field,
    Group,
    MessageSchema,
    Presence,
    Scalar,
    Type,
    VarData,
)
from aerotape.codecs.xml_schema.document import EXPONENT, Element
from aerotape.codecs.xml_schema.headers import dimensions, var_data
from aerotape.codecs.xml_schema.problems import MistakeError, Problems
from aerotape.codecs.xml_schema.types import Declared, Types
from aerotape.codecs.xml_schema.values import MAX_BLOCK, number, presence, required, required_number

_ORDER: Final = ("field", "group", "data")
# Composites that refer to each other can have any number of parts in a small file.
_MAX_PARTS: Final = 500_000


class _Body(NamedTuple):
    block_length: int
    fields: tuple[Field, ...]
    groups: tuple[Group, ...]
    var_data: tuple[VarData, ...]


class Messages:
    """Reads the messages of one schema."""

    def __init__(self, types: Types, problems: Problems) -> None:
        self._types = types
        self._problems = problems
        self._parts = 0

    def read(self, elements: list[Element]) -> tuple[MessageSchema, ...]:
        """Return the messages; mistakes are reported."""
        messages: list[MessageSchema] = []
        taken = _Taken("the schema")
        for element in elements:
            with self._problems.of(element):
                message = self._message(element)
                taken.add(message.name, message.id)
                messages.append(message)
        return tuple(messages)

    def _message(self, element: Element) -> MessageSchema:
        name = required(element, "name")
        id_ = required_number(element, "id")
        since = self._types.since_version(element)
        body = self._body(element)
        return MessageSchema(name, id_, since, *body)

    def _body(self, element: Element) -> _Body:
        read: list[Field | Group | VarData] = []
        taken = _Taken(element.label)
        end = 0
        last = "field"
        for child in element.all(*_ORDER):
            with self._problems.of(child):
                if _ORDER.index(child.tag) < _ORDER.index(last):
                    raise MistakeError(
                        f"follows {last}: expected all fields, then all groups, then all data"
                    )
                last = child.tag
                part: Field | Group | VarData
                match child.tag:
                    case "field":
                        part = self._field(child, end)
                        size = 0 if part.presence is Presence.CONSTANT else part.type.size_bytes
                        end = part.offset + size
                        if end > MAX_BLOCK:
                            raise MistakeError(f"ends at byte {end}: expected at most {MAX_BLOCK}")
                    case "group":
                        part = self._group(child)
                    case _:
                        part = self._var_data(child)
                taken.add(part.name, part.id)
                read.append(part)
        length = number(element, "blockLength") or end
        if length < end:
            raise MistakeError(f"blockLength {length} is too small: the fields have {end} bytes")
        return _Body(
            length,
            tuple(part for part in read if isinstance(part, Field)),
            tuple(part for part in read if isinstance(part, Group)),
            tuple(part for part in read if isinstance(part, VarData)),
        )

    def _declared(self, element: Element, name: str) -> Declared:
        declared = self._types.resolve(name)
        own, of_type = element.attributes.get("semanticType"), declared.semantic_type
        if own is not None and of_type is not None and own != of_type:
            raise MistakeError(f"semanticType {own!r} is not that of its type, {of_type!r}")
        self._parts += declared.parts
        if self._parts > _MAX_PARTS:
            raise MistakeError(f"the schema has more than {_MAX_PARTS} fields and members")
        return declared

    def _field(self, element: Element, end: int) -> Field:
        name = required(element, "name")
        id_ = required_number(element, "id")
        name_of_type = required(element, "type")
        declared = self._declared(element, name_of_type)
        if declared.variable:
            raise MistakeError(f'type "{name_of_type}" has variable length: expected it in data')
        since = self._types.since_version(element)
        own = presence(element)
        if own is None or declared.presence is Presence.CONSTANT:
            own = declared.presence
        kind, constant = self._type_of_field(element, declared, own)
        offset = number(element, "offset")
        offset = end if offset is None else offset
        if offset < end:
            raise MistakeError(f"offset {offset}: the preceding fields end at {end}")
        version = max(since, declared.since_version)
        if isinstance(kind, Composite):
            kind = self._types.dated(kind, version, since)
        semantic_type = declared.semantic_type or element.attributes.get("semanticType", "")
        time_unit = element.attributes.get("timeUnit") or declared.time_unit or ""
        return Field(
            name,
            id_,
            offset,
            version,
            own,
            constant,
            kind,
            semantic_type,
            time_unit,
            element.attributes.get(EXPONENT, ""),
        )

    def _type_of_field(
        self, element: Element, declared: Declared, own: Presence
    ) -> tuple[Type, Scalar | None]:
        kind = declared.type
        reference = element.attributes.get("valueRef")
        value = None
        if reference is not None:
            enum, value = self._types.enum_value(reference)
            primitive = None if isinstance(kind, Composite) else kind.primitive
            if enum.primitive is not primitive or (isinstance(kind, Enum) and enum is not kind):
                raise MistakeError(f"valueRef {reference!r} is not a value of the field's type")
        if own is not Presence.CONSTANT:
            if isinstance(kind, Encoding):
                null = declared.null_value if own is Presence.OPTIONAL else None
                null = kind.primitive.null if null is None else null
                kind = replace(kind, presence=own, null=null)
            return kind, None
        match kind:
            case Encoding():
                constant = kind.constant if value is None else value
                if constant is not None:
                    return replace(kind, presence=own, length=1, constant=constant), constant
            case Enum() if value is not None:
                return kind, value[0] if isinstance(value, bytes) else value
        raise MistakeError("presence is constant: expected a valueRef, or a type that is constant")

    def _group(self, element: Element) -> Group:
        name = required(element, "name")
        id_ = required_number(element, "id")
        since = self._types.since_version(element)
        name_of_type = element.attributes.get("dimensionType", "groupSizeEncoding")
        declared = self._declared(element, name_of_type)
        composite = dimensions(declared.type, name_of_type)
        dated = self._types.dated(composite, max(since, declared.since_version), since)
        body = self._body(element)
        return Group(name, id_, since, body.block_length, dated, *body[1:])

    def _var_data(self, element: Element) -> VarData:
        name = required(element, "name")
        id_ = required_number(element, "id")
        if presence(element) is Presence.OPTIONAL:
            raise MistakeError("presence of data cannot be optional: an absent value has length 0")
        since = self._types.since_version(element)
        number(element, "offset")
        name_of_type = required(element, "type")
        declared = self._declared(element, name_of_type)
        length, data, characters = var_data(declared.type, name_of_type)
        return VarData(name, id_, since, length, data.offset, characters.character_encoding)


class _Taken:
    """The names and ids of the parts of a schema, message or group, which are unique in it."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._names: set[str] = set()
        self._ids: dict[int, str] = {}

    def add(self, name: str, id_: int) -> None:
        if name in self._names:
            raise MistakeError(f"{self._where} has this name twice")
        if id_ in self._ids:
            raise MistakeError(f'id {id_} is already that of "{self._ids[id_]}"')
        self._names.add(name)
        self._ids[id_] = name
