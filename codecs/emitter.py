"""Write the Python source of a codec module from a schema's tree.

Supports the constructs that Aeron's schemas and ours use: single numbers, enums, ASCII text and
bytes, and groups of them whose entries are tuples, in a little-endian schema. Any other construct
is an error that names it.
"""

from __future__ import annotations

import keyword
import re

from aerotape.codecs.schema import (
    BitSet,
    ByteOrder,
    Composite,
    Encoding,
    Enum,
    Field,
    Group,
    MessageSchema,
    Presence,
    Schema,
    Type,
    VarData,
)
from aerotape.errors import CodecError

_LINE_LENGTH = 100
_MAX_VAR_DATA_LENGTH = 1 << 30  # as in codecs/runtime.py
# Names that are not allowed for fields, and for local variables of decode_body.
_RESERVED_FIELDS = {"encode", "encode_body", "decode_body", "self"}
_RESERVED_LOCALS = {"buffer", "offset", "block_length", "version", "cls", "end"}


def module_source(schema: Schema, schema_file: str, arguments: str = "") -> str:
    """Write the module; its header names the schema's file and the generator's arguments.

    Raises:
        CodecError: the schema has a construct that is not supported.
    """
    _check_header(schema)
    parts = [_head(schema, schema_file, arguments)]
    parts += [_enum_source(enum) for enum in _enums(schema)]
    parts += [_MessageSource(schema, message).text() for message in schema.messages]
    parts.append(_decode_source(schema))
    return "\n\n\n".join(parts) + "\n"


def snake_case(name: str) -> str:
    """Convert ``controlSessionId`` to ``control_session_id``."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return f"{snake}_" if keyword.iskeyword(snake) or snake in _RESERVED_FIELDS else snake


def _check_header(schema: Schema) -> None:
    for index, name in enumerate(("blockLength", "templateId", "schemaId", "version")):
        member = schema.header.member(name)
        if (
            member.offset != 2 * index
            or not isinstance(member.type, Encoding)
            or member.type.primitive.name != "uint16"
            or member.type.byte_order is not ByteOrder.LITTLE_ENDIAN  # of the whole schema
        ):
            raise CodecError(
                f"schema {schema.package}: {name} of the message header is not supported: expected "
                "SBE's standard header, little endian"
            )


def _head(schema: Schema, schema_file: str, arguments: str) -> str:
    lines = [
        f'"""Messages of the SBE schema {schema.package}, '
        f"id {schema.id}, version {schema.version}.",
        "",
        f"Generated from {schema_file} with sbe-tool by codecs/generate.py; do not edit.",
        f"Regenerate: python -m aerotape.codecs.generate {arguments}".rstrip(),
        '"""',
        "",
        "from __future__ import annotations",
        "",
    ]
    if _enums(schema):
        lines.append("from enum import IntEnum")
    lines += [
        "from struct import Struct",
        "from typing import ClassVar, Self",
        "",
        "from aerotape.codecs.runtime import (",
    ]
    data = [item for message in schema.messages for item in message.var_data]
    names = ["ENCODE_FAULTS", "Buffer", "Message", "check_block", "decode_message", "encode_error"]
    if _enums(schema):
        names.append("enum_member")
    if any(item.character_encoding for item in data):
        names += ["read_text", "text_field"]
    if not all(item.character_encoding for item in data):
        names += ["read_data", "data_field"]
    if any(message.groups for message in schema.messages):
        names += ["GroupLayout", "GroupRows", "group_field", "read_group"]
    # The order in which ruff wants imported names: constants, classes, functions.
    order = sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    lines += [f"    {name}," for name in order]
    lines += [")", "", f"SCHEMA_ID = {schema.id}", f"SCHEMA_VERSION = {schema.version}"]
    return "\n".join(lines)


def _enums(schema: Schema) -> list[Enum]:
    enums: dict[str, Enum] = {}
    for message in schema.messages:
        for field in (*message.fields, *(each for g in message.groups for each in g.fields)):
            if isinstance(field.type, Enum):
                enums.setdefault(field.type.name, field.type)
    return list(enums.values())


def _enum_source(enum: Enum) -> str:
    lines = [
        f"class {enum.name}(IntEnum):",
        f'    """Enum `{enum.name}` of the schema, {enum.primitive.name} on the wire."""',
        "",
    ]
    lines += [f"    {value.name} = {value.value}" for value in enum.values]
    return "\n".join(lines)


