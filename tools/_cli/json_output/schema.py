"""JSON Schemas of what commands print with --json, and docs/json-output.md.

python -m aerotape.tools._cli.json_output.schema          a schema for each command, as JSON
python -m aerotape.tools._cli.json_output.schema --page   docs/json-output.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, Final

from aerotape.tools._cli.json_output.fields import FIELDS
from aerotape.tools._cli.json_output.records import COMMANDS, RECORDS

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Final = {
    "int": "integer",
    "num": "number",
    "str": "string",
    "bool": "boolean",
    "null": "null",
}
_PAGE: Final = """# JSON output

With `--json` a command prints one object, an array with an object a line, or, where it prints as it
goes, an object a line. Bytes are in hexadecimal. Numbers that JSON lacks are `"NaN"`, `"Infinity"`
and `"-Infinity"`. Control characters are escaped.

`python -m aerotape.tools._cli.json_output.schema` prints a JSON Schema, that of an object with a
record of each command by the command's name. The tests check what commands print against it.

## Commands

A field with `?` may be absent. `[name]` are records, listed below the commands.

| command | fields |
| --- | --- |
{commands}

## Records in other records

| record | fields |
| --- | --- |
{records}

## Fields

| field | type | meaning |
| --- | --- | --- |
{fields}
"""


def schema() -> dict[str, Any]:
    """Return the schema of an object with a record of each command by the command's name."""
    return {
        "$schema": _DIALECT,
        "title": "What the commands of aerotape print with --json",
        "type": "object",
        "properties": {name: _record(fields) for name, fields in COMMANDS.items()},
        "additionalProperties": False,
        "$defs": {name: _record(fields) for name, fields in RECORDS.items()},
    }


def page() -> str:
    """Return docs/json-output.md."""
    return _PAGE.format(
        commands=_rows((f"`{name}`", _shown(fields)) for name, fields in COMMANDS.items()),
        records=_rows((name, _shown(fields)) for name, fields in RECORDS.items()),
        fields=_rows((f"`{name}`", *_parts(text)) for name, text in FIELDS.items()),
    )


def _record(fields: str) -> dict[str, Any]:
    if fields == "any":
        return {"type": "object"}
    if fields.startswith("{"):
        return {"$ref": f"#/$defs/{fields[1:-1]}"}
    properties, required = {}, []
    for field in fields.split():
        given_name, _, own_type = field.partition("=")
        name = given_name.removesuffix("?")
        kind, meaning = _parts(FIELDS[name])
        properties[name] = {**_type(own_type or kind), "description": meaning}
        if name == given_name:
            required.append(name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _type(kind: str) -> dict[str, Any]:
    if kind == "any":
        return {}
    if "|" in kind:
        return {"anyOf": [_type(each) for each in kind.split("|")]}
    if kind.startswith("["):
        return {"type": "array", "items": _type(kind[1:-1])}
    if kind.startswith("{"):
        return _record(kind)
    return {"type": _TYPES[kind]}


def _parts(text: str) -> tuple[str, str]:
    kind, _, meaning = text.partition(": ")
    return kind, meaning


def _shown(fields: str) -> str:
    return " ".join(f"`{field}`" for field in fields.split())


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    if "--page" in sys.argv:
        print(page(), end="")
    else:
        print(json.dumps(schema(), indent=2))
