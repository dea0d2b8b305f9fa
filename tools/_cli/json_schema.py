"""JSON Schemas of what commands print with --json, and docs/json-output.md.

Both are generated from the dataclasses that the commands print: their types, and the descriptions
in their docstrings. The module of a command names them in `JSON_ROWS`: by the option that selects
them, "" without one; by the command's name in a module with commands of a group. A value is a
class, a union or tuple of several, or `dict` for any object. "module:Class" is a class that the
command imports only when it prints it.

python -m aerotape.tools._cli.json_schema          a schema for each command, as JSON
python -m aerotape.tools._cli.json_schema --page   docs/json-output.md
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import enum
import importlib
import inspect
import json
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, Union

from aerotape.tools._cli.main import command_files
from aerotape.tools._cli.output import Absent

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TOOLS: Final = Path(__file__).parents[1]
_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    bytes: "string",
    Path: "string",
    types.NoneType: "null",
}
_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_PAGE: Final = """# JSON output

With `--json` a command prints one object, an array with an object a line, or, where it prints as it
goes, an object a line. Bytes are in hexadecimal. Numbers that JSON lacks are `"NaN"`, `"Infinity"`
and `"-Infinity"`. Control characters are escaped.

`python -m aerotape.tools._cli.json_schema` prints a JSON Schema, that of an object with a record of
each command by the command's name. The tests check what commands print against it.

A field with `?` may be absent. `[Name]` is an array of records. Records that several commands
print, or that are in others, are listed below the commands.

## Commands

{commands}
## Records

{records}"""


def commands() -> dict[str, tuple[type, ...]]:
    """Return the classes of the records of each command, with the option that selects them."""
    found: dict[str, tuple[type, ...]] = {}
    for name, file in command_files().items():
        path = ".".join(file.relative_to(_TOOLS).with_suffix("").parts)
        module = importlib.import_module(f"aerotape.tools.{path}")
        for option, rows in getattr(module, "JSON_ROWS", {}).items():
            found[f"{name} {option}".rstrip()] = tuple(_classes(rows))
        for command, part in getattr(module, "MODULES", {}).items():
            member = importlib.import_module(f"aerotape.tools.{module.FOLDER}.{part}")
            found[f"{name} {command}"] = tuple(_classes(member.JSON_ROWS[command]))
    return dict(sorted(found.items()))


def _classes(rows: Any) -> Iterator[type]:
    if isinstance(rows, str):
        yield pkgutil.resolve_name(rows)
    elif isinstance(rows, (tuple, types.UnionType)):
        for each in rows if isinstance(rows, tuple) else rows.__args__:
            yield from _classes(each)
    else:
        yield rows


def schema() -> dict[str, Any]:
    """Return the schema of an object with a record of each command by the command's name."""
    found = commands()
    return {
        "$schema": _DIALECT,
        "title": "What the commands of aerotape print with --json",
        "type": "object",
        "properties": {
            name: {"anyOf": [_record(each) for each in classes]} for name, classes in found.items()
        },
        "additionalProperties": False,
        "$defs": {each.__name__: _record(each) for each in _inner(found.values())},
    }


def page() -> str:
    """Return docs/json-output.md."""
    found = commands()
    uses = [each for classes in found.values() for each in classes]
    inner = _inner(found.values())
    below = inner | {each for each in uses if uses.count(each) > 1}
    sections = []
    for name, classes in found.items():
        parts = [_link(each) if each in below else _described(each) for each in classes]
        sections.append(f"### `{name}`\n\n" + "\nor\n\n".join(parts))
    records = sorted(below - {dict}, key=lambda each: each.__name__)
    _check_names(records)
    return _PAGE.format(
        commands="\n".join(sections),
        records="\n".join(f"### {each.__name__}\n\n{_described(each)}" for each in records),
    )


def _link(record: type) -> str:
    return f"[{record.__name__}](#{record.__name__.lower()})\n"


