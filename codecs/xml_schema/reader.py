"""Read a schema in XML into the tree of `codecs/schema.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from aerotape.codecs.schema import ByteOrder, Composite, Schema
from aerotape.codecs.xml_schema.document import Element, parse_document
from aerotape.codecs.xml_schema.headers import message_header
from aerotape.codecs.xml_schema.messages import Messages
from aerotape.codecs.xml_schema.problems import MistakeError, Problems
from aerotape.codecs.xml_schema.types import Types
from aerotape.codecs.xml_schema.values import number, required, required_number
from aerotape.errors import SchemaError

_ORDERS: Final = {
    "littleEndian": ByteOrder.LITTLE_ENDIAN,
    "bigEndian": ByteOrder.BIG_ENDIAN,
}
_TYPES: Final = ("type", "composite", "enum", "set")


def read_xml(path: Path, content: bytes, read: Callable[[str], bytes]) -> Schema:
    """Read a schema, with the files that it includes.

    Args:
        path: the file, for messages and the folder of included files.
        content: its bytes.
        read: see `parse_document`.

    Raises:
        SchemaError: the schema has mistakes; the error lists all of them.
    """
    root = parse_document(path, content, read)
    if root.tag != "messageSchema":
        raise SchemaError([f"{root.place}: {root.label}: expected messageSchema, an SBE schema"])
    problems = Problems()
    schema = None
    with problems.of(root):
        schema = _read(root, problems)
    problems.check()
    assert schema is not None
    return schema


def _read(root: Element, problems: Problems) -> Schema:
    package = required(root, "package")
    id_ = required_number(root, "id")
    version = number(root, "version") or 0
    order = root.attributes.get("byteOrder", "littleEndian")
    if order not in _ORDERS:
        raise MistakeError(f"byteOrder {order!r}: expected {' or '.join(_ORDERS)}")
    declared = (each for types in root.all("types") for each in types.all(*_TYPES))
    types = Types(declared, version, _ORDERS[order], problems)
    types.resolve_all()
    header: Composite | None = None
    with problems.of(root):
        name = root.attributes.get("headerType", "messageHeader")
        header = message_header(types.resolve(name).type, name)
    # SBE 2.0 has the messages in an element of that name.
    parents = (root, *root.all("messages"))
    elements = [message for parent in parents for message in parent.all("message")]
    messages = Messages(types, problems).read(elements)
    if header is None:
        raise MistakeError
    return Schema(package, id_, version, header, messages)
