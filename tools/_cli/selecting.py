"""The options by which commands select messages: those of `aerotape.replay.offline.selection`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from aerotape.replay.offline.selection import OPTIONS, Selection
from aerotape.tools._cli.arguments import option

POSITIONS: Final = ("from_position", "to_position")
TIMES: Final = ("from_time", "to_time")
SEEKING: Final = ("from_index", "from_asqn")
COUNTS: Final = ("last", "first")
OF_DECODING: Final = ("types", "enums", "sets", "timestamps", "text_encoding")
"""Those by which fields of a schema are decoded."""
OF_SCHEMAS: Final = ("schema", "template", *OF_DECODING)
OF_MESSAGES: Final = (*POSITIONS, *TIMES, *SEEKING, *COUNTS, "checksum")
"""Those by which messages of a recording are selected."""

_ALSO: Final = {"from_time": ("--since",)}
_COMMANDS: Final = {
    **dict.fromkeys(("recording_ids", "scope_ids", "channel", "alias", "stream_id"), "parquet"),
    **dict.fromkeys(("session_id", "live"), "parquet"),
    **dict.fromkeys((*OF_MESSAGES, *OF_SCHEMAS), "cat"),
    **dict.fromkeys(("others", "payload", "mode"), "sql"),
    "columns": "",
}
"""A command for each option of reading; empty if none has it."""


def flag(name: str) -> str:
    """Return the option of commands for an option of reading: ``--from-time`` of ``from_time``."""
    return f"--{name.replace('_', '-')}"


def command_with(option: str) -> str | None:
    """Return a command that has an option of reading, "" if none has; None for another option."""
    for name, command in _COMMANDS.items():
        if option in (flag(name), *_ALSO.get(name, ())):
            return command
    return None


def add_selection_options(
    parser: argparse._ActionsContainer,
    names: Iterable[str],
    notes: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add options.

    Args:
        parser: of the command.
        names: of the options.
        notes: ends of the help of some.
    """
    for name in names:
        each = OPTIONS[name]
        parser.add_argument(
            flag(name),
            *_ALSO.get(name, ()),
            dest=name,
            type=option(each.parse, flag(name)),
            metavar=each.metavar,
            help=each.help + notes.get(name, ""),
        )


def selected(args: argparse.Namespace, names: Iterable[str]) -> Selection:
    """Return the selection that options of `add_selection_options` give (ConfigurationError)."""
    values = {name: value for name in names if (value := getattr(args, name)) is not None}
    return Selection.of(values, flag)
