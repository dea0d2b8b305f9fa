"""Show the messages of an SBE schema as they are understood, or check a schema.

    aerotape schema orders.xml            messages with their fields: ids, types, offsets, sizes
    aerotape schema orders.xml --check    print only mistakes, each with file, line and element
    curl https://… | aerotape schema -    read the schema from standard input

Offsets count from the first byte of the message's block, or of the block of a group's entry. The
column since has the version of the schema that added a field: older messages do not have it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.location import parse_location
from aerotape.errors import SchemaError
from aerotape.tools._cli.exit_codes import EXIT_FAILURE, EXIT_OK
from aerotape.tools._cli.output import ABSENT, Absent, as_row, emit, emit_line, print_section

if TYPE_CHECKING:
    from aerotape.codecs.schema import Group, MessageSchema, Scalar, Schema, Type

_INDENT: Final = "  "
# What a message, a group or a field can contain, and the kind of each part.
_PARTS: Final = {"members": "member", "fields": "field", "groups": "group", "data": "data"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaField:
    """A field of a message or group, or a member of a composite.

    Attributes:
        name: name.
        id: its id; not of a member.
        offset: offset in the block, bytes.
        since_version: version of the schema that added it.
        presence: required, optional or constant; null of a member that is not a value.
        type: name of its type.
        size: length, bytes; 0 of a constant.
        members: members of a composite.
        primitive_type: primitive type; not of a composite.
        constant: its value, of a constant.
        values: values of an enum, by name.
        choices: bits of a set, by name.
        length: number of values; as the next of fields that are neither enum nor set.
        character_encoding: character encoding.
        min_value: least value.
        max_value: greatest value.
        null_value: value that stands for null.
    """

    name: str
    id: int | Absent = ABSENT
    offset: int
    since_version: int
    presence: str | None
    type: str
    size: int
    members: Sequence[SchemaField] | Absent = ABSENT
    primitive_type: str | Absent = ABSENT
    constant: int | float | str | Absent | None = ABSENT
    values: Mapping[str, int | float | str | None] | Absent = ABSENT
    choices: Mapping[str, int] | Absent = ABSENT
    length: int | Absent = ABSENT
    character_encoding: str | Absent | None = ABSENT
    min_value: Any | Absent = ABSENT
    max_value: Any | Absent = ABSENT
    null_value: Any | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class SchemaData:
    """Variable-length data.

    Attributes:
        name: name.
        id: id.
        since_version: version of the schema that added it.
        type: data.
        primitive_type: type of the length field.
        header_size: length of the length field, bytes.
        character_encoding: character encoding.
    """

    name: str
    id: int
    since_version: int
    type: str
    primitive_type: str
    header_size: int
    character_encoding: str | None


@dataclass(frozen=True, slots=True)
class SchemaMessage:
    """A message, or a group.

    Attributes:
        name: name.
        id: id.
        since_version: version of the schema that added it.
        block_length: length of the block, bytes.
        fields: the fields.
        groups: the groups.
        data: the data fields.
    """

    name: str
    id: int
    since_version: int
    block_length: int
    fields: Sequence[SchemaField]
    groups: Sequence[SchemaMessage]
    data: Sequence[SchemaData]


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """A schema.

    Attributes:
        package: package of the schema.
        id: its id.
        version: version of the schema.
        messages: the messages.
    """

    package: str
    id: int
    version: str | int
    messages: Sequence[SchemaMessage]


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """A mistake in a schema.

    Attributes:
        problem: what is wrong.
    """

    problem: str


JSON_ROWS: Final = {"": SchemaRow | SchemaProblem}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "file",
        metavar="FILE",
        type=_file,
        help="the schema, XML or the .sbeir file of sbe-tool, or its URL; files that XML includes "
        "are in its folder or below; -: standard input",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="print the mistakes instead of the schema; the exit code is 1 if there are any",
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema, or its mistakes."""
    try:
        schema = _load(args.file)
    except SchemaError as error:
        if not args.check:
            raise
        for problem in error.problems:
            emit_line(SchemaProblem(problem), problem, args)
        return EXIT_FAILURE
    if args.check:
        return EXIT_OK
    about: dict[str, Any] = {"package": schema.package, "id": schema.id, "version": schema.version}
    if args.json:
        emit(SchemaRow(**about, messages=[_nested(each) for each in schema.messages]), args)
    else:
        print_section("schema", about)
        emit(_table(schema), args)
    return EXIT_OK