def _decode_source(schema: Schema) -> str:
    messages = "\n".join(f"    {message.id}: {message.name}," for message in schema.messages)
    return f'''\
MESSAGES: dict[int, type[Message]] = {{
{messages}
}}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "{schema.package}", MESSAGES)'''


class _MessageSource:
    """The source of one message class, preceded by its structs."""

    def __init__(self, schema: Schema, message: MessageSchema) -> None:
        self.schema = schema
        self.message = message
        self.struct = f"_{snake_case(message.name).upper()}"
        for group in message.groups:
            self.check_group(group)
        self.fields = sorted(message.fields, key=lambda field: field.offset)
        for field in self.fields:
            self.check_field(field)
        for data in message.var_data:
            self.check_data(data)
        self.tail: list[Group | VarData] = [*message.groups, *message.var_data]
        self.items: list[Field | Group | VarData] = [*self.fields, *self.tail]
        since = {self.since(item) for item in self.fields}
        self.versions = sorted(since | {0}, reverse=True)

    def unsupported(self, name: str) -> CodecError:
        return CodecError(
            f"{self.message.name}.{name} is not supported by the generator: expected integers, "
            "enums, ASCII text, bytes, and groups of integers and bytes"
        )

    def check_field(self, field: Field) -> None:
        kind: Type = field.type
        is_single = not isinstance(kind, Composite | BitSet) and (
            kind.size_bytes == kind.primitive.size and kind.primitive.code not in "cfd"
        )
        is_absent = isinstance(kind, Enum) and self.optional(field)
        if not is_single or is_absent or field.presence is Presence.CONSTANT:
            raise self.unsupported(field.name)

    def check_data(self, data: VarData) -> None:
        if (
            data.length.primitive.name != "uint32"
            or data.header_size_bytes != 4
            or data.max_length_bytes != _MAX_VAR_DATA_LENGTH
            or data.character_encoding not in ("", "US-ASCII")
        ):
            raise self.unsupported(data.name)

    def check_group(self, group: Group) -> None:
        dimensions = [(each.name, each.offset) for each in group.dimensions.members]
        members: list[Field | VarData] = [*group.fields, *group.var_data]
        if (
            group.groups
            or dimensions != [("blockLength", 0), ("numInGroup", 2)]
            or any(item.since_version > group.since_version for item in members)
            or any(data.character_encoding for data in group.var_data)
        ):
            raise self.unsupported(group.name)
        for field in group.fields:
            self.check_field(field)
        for data in group.var_data:
            self.check_data(data)

    def since(self, item: Field | Group | VarData) -> int:
        # A field not newer than its message is always present.
        return item.since_version if item.since_version > self.message.since_version else 0

    def optional(self, field: Field) -> bool:
        return field.presence is Presence.OPTIONAL or self.since(field) > 0

    def known(self, version: int) -> list[Field]:
        return [field for field in self.fields if self.since(field) <= version]

    def layout(self, version: int, block_length: int = 0) -> str:
        """The struct format of the fields known at a version, padded to the block length."""
        codes = ""
        end = 0
        for field in self.known(version):
            codes += _padding(field.offset - end) + self.code(field)
            end = field.offset + field.type.size_bytes
        return codes + _padding(block_length - end)

    @staticmethod
    def code(field: Field) -> str:
        assert isinstance(field.type, Encoding | Enum)
        return field.type.primitive.code

    @staticmethod
    def local(field: Field | Group | VarData) -> str:
        name = snake_case(field.name)
        return f"{name}_" if name in _RESERVED_LOCALS else name

    def text(self) -> str:
        return "\n".join(
            [*self.structs(), "", "", *self.declaration(), "", *self.encode(), "", *self.decode()]
        )

    def structs(self) -> list[str]:
        whole = "HHHH" + self.layout(self.versions[0], self.message.block_length)
        lines = [f'{self.struct} = Struct("<{whole}")']
        lines += [
            f'{self.block_struct(version)} = Struct("<{self.layout(version)}")'
            for version in self.versions
        ]
        for group in self.message.groups:
            count = group.dimensions.member("numInGroup").type
            codes = "".join(
                _padding(field.offset - end) + self.code(field)
                for field, end in zip(group.fields, _ends(group.fields), strict=False)
            )
            codes += _padding(group.block_length - _ends(group.fields)[-1])
            assert isinstance(count, Encoding)
            arguments = [
                f'Struct("<H{count.primitive.code}")', f'Struct("<{codes}")',
                str(len(group.var_data)),
            ]  # fmt: skip
            lines += _call("GroupLayout", arguments, 0, f"{self.group_layout(group)} = ")
        return lines

    def group_layout(self, group: Group) -> str:
        return f"{self.struct}_{snake_case(group.name).upper()}"

    def block_struct(self, version: int) -> str:
        return f"{self.struct}_BLOCK" + (f"_V{version}" if len(self.versions) > 1 else "")

    def declaration(self) -> list[str]:
        message = self.message
        about = f"Template {message.id}, `{message.name}`"
        if message.since_version:
            about += f", since version {message.since_version}"
        names = [f'"{snake_case(item.name)}"' for item in self.items]
        lines = [
            f"class {message.name}(Message):",
            f'    """{about}."""',
            "",
            f"    TEMPLATE_ID: ClassVar[int] = {message.id}",
            f"    BLOCK_LENGTH: ClassVar[int] = {message.block_length}",
            f"    SCHEMA_ID: ClassVar[int] = {self.schema.id}",
            f"    SCHEMA_VERSION: ClassVar[int] = {self.schema.version}",
            "",
            *_tuple("    __match_args__ = ", names),
            "    __slots__ = __match_args__",
            "",
        ]
        if not self.items:
            return lines[:-1]
        lines += ["    def __init__(", "        self,"]
        lines += [f"        {self.parameter(item)}" for item in self.items]
        lines.append("    ) -> None:")
        for item in self.items:
            name = snake_case(item.name)
            lines.append(f"        self.{name} = {name}")
        return lines

    def parameter(self, item: Field | Group | VarData) -> str:
        name = snake_case(item.name)
        if isinstance(item, Group):
            if not self.since(item):
                return f"{name}: GroupRows = (),"
            return f"{name}: GroupRows | None = None,  # since version {self.since(item)}"
        if isinstance(item, VarData):
            kind, empty = ("str", '""') if item.character_encoding else ("bytes", 'b""')
            return f"{name}: {kind}{' | None' if self.since(item) else ''} = {empty},"
        if isinstance(item.type, Enum):
            return f"{name}: {item.type.name} = {item.type.name}.{item.type.values[0].name},"
        if not self.optional(item):
            return f"{name}: int = 0,"
        since = f"  # since version {self.since(item)}" if self.since(item) else ""
        return f"{name}: int | None = None,{since}"

    def encode(self) -> list[str]:
        message = self.message
        values = [
            str(message.block_length),
            str(message.id),
            str(self.schema.id),
            str(self.schema.version),
        ]
        for field in self.fields:
            name = f"self.{snake_case(field.name)}"
            if self.optional(field):
                values.append(f"{_null(field)} if {name} is None else {name}")
            else:
                values.append(name)
        lines = ["    def encode(self) -> bytes:", "        try:"]
        target = "block = " if self.tail else "return "
        lines += _call(f"{self.struct}.pack", values, 12, target)
        if self.tail:
            data = [
                f"group_field(self.{snake_case(item.name)}, {self.group_layout(item)})"
                if isinstance(item, Group)
                else f"{_kind(item)}_field(self.{snake_case(item.name)})"
                for item in self.tail
            ]
            lines += _lines("return ", ["block", *data], " + ", 12)
        lines += [
            "        except ENCODE_FAULTS as fault:",
            f"            raise encode_error(self, {self.struct}, fault) from None",
        ]
        return lines

    def decode(self) -> list[str]:
        message = self.message
        lines = [
            "    @classmethod",
            "    def decode_body(",
            "        cls,",
            "        buffer: Buffer,",
            "        offset: int = 0,",
            f"        block_length: int = {message.block_length},",
            f"        version: int = {self.schema.version},",
            "    ) -> Self:",
        ]
        lines += [
            f"        {self.local(field)}: int | None = None"
            for field in self.fields
            if self.since(field)
        ]
        if len(self.versions) == 1:
            lines += self.read_block(0, 8)
        else:
            for version in self.versions:
                word = "if" if version == self.versions[0] else "elif"
                lines.append(
                    f"        {word} version >= {version}:" if version else "        else:"
                )
                lines += self.read_block(version, 12)
        lines += self.conversions()
        for item in self.tail:
            lines += self.read_tail(item)
        names = [self.local(item) for item in self.items]
        lines += _call("cls", names, 8, "return ")
        return lines

    def read_block(self, version: int, indent: int) -> list[str]:
        fields = self.known(version)
        needed = max((f.offset + f.type.size_bytes for f in fields), default=0)
        arguments = [f'"{self.message.name}"', "buffer", "offset", "block_length", str(needed)]
        target = "end = " if self.tail else ""
        names = ", ".join(self.local(field) for field in fields)
        unpack = f"{self.block_struct(version)}.unpack_from(buffer, offset)"
        pad = " " * indent
        lines = _call("check_block", arguments, indent, target)
        line = f"{pad}({names}{',' if len(fields) == 1 else ''}) = {unpack}"
        if len(line) <= _LINE_LENGTH:
            return [*lines, line]
        listed = [f"{pad}    {self.local(field)}," for field in fields]
        return [*lines, f"{pad}(", *listed, f"{pad}) = {unpack}"]

    def conversions(self) -> list[str]:
        lines = []
        for field in self.fields:
            name = self.local(field)
            if isinstance(field.type, Enum):
                where = f'"{self.message.name}.{snake_case(field.name)}"'
                lines += _call("enum_member", [field.type.name, name, where], 8, f"{name} = ")
            elif self.optional(field):
                lines += [f"        if {name} == {_null(field)}:", f"            {name} = None"]
        return lines

    def read_tail(self, item: Group | VarData) -> list[str]:
        name = self.local(item)
        where = f'"{self.message.name}.{snake_case(item.name)}"'
        target = f"{name}, {'_' if item is self.tail[-1] else 'end'} = "
        if isinstance(item, Group):
            function, python = "read_group", "GroupRows"
            arguments = ["buffer", "end", where, self.group_layout(item)]
        else:
            function, python = f"read_{_kind(item)}", "str" if item.character_encoding else "bytes"
            arguments = ["buffer", "end", where]
        if not self.since(item):
            return _call(function, arguments, 8, target)
        return [
            f"        {name}: {python} | None = None",
            f"        if version >= {self.since(item)}:",
            *_call(function, arguments, 12, target),
        ]


