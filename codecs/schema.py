"""The tree of an SBE schema, every type resolved and every offset known.

`codecs/xml_schema/` builds it from XML and `codecs/ir.py` from sbe-tool's output;
`codecs/emitter.py` writes Python modules from it, and `codecs/payload_plan.py` compiles it for the
decoder of users' payloads. Offsets and sizes are in bytes; the names are those of the SBE
specification. Descriptions are omitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from aerotape.errors import CodecError

Scalar = int | float | bytes


class Presence(IntEnum):
    """Whether a field always has a value (`PresenceCodec` of sbe-ir.xml)."""

    REQUIRED = 0
    OPTIONAL = 1
    CONSTANT = 2


class ByteOrder(IntEnum):
    """Byte order of an encoding (`ByteOrderCodec` of sbe-ir.xml)."""

    LITTLE_ENDIAN = 0
    BIG_ENDIAN = 1


class Primitive(NamedTuple):
    """A primitive type of SBE: its schema name, its `struct` code, size in bytes, default null."""

    name: str
    code: str
    size: int
    null: Scalar


_NAN = float("nan")
# Index: PrimitiveTypeCodec of sbe-ir.xml. 0 means that the token has no primitive type.
PRIMITIVES: tuple[Primitive | None, ...] = (
    None,
    Primitive("char", "c", 1, b"\0"),
    Primitive("int8", "b", 1, -(1 << 7)),
    Primitive("int16", "h", 2, -(1 << 15)),
    Primitive("int32", "i", 4, -(1 << 31)),
    Primitive("int64", "q", 8, -(1 << 63)),
    Primitive("uint8", "B", 1, (1 << 8) - 1),
    Primitive("uint16", "H", 2, (1 << 16) - 1),
    Primitive("uint32", "I", 4, (1 << 32) - 1),
    Primitive("uint64", "Q", 8, (1 << 64) - 1),
    Primitive("float", "f", 4, _NAN),
    Primitive("double", "d", 8, _NAN),
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A primitive, or a fixed array of primitives, with its limits.

    Attributes:
        length: number of elements; 1 is a single value, 0 the variable part of variable data.
        null: the value that means "none", if the presence is optional or the sender's version
            does not have the field.
        constant: the value where the presence is constant; such an encoding has no bytes.
        character_encoding: for example ``US-ASCII``; empty for numbers.
    """

    name: str
    primitive: Primitive
    byte_order: ByteOrder
    length: int
    presence: Presence
    null: Scalar
    minimum: Scalar | None
    maximum: Scalar | None
    constant: Scalar | None
    character_encoding: str

    @property
    def size_bytes(self) -> int:
        """Bytes that this takes in a block."""
        if self.presence is Presence.CONSTANT:
            return 0
        return self.primitive.size * self.length


@dataclass(frozen=True, slots=True)
class EnumValue:
    """One valid value of an enum."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum: a primitive of which only some values are valid."""

    name: str
    primitive: Primitive
    byte_order: ByteOrder
    null: int
    values: tuple[EnumValue, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes that this takes in a block."""
        return self.primitive.size


@dataclass(frozen=True, slots=True)
class Choice:
    """One flag of a set: bit number `bit`, 0 the least significant."""

    name: str
    bit: int


@dataclass(frozen=True, slots=True)
class BitSet:
    """A set: an unsigned primitive whose bits are flags."""

    name: str
    primitive: Primitive
    byte_order: ByteOrder
    choices: tuple[Choice, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes that this takes in a block."""
        return self.primitive.size


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a composite. `offset` counts from the composite's first byte.

    Attributes:
        semantic_type: as of a field.
        time_unit: as of a field.
    """

    name: str
    offset: int
    since_version: int
    type: Type
    semantic_type: str = ""
    time_unit: str = ""


@dataclass(frozen=True, slots=True)
class Composite:
    """Several encodings in a row, under one name."""

    name: str
    size_bytes: int
    members: tuple[Member, ...]

    def member(self, name: str) -> Member:
        """Look up a member by name.

        Raises:
            CodecError: there is none.
        """
        for member in self.members:
            if member.name == name:
                return member
        raise CodecError(f"composite {self.name} has no member {name!r}")


Type = Encoding | Enum | BitSet | Composite


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a block. `offset` counts from the block's first byte.

    Attributes:
        since_version: the schema version that added it; messages of older versions lack it.
        constant: value of a field with constant presence, otherwise None. Such a field has no
            bytes in the block.
        semantic_type: the type of FIX that its values have, such as ``UTCTimestamp``; or empty.
        time_unit: of a timestamp, such as ``microsecond``; or empty.
        exponent: of a mantissa, the field that has the exponent, in this body or one that it is in;
            or empty.
    """

    name: str
    id: int
    offset: int
    since_version: int
    presence: Presence
    constant: Scalar | None
    type: Type
    semantic_type: str = ""
    time_unit: str = ""
    exponent: str = ""


@dataclass(frozen=True, slots=True)
class VarData:
    """Variable data: a length and that many bytes, after the block and the groups.

    Attributes:
        length: the encoding of the length; its maximum, if any, limits the bytes of a value.
        character_encoding: for example ``US-ASCII``, ``UTF-8``; empty for plain bytes.
    """

    name: str
    id: int
    since_version: int
    length: Encoding
    header_size_bytes: int
    character_encoding: str

    @property
    def max_length_bytes(self) -> int:
        """The maximum bytes of one value."""
        largest = (1 << (8 * self.length.primitive.size)) - 2
        declared = self.length.maximum
        return declared if isinstance(declared, int) else largest


@dataclass(frozen=True, slots=True)
class Group:
    """A repeating group: its dimensions, then that many entries of a block, groups and data.

    Attributes:
        dimensions: the composite before the entries, with ``blockLength`` and ``numInGroup``.
        block_length: bytes of one entry's block in this schema version.
    """

    name: str
    id: int
    since_version: int
    block_length: int
    dimensions: Composite
    fields: tuple[Field, ...]
    groups: tuple[Group, ...]
    var_data: tuple[VarData, ...]


@dataclass(frozen=True, slots=True)
class MessageSchema:
    """A message: `id` is the template id, `block_length` the bytes of the block in this version."""

    name: str
    id: int
    since_version: int
    block_length: int
    fields: tuple[Field, ...]
    groups: tuple[Group, ...]
    var_data: tuple[VarData, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole schema: `header` is the composite before every message."""

    package: str
    id: int
    version: int
    header: Composite
    messages: tuple[MessageSchema, ...]

    def message(self, name_or_id: str | int) -> MessageSchema:
        """Look up a message by name or template id.

        Raises:
            CodecError: the schema has no such message.
        """
        for message in self.messages:
            if name_or_id in (message.name, message.id):
                return message
        known = ", ".join(f"{m.name} ({m.id})" for m in self.messages)
        raise CodecError(f"schema {self.package} has no message {name_or_id!r}; it has {known}")
