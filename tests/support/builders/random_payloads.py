"""Random payloads of a schema, and of others: whole, truncated, of other messages, noise."""

from __future__ import annotations

import random
import struct

from aerotape.codecs.schema import ByteOrder, Composite, Encoding, Group, MessageSchema, Schema


class RandomPayloads:
    """Writes payloads with a valid structure and noise in their fields."""

    def __init__(self, schema: Schema, rng: random.Random) -> None:
        self._schema = schema
        self._rng = rng

    def batch(self, count: int) -> list[bytes | None]:
        """Return payloads of mixed messages and versions; null ones, others and damaged ones."""
        return [self._one() for _ in range(count)]

    def _one(self) -> bytes | None:
        rng = self._rng
        kind = rng.choices(
            ("message", "other schema", "other template", "truncated", "noise", "null"),
            (12, 1, 1, 2, 1, 1),
        )[0]
        if kind == "null":
            return None
        if kind == "noise":
            return rng.randbytes(rng.choice((0, 1, 7, 40)))
        message = rng.choice(self._schema.messages)
        template = message.id if kind != "other template" else 9_999
        schema_id = self._schema.id if kind != "other schema" else self._schema.id ^ 1
        try:
            payload = self._message(message, template, schema_id)
        except struct.error:  # a number has no room in its header
            return b""
        return payload[: rng.randrange(len(payload))] if kind == "truncated" else payload

    def _message(self, message: MessageSchema, template: int, schema_id: int) -> bytes:
        version = self._rng.randint(0, self._schema.version + 1)
        length = message.block_length + self._rng.randint(0, 2)
        header = self._composite(
            self._schema.header,
            blockLength=length,
            templateId=template,
            schemaId=schema_id,
            version=version,
        )
        return header + self._body(message, length, version)

    def _body(self, body: MessageSchema | Group, length: int, version: int) -> bytes:
        parts = [self._noise(length)]
        for group in body.groups:
            if group.since_version > version:
                continue
            count = self._rng.choice((0, 1, 1, 3))
            size = group.block_length + self._rng.randint(0, 1)
            parts.append(self._composite(group.dimensions, blockLength=size, numInGroup=count))
            parts += [self._body(group, size, version) for _ in range(count)]
        for data in body.var_data:
            if data.since_version <= version:
                value = self._noise(self._rng.choice((0, 1, 5, 30)))
                header = bytearray(data.header_size_bytes)
                _put(header, 0, data.length, len(value))
                parts += [bytes(header), value]
        return b"".join(parts)

    def _composite(self, composite: Composite, **values: int) -> bytes:
        header = bytearray(composite.size_bytes)
        for name, value in values.items():
            member = composite.member(name)
            assert isinstance(member.type, Encoding)
            _put(header, member.offset, member.type, value)
        return bytes(header)

    def _noise(self, length: int) -> bytes:
        """Bytes among which are the null values of all types, and text."""
        noise = bytearray()
        while len(noise) < min(length, 64):
            each = self._rng.choice(
                (b"\0", b"\xff", b"\x80", b"\x7f\xc0", b"text", b"\xc3\xa9", b"")
            )
            noise += each * self._rng.choice((1, 8)) or self._rng.randbytes(3)
        return (bytes(noise) * (length // 64 + 1))[:length]


def _put(header: bytearray, offset: int, encoding: Encoding, value: int) -> None:
    order = ">" if encoding.byte_order is ByteOrder.BIG_ENDIAN else "<"
    struct.pack_into(f"{order}{encoding.primitive.code}", header, offset, value)
