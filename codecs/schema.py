"""The tree of an SBE schema, every type resolved and every offset known.

`codecs/ir.py` builds it from what sbe-tool makes of a schema; `codecs/emitter.py` writes Python
modules from it, and the decoder of users' payloads walks it. Offsets and sizes are in
bytes; the names are those of the SBE specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from aerotape.errors import CodecError

Scalar = int | float | bytes


class Presence(IntEnum):
    """Whether a field is always there (`PresenceCodec` of sbe-ir.xml)."""

    REQUIRED = 0
    OPTIONAL = 1
    CONSTANT = 2


class ByteOrder(IntEnum):
    """Byte order of an encoding (`ByteOrderCodec` of sbe-ir.xml)."""

    LITTLE_ENDIAN = 0
    BIG_ENDIAN = 1

    @property
    def struct_prefix(self) -> str:
        """The prefix that `struct` has for this order."""
        return "<" if self is ByteOrder.LITTLE_ENDIAN else ">"


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
        null: the value that means "none"; only of a meaning where the presence is optional, or
            where the sender's version does not know the field.
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
    """One valid value of an enum; `since_version` is 0 for a value that always existed."""

    name: str
    value: int
    since_version: int


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum: a primitive of which only some values are valid.

    `constant` is set on a field with constant presence (``valueRef``) and then names the value.
    """

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
    since_version: int


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
    """One member of a composite. `offset` counts from the composite's first byte."""

    name: str
    offset: int
    since_version: int
    type: Type


@dataclass(frozen=True, slots=True)
class Composite:
    """Several encodings in a row, under one name."""

    name: str
    size_bytes: int
    members: tuple[Member, ...]

    def member(self, name: str) -> Member:
        """Look a member up by name.

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
        since_version: the schema version that added it; a sender of an older version has none.
        deprecated_version: the schema version that gave it up, 0 if it is in use.
        constant: value of a field with constant presence, otherwise None. Such a field has no
            bytes in the block.
    """

    name: str
    id: int
    offset: int
    since_version: int
    deprecated_version: int
    presence: Presence
    constant: Scalar | None
    epoch: str
    time_unit: str
    semantic_type: str
    description: str
    type: Type


@dataclass(frozen=True, slots=True)
class VarData:
    """Variable data: a length and that many bytes, after the block and the groups.

    Attributes:
        length: the encoding of the length; its maximum, if any, is the most bytes there may be.
        character_encoding: for example ``US-ASCII``, ``UTF-8``; empty for plain bytes.
    """

    name: str
    id: int
    since_version: int
    length: Encoding
    header_size_bytes: int
    character_encoding: str
    semantic_type: str
    description: str

    @property
    def max_length_bytes(self) -> int:
        """The most bytes that one value may have."""
        largest = (1 << (8 * self.length.primitive.size)) - 2
        declared = self.length.maximum
        return declared if isinstance(declared, int) else largest


@dataclass(frozen=True, slots=True)
class Group:
    """A repeating group: its dimensions, then that many entries of a block, groups and data.

    Attributes:
        dimensions: the composite in front, with the members ``blockLength`` and ``numInGroup``.
        block_length: bytes of one entry's block in this schema version.
    """

    name: str
    id: int
    since_version: int
    block_length: int
    dimensions: Composite
    description: str
    fields: tuple[Field, ...]
    groups: tuple[Group, ...]
    var_data: tuple[VarData, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message: `id` is the template id, `block_length` the bytes of the block in this version."""

    name: str
    id: int
    since_version: int
    block_length: int
    semantic_type: str
    description: str
    fields: tuple[Field, ...]
    groups: tuple[Group, ...]
    var_data: tuple[VarData, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole schema: `header` is the composite in front of every message."""

    package: str
    id: int
    version: int
    semantic_version: str
    header: Composite
    messages: tuple[Message, ...]

    def message(self, name_or_id: str | int) -> Message:
        """Look a message up by name or by template id.

        Raises:
            CodecError: the schema has no such message.
        """
        for message in self.messages:
            if name_or_id in (message.name, message.id):
                return message
        known = ", ".join(f"{m.name} ({m.id})" for m in self.messages)
        raise CodecError(f"schema {self.package} has no message {name_or_id!r}; it has {known}")