def _kind(data: VarData) -> str:
    return "text" if data.character_encoding else "data"


def _ends(fields: tuple[Field, ...]) -> list[int]:
    """The end of the field before each field, and of the last, bytes."""
    return [0, *(field.offset + field.type.size_bytes for field in fields)]


def _null(field: Field) -> str:
    assert isinstance(field.type, Encoding | Enum)
    return str(field.type.null)


def _padding(count: int) -> str:
    return f"{count}x" if count > 0 else ""


def _tuple(prefix: str, members: list[str]) -> list[str]:
    """A tuple on one line if it fits, otherwise one member a line."""
    line = f"{prefix}({', '.join(members)}{',' if len(members) == 1 else ''})"
    if len(line) <= _LINE_LENGTH:
        return [line]
    return [f"{prefix}(", *(f"        {member}," for member in members), "    )"]


def _call(function: str, arguments: list[str], indent: int, prefix: str = "") -> list[str]:
    """A call on one line if it fits, otherwise one argument a line."""
    pad = " " * indent
    line = f"{pad}{prefix}{function}({', '.join(arguments)})"
    if len(line) <= _LINE_LENGTH:
        return [line]
    return [
        f"{pad}{prefix}{function}(",
        *(f"{pad}    {argument}," for argument in arguments),
        f"{pad})",
    ]


def _lines(prefix: str, terms: list[str], operator: str, indent: int) -> list[str]:
    """An expression on one line if it fits, otherwise in parentheses, one term a line."""
    pad = " " * indent
    line = f"{pad}{prefix}{operator.join(terms)}"
    if len(line) <= _LINE_LENGTH:
        return [line]
    sign = operator.strip()
    rest = [f"{pad}    {sign} {term}" for term in terms[1:]]
    return [f"{pad}{prefix}(", f"{pad}    {terms[0]}", *rest, f"{pad})"]
