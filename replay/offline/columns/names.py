"""The columns of tables, with their Arrow types, and validation of names given by users.

Without the native core, which queries do not need for planning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from aerotape.replay.offline.columns.payloads import TypedColumns
    from aerotape.replay.offline.read_mode import Mode

COLUMN_TYPES: Final[Mapping[str, str]] = {
    "recording_id": "int64",
    "position": "int64",
    "end_position": "int64",
    "stream_id": "int32",
    "session_id": "int32",
    "term_id": "int32",
    "term_offset": "int32",
    "flags": "int32",
    "reserved_value": "int64",
    "length": "int32",
    "payload": "binary",
    "_corrupt": "string",
}
"""All columns that a scan builds, in table order."""

RECORDED_TIME: Final = "recorded_time"
SCOPE_NAMES: Final = ("scope_id", "qualified_name")
"""The columns of the archive; `scope_id` is in two's complement."""
ADDED_TYPES: Final[Mapping[str, str]] = {
    RECORDED_TIME: "timestamp",
    **dict(zip(SCOPE_NAMES, ("int64", "string"), strict=True)),
}
"""The optional columns (`aerotape.replay.offline.columns.added`)."""


def table_columns(mode: Mode, payloads: TypedColumns | None = None) -> tuple[str, ...]:
    """Return the default columns of a table.

    With typed columns the payload itself is not among them.
    """
    typed = () if payloads is None else payloads.names
    left_out = {"_corrupt", "payload"} if typed else {"_corrupt"}
    own = [name for name in COLUMN_TYPES if name not in left_out]
    return (*own, *typed, "_corrupt") if mode == "PERMISSIVE" else (*own, *typed)


def added_names(payloads: TypedColumns | None = None) -> tuple[str, ...]:
    """Return the names of the optional columns that a table with these typed columns can have."""
    typed = {name.lower() for name in payloads.names} if payloads is not None else ()
    return tuple(name for name in ADDED_TYPES if name not in typed)


def known_columns(payloads: TypedColumns | None = None) -> tuple[str, ...]:
    """Return the names of all columns that a table with these typed columns can have."""
    typed = payloads.names if payloads is not None else ()
    return (*COLUMN_TYPES, *typed, *added_names(payloads))


def check_columns(columns: Sequence[str], known: Sequence[str], name: str = "columns") -> None:
    """Raise ConfigurationError for unknown or duplicate columns, or an empty list."""
    for column in columns:
        if column not in known:
            close = get_close_matches(column, known, 1)
            hint = f", do you mean {close[0]}?" if close else ""
            raise ConfigurationError(
                f"{name}: unknown column {column!r}{hint} (known: {', '.join(known)})", name
            )
    if not columns:
        raise ConfigurationError(f"{name}: no columns given", name)
    if len(set(columns)) < len(columns):
        raise ConfigurationError(f"{name}: duplicate column in {', '.join(columns)}", name)
