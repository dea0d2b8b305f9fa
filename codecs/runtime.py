"""The base class of generated messages, and the checks on bytes that their modules share.

A message on the wire is an 8-byte header (block length, template id, schema id, version: four
uint16), a block of fixed fields, then variable data, each a uint32 length and that many bytes.
Everything is little endian. Received lengths are not trusted: every helper checks them against the
end of the buffer first and raises `CodecError` otherwise.

Separate from the generated modules so that a change to a check needs no regeneration.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

from aerotape.errors import CodecError

Buffer = bytes | bytearray | memoryview
# Entries of a repeating group: each has its fields, then its variable data, in the wire's order.
GroupRows = Sequence[tuple[Any, ...]]

HEADER = struct.Struct("<HHHH")
HEADER_LENGTH = HEADER.size

# varAsciiEncoding and varDataEncoding of both schemas.
VAR_DATA_LENGTH = struct.Struct("<I")
MAX_VAR_DATA_LENGTH = 1 << 30

# Exceptions of struct, str.encode and len for a value that the type of a field does not allow.
ENCODE_FAULTS = (struct.error, UnicodeError, AttributeError, TypeError)

EnumT = TypeVar("EnumT", bound=IntEnum)


class Message:
    """Base of all generated messages, which are equal if all their fields are.

    Messages are not dataclasses because creating fifty of those classes would dominate the start of
    a client or an archive.

    Attributes:
        TEMPLATE_ID: the message's id in its schema.
        BLOCK_LENGTH: bytes of its fixed fields in this version of the schema.
        SCHEMA_ID: the schema's id.
        SCHEMA_VERSION: the schema version that `encode` writes.
    """

    __slots__ = ()
    # The names of the fields, in the order of the wire.
    __match_args__: tuple[str, ...] = ()

    TEMPLATE_ID: ClassVar[int]
    BLOCK_LENGTH: ClassVar[int]
    SCHEMA_ID: ClassVar[int]
    SCHEMA_VERSION: ClassVar[int]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__match_args__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({fields})"

    def encode(self) -> bytes:
        """Encode the message header and the body.

        A field that is None is written as its null value, variable data that is None as empty.

        Raises:
            CodecError: a field is out of its type's range, or a text is not ASCII.
        """
        raise NotImplementedError

    def encode_body(self) -> bytes:
        """Encode the body without the message header; raises like `encode`."""
        return self.encode()[HEADER_LENGTH:]

    @classmethod
    def decode_body(cls, buffer: Buffer, offset: int, block_length: int, version: int) -> Self:
        """Decode the body that begins at `offset`.

        Args:
            buffer: bytes that hold at least the body; what follows it is ignored.
            offset: the start of the body, bytes.
            block_length: bytes of the sender's block; fields beyond ours are skipped.
            version: the sender's schema version; fields newer than it are None.

        Raises:
            CodecError: the buffer is too short, or an enum or a length has an impossible value.
        """
        raise NotImplementedError


class SchemaCodecs(Protocol):
    """A module with the codecs of a schema (`codecs/generated/`)."""

    SCHEMA_ID: int

    def decode(self, buffer: bytes, /) -> Message: ...


def decode_message(
    buffer: Buffer, schema_id: int, name: str, messages: Mapping[int, type[Message]]
) -> Message:
    """Decode one whole message, header first; bytes after it are ignored.

    Args:
        buffer: the message, from the first byte of its header.
        schema_id: the schema id it must have.
        name: the schema's name, for error texts.
        messages: the schema's message classes by template id.

    Raises:
        CodecError: the message is too short, of another schema or template, or damaged.
    """
    if len(buffer) < HEADER_LENGTH:
        raise CodecError(
            f"{name}: {len(buffer)} bytes are too short for a message header of {HEADER_LENGTH}"
        )
    block_length, template_id, found_schema_id, version = HEADER.unpack_from(buffer)
    if found_schema_id != schema_id:
        raise CodecError(f"message of schema {found_schema_id}, expected {schema_id} ({name})")
    message = messages.get(template_id)
    if message is None:
        raise CodecError(
            f"{name}: unknown template id {template_id} (sender's schema version {version})"
        )
    return message.decode_body(buffer, HEADER_LENGTH, block_length, version)


def check_block(
    name: str, buffer: Buffer, offset: int, block_length: int, needed_bytes: int
) -> int:
    """Check that a block is complete and return its end offset.

    Args:
        needed_bytes: the least that the sender's version must have in its block.

    Raises:
        CodecError: the block is shorter than that, or exceeds the end of the buffer.
    """
    if block_length < needed_bytes:
        raise CodecError(
            f"{name}: block of {block_length} bytes is too short: expected at least {needed_bytes}"
        )
    end = offset + block_length
    if offset < 0 or end > len(buffer):
        raise CodecError(
            f"{name}: block of {block_length} bytes at offset {offset} exceeds the end of the "
            f"buffer at {len(buffer)}"
        )
    return end


def enum_member(enum: type[EnumT], value: int, name: str) -> EnumT:
    """Return the member of an enum with a value.

    Raises:
        CodecError: no member has the value.
    """
    try:
        return enum(value)
    except ValueError:
        raise CodecError(f"{name}: {value} is not a valid {enum.__name__}") from None


def read_data(buffer: Buffer, offset: int, name: str) -> tuple[bytes, int]:
    """Read one variable data field and return it with the offset after it.

    Raises:
        CodecError: its length, or the data, exceeds the end of the buffer.
    """
    start = offset + VAR_DATA_LENGTH.size
    if start > len(buffer):
        raise CodecError(
            f"{name}: length at offset {offset} exceeds the end of the buffer at {len(buffer)}"
        )
    (length,) = VAR_DATA_LENGTH.unpack_from(buffer, offset)
    end: int = start + length
    if end > len(buffer):
        raise CodecError(
            f"{name}: {length} bytes at offset {start} exceed the end of the buffer at "
            f"{len(buffer)}"
        )
    return bytes(buffer[start:end]), end


def read_text(buffer: Buffer, offset: int, name: str) -> tuple[str, int]:
    r"""Read one ASCII variable data field and return it with the offset after it.

    A byte beyond ASCII, which the schema forbids, reads as an escape such as ``\xe9``: a
    message is not refused over one odd character, and the text stays printable.

    Raises:
        CodecError: like `read_data`.
    """
    data, end = read_data(buffer, offset, name)
    return data.decode("ascii", "backslashreplace"), end


def data_field(value: bytes | None) -> bytes:
    """Return the wire format of a value: its length, then the value.

    Raises:
        CodecError: the value is longer than the schema allows.
    """
    if value is None:
        value = b""
    length = len(value)
    if length > MAX_VAR_DATA_LENGTH:
        raise CodecError(
            f"{length} bytes of variable data are too long: at most {MAX_VAR_DATA_LENGTH}"
        )
    return VAR_DATA_LENGTH.pack(length) + value


class GroupLayout(NamedTuple):
    """The layout of a repeating group.

    Attributes:
        dimensions: the length of an entry's block, and the number of entries.
        block: the fixed fields of an entry.
        data_count: the variable data of an entry, fields.
    """

    dimensions: struct.Struct
    block: struct.Struct
    data_count: int


def read_group(
    buffer: Buffer, offset: int, name: str, layout: GroupLayout
) -> tuple[GroupRows, int]:
    """Read one repeating group and return its entries with the offset after it.

    Raises:
        CodecError: an entry exceeds the end of the buffer, or its block is too short.
    """
    start = check_block(name, buffer, offset, layout.dimensions.size, layout.dimensions.size)
    block_length, count = layout.dimensions.unpack_from(buffer, offset)
    rows = []
    for _ in range(count):
        end = check_block(name, buffer, start, block_length, layout.block.size)
        row = layout.block.unpack_from(buffer, start)
        for _ in range(layout.data_count):
            data, end = read_data(buffer, end, name)
            row = (*row, data)
        rows.append(row)
        start = end
    return rows, start


def group_field(rows: GroupRows | None, layout: GroupLayout) -> bytes:
    """Return the wire format of a repeating group.

    Raises:
        CodecError: variable data is longer than the schema allows.
        struct.error: a field, or the number of entries, is out of its type's range; `encode`
            raises a `CodecError` instead.
    """
    rows = rows or ()
    parts = [layout.dimensions.pack(layout.block.size, len(rows))]
    for row in rows:
        fixed = len(row) - layout.data_count
        parts += [layout.block.pack(*row[:fixed]), *map(data_field, row[fixed:])]
    return b"".join(parts)


def text_field(value: str | None) -> bytes:
    """Return the wire format of an ASCII text: its length, then the text.

    Raises:
        CodecError: the text is longer than the schema allows.
        UnicodeEncodeError: the text is not ASCII; `encode` raises a `CodecError` instead.
    """
    return data_field(None if value is None else value.encode("ascii"))


def encode_error(message: Message, layout: struct.Struct, fault: Exception) -> CodecError:
    """Return the error for a message that cannot be encoded, with the field and the reason.

    Args:
        layout: the struct of header and block.
        fault: the exception of packing the message.
    """
    kind = type(message).__name__
    codes = [code for code in layout.format if code.isalpha() and code != "x"][4:]
    annotations = type(message).__init__.__annotations__
    for position, name in enumerate(message.__match_args__):
        value = getattr(message, name)
        if value is None and "None" in annotations[name]:
            continue
        try:
            if annotations[name].startswith("GroupRows"):
                continue
            if position < len(codes):
                struct.pack(f"<{codes[position]}", value)
            elif annotations[name].startswith("str"):
                value.encode("ascii")
            else:
                bytes(memoryview(value))
        except ENCODE_FAULTS as cause:
            return CodecError(f"{kind}.{name}: {value!r} cannot be encoded: {cause}")
    return CodecError(f"{kind} cannot be encoded: {fault}")
