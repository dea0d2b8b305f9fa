"""The types of a schema: simple types, enums, sets and composites, by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from aerotape.codecs.schema import (
    BitSet,
    ByteOrder,
    Choice,
    Composite,
    Encoding,
    Enum,
    EnumValue,
    Member,
    Presence,
    Primitive,
    Scalar,
    Type,
)
from aerotape.codecs.xml_schema.document import MAX_DEPTH, Element
from aerotape.codecs.xml_schema.problems import MistakeError, Problems
from aerotape.codecs.xml_schema.values import (
    BY_NAME,
    MAX_BLOCK,
    characters,
    integer,
    integer_range,
    number,
    presence,
    required,
    scalar,
)

_OF_ENUMS: Final = ("char", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32")
_OF_SETS: Final = ("uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True, slots=True)
class Declared:
    """A type with the attributes that concern where it is used.

    Attributes:
        offset: the offset in a composite that refers to it, unless the reference has one.
        null_value: the null value of a simple type, for optional fields; None if not declared.
        parts: number of simple types, enums and sets in it, in all its composites.
        depth: number of composites in each other.
        variable: whether it has variable length, or a member that has.
    """

    type: Type
    presence: Presence = Presence.REQUIRED
    since_version: int = 0
    offset: int | None = None
    semantic_type: str | None = None
    time_unit: str | None = None
    null_value: Scalar | None = None
    parts: int = 1
    depth: int = 0
    variable: bool = False


class Types:
    """All types of a schema; each is resolved when it is first needed."""

    def __init__(
        self, elements: Iterable[Element], version: int, order: ByteOrder, problems: Problems
    ) -> None:
        """Register the declarations.

        Args:
            elements: the children of the schema's `types`.
            version: of the schema.
            order: byte order of all types.
            problems: collects the mistakes.
        """
        self._version = version
        self._order = order
        self._problems = problems
        self._elements: dict[str, Element] = {}
        self._resolved: dict[str, Declared | None] = {}
        self._resolving: list[str] = []
        self._values: dict[str, dict[str, int]] = {}
        self._dated: dict[tuple[int, int, int], Composite] = {}
        for element in elements:
            with problems.of(element):
                name = required(element, "name")
                if (first := self._elements.setdefault(name, element)) is not element:
                    raise MistakeError(f"the name is already declared at {first.place}")

    def resolve_all(self) -> None:
        """Resolve all types, so that their mistakes are reported even if no message has them."""
        for name in self._elements:
            self._resolve_declared(name)

    def resolve(self, name: str) -> Declared:
        """Return a type by name, a primitive one if none is declared with that name.

        Raises:
            MistakeError: there is no such type, or it has a mistake.
        """
        if name not in self._elements and name in BY_NAME:
            return Declared(self._encoding(name, BY_NAME[name]))
        return self._declared(name)

    def since_version(self, element: Element) -> int:
        """Return the version that added an element, which the schema must have reached."""
        since = number(element, "sinceVersion") or 0
        number(element, "deprecated")
        if since > self._version:
            raise MistakeError(
                f"sinceVersion {since} is greater than the version of the schema, {self._version}"
            )
        return since

    def enum_value(self, reference: str) -> tuple[Enum, Scalar]:
        """Return the enum and the value that a `valueRef` names."""
        enum_name, dot, name = reference.strip().partition(".")
        if not dot or not enum_name or not name:
            raise MistakeError(f"valueRef {reference!r}: expected ENUM.VALUE")
        enum = self._declared(enum_name).type
        if not isinstance(enum, Enum):
            raise MistakeError(f'valueRef {reference!r}: type "{enum_name}" is not an enum')
        values = self._values.get(enum_name)
        if values is None:
            values = self._values[enum_name] = {each.name: each.value for each in enum.values}
        if name not in values:
            raise MistakeError(f'valueRef {reference!r}: enum "{enum_name}" has no value "{name}"')
        value = values[name]
        return enum, bytes((value,)) if enum.primitive.name == "char" else value

    def dated(self, composite: Composite, since: int, outer: int) -> Composite:
        """Return a composite with the versions of its members where it is used.

        A simple type has the version of its composite; enums, sets and composites have their own
        one, at least that of the field.

        Args:
            composite: as `resolve` returned it.
            since: the version that added the composite there.
            outer: the version of the field.
        """
        key = (id(composite), since, outer)
        if key not in self._dated:
            members = []
            for member in composite.members:
                kind = member.type
                own = since if isinstance(kind, Encoding) else max(member.since_version, outer)
                if isinstance(kind, Composite):
                    kind = self.dated(kind, own, outer)
                members.append(replace(member, since_version=own, type=kind))
            self._dated[key] = replace(composite, members=tuple(members))
        return self._dated[key]

    def _declared(self, name: str) -> Declared:
        if name not in self._elements:
            raise MistakeError(f'type "{name}" is not defined: declare it in types')
        if name in self._resolving:
            circle = self._resolving[self._resolving.index(name) :]
            raise MistakeError(f"refers to itself: {', '.join((*circle, name))}")
        if (declared := self._resolve_declared(name)) is None:
            raise MistakeError
        return declared

    def _resolve_declared(self, name: str) -> Declared | None:
        if name not in self._resolved:
            if len(self._resolving) == MAX_DEPTH:
                raise MistakeError(f"types refer to each other more than {MAX_DEPTH} deep")
            element = self._elements[name]
            self._resolving.append(name)
            with self._problems.of(element):
                self._resolved[name] = self._declare(element)
            self._resolving.pop()
            self._resolved.setdefault(name, None)
        return self._resolved[name]

    def _declare(self, element: Element) -> Declared:
        declared = Declared(
            self._encoding("", BY_NAME["char"]),
            presence(element) or Presence.REQUIRED,
            self.since_version(element),
            number(element, "offset"),
            element.attributes.get("semanticType"),
            element.attributes.get("timeUnit"),
        )
        match element.tag:
            case "type":
                return self._simple(element, declared)
            case "enum":
                return replace(declared, type=self._enum(element))
            case "set":
                return replace(declared, type=self._set(element))
            case _:
                return self._composite(element, declared)

    def _encoding(self, name: str, primitive: Primitive) -> Encoding:
        return Encoding(
            name=name,
            primitive=primitive,
            byte_order=self._order,
            length=1,
            presence=Presence.REQUIRED,
            null=primitive.null,
            minimum=None,
            maximum=None,
            constant=None,
            character_encoding="",
        )

    def _simple(self, element: Element, declared: Declared) -> Declared:
        name = required(element, "primitiveType")
        if name not in BY_NAME:
            raise MistakeError(f"primitiveType {name!r}: expected {', '.join(BY_NAME)}")
        primitive = BY_NAME[name]
        limits = {
            key: scalar(primitive, element.attributes[key], key)
            for key in ("minValue", "maxValue", "nullValue")
            if key in element.attributes
        }
        default = "US-ASCII" if name == "char" else ""
        kind = replace(
            self._encoding(required(element, "name"), primitive),
            length=self._length(element, primitive),
            presence=declared.presence,
            minimum=limits.get("minValue"),
            maximum=limits.get("maxValue"),
            character_encoding=element.attributes.get("characterEncoding", default).strip(),
        )
        if kind.presence is Presence.OPTIONAL:
            kind = replace(kind, null=limits.get("nullValue", primitive.null))
        if kind.presence is Presence.CONSTANT:
            constant = self._constant(element, kind)
            kind = replace(kind, length=1, minimum=None, maximum=None, constant=constant)
        elif "valueRef" in element.attributes:
            raise MistakeError("valueRef needs presence constant")
        variable = kind.length == 0
        return replace(declared, type=kind, null_value=limits.get("nullValue"), variable=variable)

    def _length(self, element: Element, primitive: Primitive) -> int:
        if element.attributes.get("variableLength") == "true":
            return 0
        length = number(element, "length")
        length = 1 if length is None else length
        if length * primitive.size > MAX_BLOCK:
            raise MistakeError(f"length {length}: expected at most {MAX_BLOCK} bytes")
        return length

    def _constant(self, element: Element, kind: Encoding) -> Scalar:
        if "valueRef" in element.attributes:
            reference = element.attributes["valueRef"]
            enum, value = self.enum_value(reference)
            if enum.primitive is not kind.primitive:
                raise MistakeError(
                    f"valueRef {reference!r}: enum of {enum.primitive.name}, the type is "
                    f"{kind.primitive.name}"
                )
            return value
        text = element.text
        if not text:
            raise MistakeError("presence is constant, but the element has no value")
        if kind.primitive.name != "char":
            return scalar(kind.primitive, text, "value")
        length = number(element, "length")
        if length is None and len(text.strip()) <= 1:
            length = 1
        if length == 1:
            text = scalar(kind.primitive, text, "value").decode()  # type: ignore[union-attr]
        return characters(text, kind.character_encoding, length, "value")

    def _backing(self, element: Element, plain: tuple[str, ...]) -> Encoding:
        """Return the type that represents an enum or a set."""
        name = required(element, "encodingType")
        declared = self.resolve(name)
        kind = declared.type
        if not isinstance(kind, Encoding) or (name not in self._elements and name not in plain):
            raise MistakeError(
                f"encodingType {name!r}: expected {', '.join(plain)} or a simple type"
            )
        if kind.length != 1 or kind.primitive.code in "fd":
            raise MistakeError(f'encodingType {name!r}: type "{name}" is not a single integer')
        # An enum has the null value of its type even if that is required.
        null = kind.null if declared.null_value is None else declared.null_value
        return replace(kind, null=null)

    def _enum(self, element: Element) -> Enum:
        kind = self._backing(element, _OF_ENUMS)
        primitive = kind.primitive
        null = _integer(kind.null)
        if "nullValue" in element.attributes:
            null = _integer(scalar(primitive, element.attributes["nullValue"], "nullValue"))
        least, largest = _valid_range(primitive)
        least = least if kind.minimum is None else _integer(kind.minimum)
        largest = largest if kind.maximum is None else _integer(kind.maximum)
        values: list[EnumValue] = []
        taken: set[str | int] = set()
        for child in element.all("validValue"):
            with self._problems.of(child):
                name = required(child, "name")
                self.since_version(child)
                value = _integer(scalar(primitive, child.text, "value"))
                if value == null:
                    raise MistakeError(f"value {value} is the null value of the enum")
                if not least <= value <= largest:
                    raise MistakeError(f"value {value}: expected one from {least} to {largest}")
                if not taken.isdisjoint((name, value)):
                    raise MistakeError(f"{element.label} has this name or value twice")
                taken |= {name, value}
                values.append(EnumValue(name, value))
        return Enum(required(element, "name"), primitive, self._order, null, tuple(values))

    def _set(self, element: Element) -> BitSet:
        primitive = self._backing(element, _OF_SETS).primitive
        choices: list[Choice] = []
        taken: set[str | int] = set()
        for child in element.all("choice"):
            with self._problems.of(child):
                name = required(child, "name")
                self.since_version(child)
                bits = 8 * primitive.size
                bit = integer(child.text, "bit")
                if not 0 <= bit < bits:
                    raise MistakeError(f"bit {bit}: expected a number from 0 to {bits - 1}")
                if not taken.isdisjoint((name, bit)):
                    raise MistakeError(f"{element.label} has this name or bit twice")
                taken |= {name, bit}
                choices.append(Choice(name, bit))
        return BitSet(required(element, "name"), primitive, self._order, tuple(choices))

    def _composite(self, element: Element, declared: Declared) -> Declared:
        members: list[Member] = []
        names: set[str] = set()
        end = parts = depth = 0
        valid, variable = True, False
        for child in element.all("type", "enum", "set", "composite", "ref", "group", "data"):
            valid_child = False
            with self._problems.of(child):
                member, inner = self._member(child, end)
                if member.name in names:
                    raise MistakeError(f"{element.label} already has a member of that name")
                names.add(member.name)
                members.append(member)
                end = member.offset + member.type.size_bytes
                if end > MAX_BLOCK:
                    raise MistakeError(f"ends at byte {end}: expected at most {MAX_BLOCK}")
                parts += inner.parts
                depth = max(depth, inner.depth)
                variable |= inner.variable
                valid_child = True
            valid &= valid_child
        if not valid:
            raise MistakeError
        if depth == MAX_DEPTH:
            raise MistakeError(f"composites are nested more than {MAX_DEPTH} deep")
        kind = Composite(required(element, "name"), end, tuple(members))
        return replace(declared, type=kind, parts=parts, depth=depth + 1, variable=variable)

    def _member(self, element: Element, end: int) -> tuple[Member, Declared]:
        name = required(element, "name")
        match element.tag:
            case "group" | "data":
                raise MistakeError(f"a composite cannot contain {element.tag}")
            case "ref":
                declared = self._declared(required(element, "type"))
                since = self.since_version(element)
                if "sinceVersion" in element.attributes:
                    declared = replace(declared, since_version=since)
                if "offset" in element.attributes:
                    declared = replace(declared, offset=number(element, "offset"))
            case _:
                declared = self._declare(element)
        offset = end if declared.offset is None else declared.offset
        if offset < end:
            raise MistakeError(f"offset {offset}: the preceding members end at {end}")
        member = Member(
            name,
            offset,
            declared.since_version,
            declared.type,
            declared.semantic_type or "",
            declared.time_unit or "",
        )
        return member, declared


def _integer(value: Scalar) -> int:
    return value[0] if isinstance(value, bytes) else int(value)


def _valid_range(primitive: Primitive) -> tuple[int, int]:
    """Return the range of values without the default null value."""
    least, largest = integer_range(primitive)
    if primitive.name == "char":
        return 0x20, 0x7E
    return (least, largest - 1) if primitive.name.startswith("u") else (least + 1, largest)