def _described(record: type) -> str:
    """Return the description of a record and the table of its fields."""
    if record is dict:
        return "An object whose fields depend on the arguments.\n"
    rows = [
        f"| `{name}{'?' if is_optional else ''}` | {_type_text(kind)} | {meaning} |"
        for name, kind, is_optional, meaning in _fields(record)
    ]
    summary = inspect.cleandoc(record.__doc__ or "").partition("\n")[0]
    return "\n".join([summary, "", "| field | type | meaning |", "| --- | --- | --- |", *rows, ""])


def _inner(classes: Iterable[tuple[type, ...]]) -> set[type]:
    """Return the classes of records that are in other records."""
    found: set[type] = set()
    left = [each for group in classes for each in group]
    while left:
        for _, kind, _, _ in _fields(left.pop()):
            new = set(_records_in(kind)) - found
            found |= new
            left += new
    _check_names(found)
    return found


def _check_names(records: Collection[type]) -> None:
    """Refuse records of the same name, by which others refer to them."""
    names = [each.__name__ for each in records]
    assert len(names) == len(set(names)), sorted(names)


def _records_in(kind: Any) -> Iterator[type]:
    if _is_record(kind):
        yield kind
    for each in typing.get_args(kind):
        yield from _records_in(each)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _record(record: type) -> dict[str, Any]:
    if record is dict:
        return {"type": "object"}
    fields = _fields(record)
    return {
        "type": "object",
        "properties": {
            name: {**_type(kind), "description": meaning} for name, kind, _, meaning in fields
        },
        "required": [name for name, _, is_optional, _ in fields if not is_optional],
        "additionalProperties": False,
    }


def _fields(record: type) -> list[tuple[str, Any, bool, str]]:
    """Return name, type, whether it may be absent, and description of each field of a record.

    Raises:
        KeyError: a field has no description.
    """
    if record is dict:
        return []
    hints, meanings = _hints(record), _meanings(record)
    found = []
    for field in dataclasses.fields(record):
        kinds = _alternatives(hints[field.name])
        is_optional = Absent in kinds
        kind: Any = Union.__getitem__(tuple(each for each in kinds if each is not Absent))
        found.append((field.name, kind, is_optional, meanings[field.name]))
    return found


def _meanings(record: type) -> dict[str, str]:
    """Return the descriptions in the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for each in reversed(record.__mro__):
        _, _, attributes = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")
        for name, text in _ATTRIBUTE.findall(attributes):
            found[name] = " ".join(text.split()).removesuffix(".").replace("None", "null")
    return found


def _hints(record: type) -> dict[str, Any]:
    """Return the types of fields, also of those that are imported for type checkers only."""
    names: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(record, localns=names)
        except NameError as error:
            name = str(error.name)
            names[name] = _imported(record, name)


def _imported(record: type, name: str) -> Any:
    """The object that the module of a class or of its bases imports as `name`, at any level."""
    for each in record.__mro__:
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[each.__module__]))):
            if isinstance(node, ast.ImportFrom) and name in {part.name for part in node.names}:
                return getattr(importlib.import_module(node.module or ""), name)
    raise NameError(name)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(kind) in (Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)


def _type(kind: Any) -> dict[str, Any]:
    """Return the schema of a type."""
    if kind is Any:
        return {}
    if len(kinds := _alternatives(kind)) > 1:
        return {"anyOf": [_type(each) for each in kinds]}
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (collections.abc.Sequence, list, tuple):
        return {"type": "array", "items": _type(args[0])}
    if origin in (collections.abc.Mapping, dict):
        return {"type": "object", "additionalProperties": _type(args[1])}
    if _is_record(kind):
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if origin is Literal or issubclass(kind, enum.Enum):
        return {"type": "string"}
    return {"type": _TYPES[kind]}


def _type_text(kind: Any) -> str:
    """Return a type as the page shows it."""
    if kind is Any:
        return "any"
    if len(kinds := _alternatives(kind)) > 1:
        return " or ".join(map(_type_text, kinds))
    args = typing.get_args(kind)
    found = _type(kind)
    if found.get("type") == "array":
        return f"[{_type_text(args[0])}]"
    if _is_record(kind):
        return str(kind.__name__)
    return str(found["type"])


if __name__ == "__main__":
    if "--page" in sys.argv:
        print(page(), end="")
    else:
        print(json.dumps(schema(), indent=2))
