"""SBE payloads read value by value from a `Schema`: the slow reference for other decoders."""

from __future__ import annotations

import math
import struct
from typing import Any

from aerotape.codecs.schema import (
    BitSet,
    Composite,
    Encoding,
    Enum,
    Field,
    Group,
    MessageSchema,
    Presence,
    Scalar,
    Schema,
    Type,
    VarData,
)


class Malformed(Exception):
    """The payload ends too early."""


class Reader:
    """Reads one payload from the first byte to the last."""

    def __init__(self, schema: Schema, payload: bytes) -> None:
        self._schema = schema
        self._payload = payload
        self._position = 0
        self._entries = 0

    def message(self) -> tuple[str, dict[str, Any]] | None:
        """Return name and values; None if the schema or the template does not match."""
        header = self._take(self._schema.header.size_bytes)
        values = _composite(self._schema.header, header, 1 << 62)
        self._version = values["version"]
        kinds = [m for m in self._schema.messages if m.id == values["templateId"]]
        if values["schemaId"] != self._schema.id or not kinds:
            return None
        return kinds[0].name, self._body(kinds[0], values["blockLength"])

    def _body(self, body: MessageSchema | Group, block_length: int) -> dict[str, Any]:
        block = self._take(block_length)
        values: dict[str, Any] = {}
        for field in body.fields:
            values[field.name] = _field(field, block, self._version)
        for group in body.groups:
            values[group.name] = self._group(group)
        for data in body.var_data:
            values[data.name] = self._data(data)
        return values

    def _group(self, group: Group) -> list[dict[str, Any]] | None:
        if group.since_version > self._version:
            return None
        dimensions = _composite(group.dimensions, self._take(group.dimensions.size_bytes), 1 << 62)
        entries = []
        for _ in range(dimensions["numInGroup"]):
            self._entries += 1
            if self._entries > len(self._payload):
                raise Malformed
            entries.append(self._body(group, dimensions["blockLength"]))
        return entries

    def _data(self, data: VarData) -> str | bytes | None:
        if data.since_version > self._version:
            return None
        length = _scalar(data.length, self._take(data.header_size_bytes))
        assert isinstance(length, int)
        return _decoded(self._take(length), data.character_encoding)

    def _take(self, length: int) -> bytes:
        if length > len(self._payload) - self._position:
            raise Malformed
        taken = self._payload[self._position : self._position + length]
        self._position += length
        return taken


def _field(field: Field, block: bytes, version: int) -> Any:
    if field.since_version > version:
        # Arrow retains the members of a null struct; Python shows only the null.
        return None
    optional = field.presence is Presence.OPTIONAL
    return _value(field.type, block[field.offset :], field.constant, optional, version)


def _composite(composite: Composite, block: bytes, version: int) -> dict[str, Any]:
    values = {}
    for member in composite.members:
        kind = member.type
        constant = kind.constant if isinstance(kind, Encoding) else None
        optional = isinstance(kind, Encoding) and kind.presence is Presence.OPTIONAL
        known = member.since_version <= version
        values[member.name] = (
            _value(kind, block[member.offset :], constant, optional, version) if known else None
        )
    return values


def _value(kind: Type, block: bytes, constant: Scalar | None, optional: bool, version: int) -> Any:
    match kind:
        case Composite():
            return _composite(kind, block, version)
        case Enum():
            number = _integer(kind, block) if constant is None else constant
            for value in kind.values:
                if value.value == number:
                    return value.name
            return None if number == kind.null else str(number)
        case BitSet():
            number = _integer(kind, block)
            return {choice.name: bool(number >> choice.bit & 1) for choice in kind.choices}
    null = kind.null if optional else None
    if kind.primitive.name == "char":
        text = constant if isinstance(constant, bytes) else _cut(block, kind.length)
        if optional and text[:1] == null:
            return None
        return _decoded(text.partition(b"\0")[0], kind.character_encoding or "US-ASCII")
    if constant is not None:
        return constant
    if kind.length > 1 and kind.primitive.name == "uint8":
        return _cut(block, kind.length)
    size = kind.primitive.size
    numbers = [_present(kind, _scalar(kind, block[i * size :]), null) for i in range(kind.length)]
    return numbers if kind.length > 1 else numbers[0]


def _present(kind: Encoding, number: Scalar, null: Scalar | None) -> Any:
    if number == null or (isinstance(null, float) and math.isnan(null) and math.isnan(number)):  # type: ignore[arg-type]
        return None
    return number


def _integer(kind: Enum | BitSet, block: bytes) -> int:
    raw = _cut(block, kind.primitive.size)
    order = "little" if kind.byte_order == 0 else "big"
    return int.from_bytes(raw, order, signed=kind.primitive.name.startswith("int"))  # type: ignore[arg-type]


def _scalar(kind: Encoding, block: bytes) -> Scalar:
    raw = _cut(block, kind.primitive.size)
    value: Scalar = struct.unpack("<>"[kind.byte_order] + kind.primitive.code, raw)[0]
    return value


def _cut(block: bytes, length: int) -> bytes:
    if len(block) < length:
        raise Malformed
    return block[:length]


def _decoded(data: bytes, encoding: str) -> str | bytes:
    match encoding:
        case "UTF-8" | "US-ASCII":
            return data.decode("utf-8", "backslashreplace")
        case "ISO-8859-1":
            return data.decode("latin-1")
    return data
