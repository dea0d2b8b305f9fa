"""The groups of commands in `aerotape --help`, by what one wants to do."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# Every command is in one group; tests check that.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "run a daemon": ("archive", "driver", "web", "users"),
    "record": ("record", "extend", "stop", "subscriptions"),
    "see what is recorded": ("list", "find", "position", "signals", "plot"),
    "send and read messages": ("publish", "subscribe", "cat", "schema"),
    "replay and replicate": ("replay", "stop-replay", "replicate", "stop-replication"),
    "delete and change recordings": (
        "truncate",
        "purge",
        "retain",
        "segments",
        "update-channel",
    ),
    "ledgers, entities and raft journals": ("ledger", "entity", "journal"),
    "query and convert to tables": ("sql", "parquet", "table"),
    "work on an archive directory": ("tool",),
    "find problems and measure": ("doctor", "ping", "counters", "errors", "metrics", "bench"),
    "get help, set up the shell": ("help", "completion"),
}


def overview(files: Mapping[str, Path]) -> str:
    """Return the lines of all commands by group, each with the first line of its docstring."""
    width = max(map(len, files))
    lines = []
    for title, names in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<{width}}  {help_line(files[name])}" for name in names]
    return "\n".join(lines[1:])


def help_line(file: Path) -> str:
    """Return the first line of a command's docstring, without importing the command."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    return (docstring or "").partition("\n")[0]
