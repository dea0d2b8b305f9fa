"""What a user states of a schema that the schema does not say: timestamps, and encodings of text.

It becomes part of the tree of the schema, so that decoder and encoder follow it alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final, TypeVar

from aerotape.codecs.schema import (
    Composite,
    Encoding,
    Field,
    Group,
    Member,
    MessageSchema,
    Presence,
    Schema,
    Type,
    VarData,
)
from aerotape.codecs.semantic_types import DIGITS
from aerotape.errors import ConfigurationError

UNITS: Final = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
TEXT_ENCODINGS: Final = ("utf-8", "iso-8859-1", "bytes")
"""What texts without an encoding, or of US-ASCII, may be; `bytes`: not text."""

_ASCII: Final = ("", "ascii", "us-ascii")
_Part = TypeVar("_Part", Field, Member)
_Body = TypeVar("_Body", MessageSchema, Group)


def with_options(
    schema: Schema, timestamps: Mapping[str, str] | None, text_encoding: str | None
) -> Schema:
    """Return a schema with what a user states of it.

    Args:
        schema: the schema.
        timestamps: names of integer fields, also of groups and composites, that are times since
            1970, each with its unit: s, ms, us or ns.
        text_encoding: one of `TEXT_ENCODINGS`, of texts that have none or US-ASCII.

    Raises:
        ConfigurationError: there is no such field, unit or encoding.
    """
    if not timestamps and text_encoding is None:
        return schema
    if text_encoding is not None and text_encoding not in TEXT_ENCODINGS:
        raise ConfigurationError(
            f"text_encoding: {text_encoding!r} is not one of {', '.join(TEXT_ENCODINGS)}",
            "text_encoding",
        )
    for name, unit in (timestamps or {}).items():
        if unit not in UNITS:
            raise ConfigurationError(
                f"timestamps: {name}={unit}: the unit is not one of {', '.join(UNITS)}",
                "timestamps",
            )
    stated = _Stated(timestamps or {}, text_encoding)
    changed = replace(schema, messages=tuple(map(stated.body, schema.messages)))
    for name in timestamps or {}:
        if name not in stated.found:
            close = get_close_matches(name, stated.integers, 1)
            hint = f", do you mean {close[0]}?" if close else ""
            raise ConfigurationError(
                f"timestamps: schema {schema.package} has no integer field {name!r} of 4 or 8 "
                f"bytes{hint}",
                "timestamps",
            )
    return changed


def timestamp_fields(schema: Schema) -> frozenset[str]:
    """Return the names of the integer fields that may be stated to be timestamps."""
    stated = _Stated({}, None)
    for message in schema.messages:
        stated.body(message)
    return frozenset(stated.integers)


@dataclass(slots=True)
class _Stated:
    """Applies what is stated to the parts of a schema.

    Attributes:
        integers: names of integers that could be timestamps.
        found: those that are.
    """

    timestamps: Mapping[str, str]
    text_encoding: str | None
    integers: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)

    def body(self, body: _Body) -> _Body:
        return replace(
            body,
            fields=tuple(map(self._part, body.fields)),
            groups=tuple(map(self.body, body.groups)),
            var_data=tuple(map(self._var_data, body.var_data)),
        )

    def _part(self, part: _Part) -> _Part:
        kind = self._type(part.type)
        is_time = (
            isinstance(kind, Encoding)
            and kind.primitive.name in DIGITS
            and kind.primitive.size >= 4
            and kind.length == 1
            and kind.presence is not Presence.CONSTANT
        )
        if is_time:
            self.integers.add(part.name)
        if not is_time or part.name not in self.timestamps:
            return replace(part, type=kind)
        self.found.add(part.name)
        unit = UNITS[self.timestamps[part.name]]
        return replace(part, type=kind, semantic_type="UTCTimestamp", time_unit=unit)

    def _type(self, kind: Type) -> Type:
        if isinstance(kind, Composite):
            return replace(kind, members=tuple(map(self._part, kind.members)))
        if not isinstance(kind, Encoding) or kind.primitive.name != "char":
            return kind
        if not self._is_stated(kind.character_encoding):
            return kind
        return replace(kind, character_encoding=str(self.text_encoding))

    def _var_data(self, data: VarData) -> VarData:
        if data.character_encoding and self._is_stated(data.character_encoding):
            return replace(data, character_encoding=str(self.text_encoding))
        return data

    def _is_stated(self, encoding: str) -> bool:
        return self.text_encoding is not None and encoding.strip().lower() in _ASCII