def _file(text: str) -> Path | None:
    """Parse the argument FILE; None for standard input."""
    return None if text == "-" else parse_location(text)


def _load(file: Path | None) -> Schema:
    from aerotape.codecs.schema_files import load_schema, schema_of
    from aerotape.codecs.xml_schema.document import MAX_BYTES

    if file is None:
        return schema_of(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")
    return load_schema(file)


def _table(schema: Schema) -> Iterator[dict[str, Any]]:
    for message in schema.messages:
        yield from _lines(as_row(_nested(message)), "message", "")


def _lines(row: dict[str, Any], kind: str, indent: str) -> Iterator[dict[str, Any]]:
    """Yield the line of a message, group, field or member, and those of its parts."""
    constant = row.get("constant")
    yield {
        "name": indent + row["name"],
        "id": row.get("id"),
        "type": _type_text(row) if "type" in row else kind,
        "offset": row.get("offset"),
        "size": row.get("size", row.get("block_length")),
        "since": row["since_version"],
        "presence": row.get("presence") if constant is None else f"constant {constant}",
    }
    for parts, of_part in _PARTS.items():
        for part in row.get(parts, ()):
            yield from _lines(part, of_part, indent + _INDENT)


def _type_text(row: dict[str, Any]) -> str:
    """Return the name of a type, and its primitive type if that has another name."""
    name: str = row["type"]
    if (primitive := row.get("primitive_type")) is None:
        return name
    if row.get("length", 1) != 1:
        primitive += f"[{row['length']}]"
    # A type that a composite declares has the name of the member.
    text = primitive if name in (row["name"], primitive) else f"{name} ({primitive})"
    encoding = row.get("character_encoding")
    return f"{text} {encoding}" if encoding else text


def _nested(body: MessageSchema | Group) -> SchemaMessage:
    """Describe a message or a group with all that is in it."""
    return SchemaMessage(
        name=body.name,
        id=body.id,
        since_version=body.since_version,
        block_length=body.block_length,
        fields=[
            SchemaField(
                name=field.name,
                id=field.id,
                offset=field.offset,
                since_version=field.since_version,
                presence=field.presence.name.lower(),
                **_described(field.type, field.offset, field.constant),
            )
            for field in body.fields
        ],
        groups=[_nested(group) for group in body.groups],
        data=[
            SchemaData(
                name=data.name,
                id=data.id,
                since_version=data.since_version,
                type="data",
                primitive_type=data.length.primitive.name,
                header_size=data.header_size_bytes,
                character_encoding=data.character_encoding or None,
            )
            for data in body.var_data
        ],
    )


def _described(kind: Type, offset: int, constant: Scalar | None) -> dict[str, Any]:
    """Describe a type where it is used; members have offsets from the start of the block."""
    from aerotape.codecs.schema import BitSet, Composite, Encoding, Enum, Presence

    about: dict[str, Any] = {"type": kind.name, "size": kind.size_bytes}
    if isinstance(kind, Composite):
        members = []
        for member in kind.members:
            inner = member.type if isinstance(member.type, Encoding) else None
            at = offset + member.offset
            members.append(
                SchemaField(
                    name=member.name,
                    offset=at,
                    since_version=member.since_version,
                    presence=inner.presence.name.lower() if inner else None,
                    **_described(member.type, at, inner.constant if inner else None),
                )
            )
        return about | {"members": members}
    about["primitive_type"] = kind.primitive.name
    if constant is not None:
        about |= {"size": 0, "constant": _plain(constant)}
    match kind:
        case Enum():
            about["values"] = {value.name: value.value for value in kind.values}
            if constant is not None:
                about["constant"] = next(v.name for v in kind.values if v.value == constant)
            about["null_value"] = kind.null
        case BitSet():
            about["choices"] = {choice.name: choice.bit for choice in kind.choices}
        case Encoding():
            about |= {
                "length": kind.length,
                "character_encoding": kind.character_encoding or None,
                "min_value": _plain(kind.minimum),
                "max_value": _plain(kind.maximum),
                "null_value": _plain(kind.null) if kind.presence is Presence.OPTIONAL else None,
            }
    return about


def _plain(value: Scalar | None) -> int | float | str | None:
    """Return a value that JSON has."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("latin-1")
    return str(value) if isinstance(value, float) and not isfinite(value) else value
