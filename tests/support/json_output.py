"""What commands print with --json, checked against the documented schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jsonschema import Draft202012Validator

from aerotape.tools._cli.json_schema import schema

_SCHEMA = schema()
_COMMANDS = _SCHEMA["properties"]
_VALIDATOR = Draft202012Validator(_SCHEMA)


def _command(arguments: Sequence[str]) -> str:
    """Return the documented name of the command of a command line."""
    words = [arguments[0], *(f"{arguments[0]} {argument}" for argument in arguments[1:])]
    return next(name for name in (*words[1:], words[0]) if name in _COMMANDS)


def check(arguments: Sequence[str], out: str) -> None:
    """Check the standard output of a command line with --json; others are not checked."""
    if "--json" not in arguments or not out.strip():
        return
    rows = json.loads(out) if out.startswith("[") else map(json.loads, out.splitlines())
    for row in rows:
        _VALIDATOR.validate({_command(arguments): row})
